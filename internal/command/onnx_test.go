package command

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/data/arrays"
	"github.com/gomem/gomem/graph/tensor"
)

// withNetworks makes a directory with networks and their data the current one.
func withNetworks(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.*n*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		if all[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	for name, content := range all {
		write(t, name, string(content))
	}
}

// lossesOf are the losses of a run's steps.
func lossesOf(t *testing.T, lines string) (list []float64) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var e struct {
			Type string
			Loss float64
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "step" {
			list = append(list, e.Loss)
		}
	}
	return list
}

// learn trains, and returns what it prints; that nothing is held out is no matter.
func learn(t *testing.T, args string) string {
	t.Helper()
	o := invoke(t, append(strings.Fields("train --json"), strings.Fields(args)...)...)
	if o.status != exitOK {
		t.Fatalf("%s: %s", args, o.stderr)
	}
	return o.stdout
}

// mlp trains the small network on its data, as often as they fill one batch.
const mlp = "--model onnx:mlp.onnx --batch 9 --data npz:mlp.npz --target label " +
	"--loss cross-entropy "

// runs are those whose losses PyTorch has recorded.
var runs = map[string]string{
	"mlp sgd":  mlp + "--optimizer sgd --lr 0.5",
	"mlp adam": mlp + "--optimizer adam --lr 0.01",
	"cnn momentum": "--model onnx:cnn.onnx --batch 8 --data npz:cnn.npz --target label " +
		"--loss cross-entropy --optimizer momentum --lr 0.1",
	"own loss": "--model onnx:own.onnx --batch 8 --data npz:own.npz --loss loss --optimizer sgd " +
		"--lr 0.2",
	"own mse": "--model onnx:own.onnx --axis batch=8 --data npz:own.t.npz --loss mse " +
		"--output mean --target t --optimizer sgd --lr 0.2",
	"own bce": "--model onnx:own.onnx --batch 8 --data npz:own.t.npz --loss bce " +
		"--output logit --target t --optimizer sgd --lr 0.2",
}

// TestNetworkLosses: a network of a file begins with the file's weights, and learns as PyTorch has
// it learn.
func TestNetworkLosses(t *testing.T) {
	withNetworks(t)
	text, err := os.ReadFile("losses.json")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]float64{}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for name, args := range runs {
		have := lossesOf(t, learn(t, args+" --steps 20"))
		if len(have) != 20 || len(want[name]) != 20 {
			t.Fatalf("%s: %d losses", name, len(have))
		}
		for i, w := range want[name] {
			if math.Abs(have[i]-w) > 1e-4 {
				t.Errorf("%s: step %d has loss %v, PyTorch's %v", name, i+1, have[i], w)
			}
		}
	}
}

// open reads arrays.
func open(t *testing.T, path string) *arrays.Set {
	t.Helper()
	s, err := arrays.Open("npz:" + path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// apart is by how much arrays differ at most.
func apart(t *testing.T, a, b *arrays.Set) (most float64) {
	t.Helper()
	if a.String() != b.String() {
		t.Fatalf("%s, want %s", a, b)
	}
	for i, x := range a.Arrays {
		y := b.Arrays[i].F32()
		for k, v := range x.F32() {
			most = max(most, math.Abs(float64(v-y[k])))
		}
	}
	return most
}

// TestNetworkPredicts: the outputs are those of ONNX Runtime, in batches of any size, within a
// budget that does not hold the weights and without one; and without --out they are summed up.
func TestNetworkPredicts(t *testing.T) {
	withNetworks(t)
	for _, net := range []struct{ name, data string }{{"mlp", "mlp.x.npz"}, {"cnn", "cnn.x.npz"},
		{"own", "own.npz"}} {
		for _, flags := range []string{"--batch 20", "--policy thesis --partition 1 --batch 9",
			"--batch 4", "--batch 1"} {
			if net.name == "own" && (flags == "--batch 4" || flags == "--batch 1") {
				continue // its loss is of all examples
			}
			args := append(strings.Fields("predict --json --out out.npz --from "+net.name+".onnx"),
				append(strings.Fields(flags), net.data)...)
			o := invoke(t, args...)
			if o.status != exitOK {
				t.Fatalf("%v: %s", args, o.stderr)
			}
			if d := apart(t, open(t, "out.npz"), open(t, net.name+".want.npz")); d > 1e-5 {
				t.Errorf("%v: by %v from ONNX Runtime's", args, d)
			}
		}
	}
	o := invoke(t, "predict", "--from", "mlp.onnx", "npz:mlp.x.npz")
	if !strings.HasPrefix(o.stdout, "logits f32[9 3]  min -0.25") ||
		!strings.Contains(o.stderr, "9 examples") {
		t.Errorf("%q, %q", o.stdout, o.stderr)
	}
}

// TestNetworkStreams: weights that do not fit the device are streamed through it, and the outputs
// have the same bits.
func TestNetworkStreams(t *testing.T) {
	withNetworks(t)
	need := func(args ...string) (line struct {
		Peak int64 `json:"actual_device_peak_bytes"`
	}) {
		t.Helper()
		o := invoke(t, append(strings.Fields("predict --json --from own.onnx own.npz --out"),
			args...)...)
		lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
			t.Fatalf("%v: %s", args, o.stderr)
		}
		return line
	}
	whole := need("a.npz", "--policy", "vanilla").Peak
	less := need("b.npz", "--policy", "thesis", "--partition", "1", "--device-memory",
		fmt.Sprint(whole-100)).Peak
	if less >= whole || apart(t, open(t, "a.npz"), open(t, "b.npz")) != 0 {
		t.Errorf("%d bytes in place of %d", less, whole)
	}
}

// TestNetworkRun: a run is saved, resumed, evaluated, used and exported, and the file that is
// exported says what the run does.
func TestNetworkRun(t *testing.T) {
	withNetworks(t)
	const more = " --optimizer adam --eval-share 0.5 --batch 4 --eval-every 100"
	flags := strings.Replace(mlp, "--batch 9 ", "", 1) + more
	whole := lossesOf(t, learn(t, flags+" --steps 12 --save whole"))
	learn(t, flags+" --steps 7 --save run")
	rest := lossesOf(t, learn(t, "--resume run --steps 12"))
	if !slices.Equal(rest, whole[7:]) {
		t.Errorf("resumed: %v, want %v", rest, whole[7:])
	}
	for _, x := range []struct{ data, says string }{{"", "what was held out of it"},
		{"--data npz:mlp.moved.npz", "all of it: other data was trained on"}} {
		if x.data != "" {
			v := open(t, "mlp.npz")
			v.Arrays[0].I64()[0] = 1 - v.Arrays[0].I64()[0]%2
			save(t, "mlp.moved.npz", v.Arrays)
		}
		out := succeed(t, append([]string{"eval", "--from", "run"}, strings.Fields(x.data)...)...)
		if !strings.Contains(out, x.says) && x.data == "" || !strings.Contains(out, "accuracy") {
			t.Errorf("eval %s: %s", x.data, out)
		}
	}
	if out := succeed(t, "export", "--from", "run", "--onnx", "new.onnx"); !strings.Contains(out,
		"wrote new.onnx: 67 parameters of step 12") {
		t.Error(out)
	}
	for _, from := range []string{"run", "new.onnx", "whole", "mlp.onnx"} {
		o := invoke(t, "predict", "--from", from, "mlp.x.npz", "--out", from+".npz")
		if o.status != exitOK {
			t.Fatal(o.stderr)
		}
	}
	run := open(t, "run.npz")
	if apart(t, run, open(t, "new.onnx.npz")) != 0 || apart(t, run, open(t, "whole.npz")) != 0 {
		t.Error("the exported network is another")
	}
	if apart(t, run, open(t, "mlp.onnx.npz")) < 1e-3 {
		t.Error("nothing was learnt")
	}
	if err := os.Rename("mlp.onnx", "moved.onnx"); err != nil {
		t.Fatal(err)
	}
	learn(t, "--resume run --model onnx:moved.onnx --steps 13")
	if err := os.Rename("new.onnx", "moved.onnx"); err != nil {
		t.Fatal(err)
	}
	o := invoke(t, strings.Fields("train --resume run --steps 14")...)
	if o.status != exitFailure || !strings.Contains(o.stderr, "is another file than that of") {
		t.Errorf("another file: %d %s", o.status, o.stderr)
	}
}

func save(t *testing.T, path string, list []arrays.Array) {
	t.Helper()
	err := writeFile(path, func(w io.Writer) error { return arrays.Write(w, list) })
	if err != nil {
		t.Fatal(err)
	}
}

// TestNetworkPlans: without a loss an evaluation is planned, with one a training step; it is
// profiled, and the largest batch is found.
func TestNetworkPlans(t *testing.T) {
	withNetworks(t)
	for _, c := range [][2]string{
		{"plan --model onnx:mlp.onnx --batch 9", "none: without --loss"},
		{"plan --model onnx:mlp.onnx --batch 9 --loss none", "an evaluation runs"},
		{"plan --model onnx:mlp.onnx --batch 9 --loss cross-entropy", "a training step runs"},
		{"plan --model onnx:mlp.onnx --batch 9 --sweep", "smallest possible"},
		{"plan --model onnx:own.onnx --batch 3 --loss loss --json", `"trains":true`},
		{"plan --model onnx:own.onnx --batch 3 --json", `"trains":false`},
		{"profile --model onnx:own.onnx --batch 3 --loss loss", "time of a step"},
		{"fit --model onnx:mlp.onnx --loss cross-entropy --device-memory 20KiB",
			"largest batch"},
	} {
		if out := succeed(t, strings.Fields(c[0])...); !strings.Contains(out, c[1]) {
			t.Errorf("%s: %s, want %q", c[0], out, c[1])
		}
	}
}

// TestNetworkRefusals: what cannot be says what would work.
func TestNetworkRefusals(t *testing.T) {
	withNetworks(t)
	save(t, "more.npz", append(open(t, "mlp.npz").Arrays,
		arrays.Array{Name: "mask", View: tensor.New(tensor.Of(tensor.F32, 9))}))
	save(t, "far.npz", []arrays.Array{open(t, "mlp.npz").Arrays[1],
		{Name: "label", View: tensor.FromI32([]int32{0, 1, 2, 3, 0, 1, 2, 0, 1}, 9)}})
	learn(t, mlp+"--steps 1 --save run")
	write(t, "bad.onnx", "no file of ONNX")
	const own = "train --model onnx:own.onnx --batch 8 --data npz:own.t.npz "
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"plan --model onnx:", 2, "want --model onnx:FILE"},
		{"plan --model onnx", 2, "want --model onnx:FILE"},
		{"plan --model onnx:none.onnx", 1, "none.onnx: no such file"},
		{"plan --model onnx:bad.onnx", 1, "bad.onnx"},
		{"plan --model moe:mlp.onnx", 2, "unknown --model"},
		{"plan --model onnx:mlp.onnx", 2, "batch: give --axis NAME=N"},
		{"plan --model onnx:mlp.onnx --axis rows=3 --batch 3", 1, "its inputs are x[batch 4]"},
		{"plan --model onnx:mlp.onnx --axis batch=3 --batch 4", 2, "--batch 4 does nothing"},
		{"plan --model onnx:mlp.onnx --axis batch", 2, "want the name of an axis and its size"},
		{"plan --model onnx:mlp.onnx --axis batch=2 --axis batch=3", 2, "has two sizes"},
		{"plan --model onnx:mlp.onnx --batch 3 --size base", 2, "--size does nothing"},
		{"plan --model onnx:mlp.onnx --batch 3 --fine", 2, "--fine does nothing"},
		{"plan --model onnx:mlp.onnx --batch 3 --depth 3", 2, "--depth does nothing"},
		{"plan --model onnx:mlp.onnx --batch 3 --output y", 2, "want logits"},
		{"plan --model onnx:mlp.onnx --batch 3 --target y", 2, "does nothing without --loss"},
		{"plan --model onnx:own.onnx --batch 3 --loss mse", 2, "--output is missing"},
		{"plan --model onnx:own.onnx --batch 3 --loss mean", 2, "the output is f32[3 1]"},
		{"plan --model onnx:own.onnx --batch 3 --loss hinge", 2, "mean, logit or loss"},
		{"plan --model onnx:own.onnx --batch 3 --loss loss --target t", 2, "do nothing"},
		{"plan --model onnx:own.onnx --batch 3 --loss mse --output mean --target y", 2,
			"is an input of the network"},
		{"plan --model moe --loss mse", 2, "--loss does nothing for --model moe"},
		{"plan --model resnet --axis a=1", 2, "--axis does nothing"},
		{"profile --model onnx:mlp.onnx --batch 3", 2, "--loss is missing"},
		{"fit --model onnx:mlp.onnx", 2, "--loss is missing"},
		{"fit --model onnx:mlp.onnx --loss cross-entropy", 2, "--device-memory"},
		{"fit --model onnx:mlp.onnx --loss cross-entropy --max depth", 2, "want batch"},
		{"train --model onnx:mlp.onnx --batch 3 --data npz:mlp.npz", 2, "--loss is missing"},
		{"train --model onnx:mlp.onnx --batch 3 --loss cross-entropy", 2, "--data is missing"},
		{"train " + mlp + "--data go:doc", 2, "--data go:doc is not for --model onnx"},
		{"train --data npz:mlp.npz", 2, "give it to --model onnx"},
		{"train " + mlp + "--data npz:more.npz", 1, `array "mask" is for nothing`},
		{"train " + mlp + "--data npz:mlp.x.npz", 1, `no array "label"`},
		{"train " + mlp + "--data npz:far.npz", 1, "want labels from 0 to 2"},
		{own + "--loss loss", 1, `array "t" is for nothing`},
		{"train --resume run --loss mse --steps 3", 1, "was made with --loss cross-entropy"},
		{"train --resume run --target y --steps 3", 1, "was made with --target label"},
		{"eval --from mlp.onnx", 1, "no loss to evaluate"},
		{"predict --from mlp.onnx", 2, "want one, a file of arrays"},
		{"predict --from mlp.onnx mlp.npz", 1, `array "label" is for nothing`},
		{"predict --from own.onnx own.npz --batch 3", 1, "has no axis of the 3 rows"},
		{"predict --from mlp.onnx mlp.x.npz --top 3", 2, "--top does nothing"},
		{"export --from run", 2, "or --onnx FILE"},
		{"export --from run published", 1, "by --onnx FILE"},
		{"export --from run --onnx mlp.onnx", 2, "is the file that the run is of"},
		{"export --from mlp.onnx --onnx new.onnx", 1, "for what gomem train has saved"},
	} {
		o := invoke(t, strings.Fields(c.args)...)
		if o.status != c.status || !strings.Contains(o.stderr, c.says) {
			t.Errorf("gomem %s: status %d, %s, want %d, %q", c.args, o.status, o.stderr, c.status,
				c.says)
		}
	}
}

// TestNetworkPage: every command of the page about networks does what the page says, in its order.
func TestNetworkPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/how-to/onnx.md")
	if err != nil {
		t.Fatal(err)
	}
	withNetworks(t)
	if err := os.Rename("mlp.onnx", "model.onnx"); err != nil {
		t.Fatal(err)
	}
	x, labels := tensor.New(tensor.Of(tensor.F32, 100, 4)), tensor.New(tensor.Of(tensor.I64, 100))
	for i := range x.F32() {
		x.F32()[i] = float32(math.Sin(float64(i)))
		labels.I64()[i/4] = int64(i / 4 % 3)
	}
	save(t, "in.npz", []arrays.Array{{Name: "x", View: x}})
	save(t, "data.npz", []arrays.Array{{Name: "x", View: x}, {Name: "label", View: labels}})
	found := 0
	shown := regexp.MustCompile(`(?m)^    gomem ([^\n]*)$`)
	whole := wrapped.ReplaceAllString(string(text), " ")
	for _, match := range shown.FindAllStringSubmatch(whole, -1) {
		found++
		if o := invoke(t, strings.Fields(match[1])...); o.status != exitOK {
			t.Errorf("gomem %s: %s", match[1], o.stderr)
		}
	}
	if have := files(t, "."); found != 8 || !strings.Contains(have, "trained.onnx") ||
		!strings.Contains(have, "out.npz") {
		t.Errorf("%d commands have made %s", found, have)
	}
}

// TestNetworkOfWorkers: workers train a file's network, by a ring and by servers to the same bits,
// and on a mesh, whose layout names the file's axes, as one process does in slices.
func TestNetworkOfWorkers(t *testing.T) {
	withNetworks(t)
	run := with(append([]string{"train"}, strings.Fields(mlp)...), "--batch", "8", "--steps", "4",
		"--json")
	weights := func(more ...string) string {
		t.Helper()
		o := gather(t, inMemory{}, with(run, more...)...)
		o.stderr = "" // nothing is held out
		s := summaryOf(t, o)
		if s["predicted_device_peak_bytes"] != s["actual_device_peak_bytes"] {
			t.Errorf("%v: %v", more, s)
		}
		return s["weights_sha256"].(string)
	}
	if weights("--local", "2", "--sync", "ring") != weights("--local", "2", "--sync", "ps") {
		t.Error("a ring and servers differ")
	}
	if weights("--local", "2", "--mesh", "batch:2x1") != weights("--mesh", "batch:2") {
		t.Error("a mesh of two processes is not that of one")
	}
	if weights("--mesh", "n:2", "--layout", "batch=n") != weights("--mesh", "batch:2") {
		t.Error("another name of the mesh's axis gives other weights")
	}
}
