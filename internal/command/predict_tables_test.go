package command

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// said is a line of predict, or an epoch of train.
type said struct {
	Type        string
	Line, Class int
	Value       float64
	Probability float64
	Classes     []labelShare
	Columns     []columnValue
	Test_loss   float64
	Test_error  float64
	Loss        float64
}

// saidBy are the lines of JSON that a command prints.
func saidBy(t *testing.T, args ...string) (all []said) {
	t.Helper()
	for line := range strings.Lines(succeed(t, args...)) {
		var s said
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(line, err)
		}
		all = append(all, s)
	}
	return all
}

// points are samples in LIBSVM's format, and their labels: of two classes that are called -1 and 1,
// of three from 1 on, or numbers.
func points(kind string, n int) (text string, labels []float64) {
	var b strings.Builder
	for i := range n {
		x, y, z := float64(i*7%11)/11, float64(i*5%13)/13, float64(i%3)
		label := x + 2*y - z
		switch kind {
		case "two":
			label = math.Copysign(1, label-0.3)
		case "three":
			label = min(max(math.Floor(label+2), 1), 3)
		}
		labels = append(labels, label)
		fmt.Fprintf(&b, "%v 1:%.4f 2:%.4f 4:%v\n", label, x, y, z)
	}
	return b.String(), labels
}

// TestPredictTables: what predict says of held-out samples has the loss and the errors that
// training told of them.
func TestPredictTables(t *testing.T) {
	inDir(t)
	half := func(d float64) float64 { return d * d }
	cross := func(p float64) float64 { return -math.Log(p) }
	for i, c := range []struct {
		kind string
		args []string
		tol  float64 // losses are of float32 logits, or computed another way
	}{
		{"numbers", []string{"--model", "lasso", "--lambda", "0.5"}, 1e-12},
		{"two", []string{"--model", "l1-lr", "--lambda", "0.5"}, 1e-12},
		{"two", []string{"--model", "lr", "--epochs", "3", "--lr", "0.1"}, 1e-12},
		{"three", []string{"--model", "mlr", "--epochs", "3"}, 0},
		{"numbers", []string{"--model", "gbt", "--epochs", "4"}, 1e-12},
		{"two", []string{"--model", "gbt", "--epochs", "4", "--loss", "logistic"}, 1e-12},
	} {
		text, _ := points(c.kind, 150)
		held, labels := points(c.kind, 64)
		write(t, "train", text)
		write(t, "held", held)
		run := fmt.Sprint("run", i)
		var last said
		for _, s := range saidBy(t, with([]string{"train", "--json", "--data", "libsvm:train",
			"--eval-data", "libsvm:held", "--save", run}, c.args...)...) {
			if s.Type == "epoch" {
				last = s
			}
		}
		all := saidBy(t, "predict", "--json", "--from", run, "libsvm:held")
		if len(all) != len(labels) {
			t.Fatalf("%v: %d lines", c.args, len(all))
		}
		loss, wrong := 0.0, 0
		for k, s := range all {
			if c.kind != "numbers" && float64(s.Class) != labels[k] {
				wrong++
			}
			switch p := s.Probability; {
			case c.kind == "numbers":
				loss += half(s.Value - labels[k])
			case c.kind == "two" && labels[k] == 1:
				loss += cross(p)
			case c.kind == "two":
				loss += cross(1 - p)
			}
		}
		n := float64(len(labels))
		if math.Abs(loss/n-last.Test_loss) > c.tol*last.Test_loss && c.kind != "three" ||
			c.kind != "numbers" && math.Abs(float64(wrong)/n-last.Test_error) > 1e-9 {
			t.Errorf("%v: loss %.17g, errors %d of %v; training says %+v", c.args, loss/n, wrong, n,
				last)
		}
		lines := strings.Fields(succeed(t, "predict", "--from", run, "held"))
		for k, s := range all {
			want := fmt.Sprintf("%.6g", s.Value+s.Probability)
			if c.kind == "three" {
				want = strconv.Itoa(s.Class)
			}
			if lines[k] != want {
				t.Fatalf("%v: line %d is %s, want %s", c.args, k+1, lines[k], want)
			}
		}
	}
	o := invoke(t, "predict", "--from", "run3", "--top", "2", "held")
	line, _, _ := strings.Cut(o.stdout, "\n")
	if o.status != exitOK || strings.Count(line, ":") != 2 {
		t.Errorf("%+v", o)
	}
}

// tensors are the tables of a run, as export writes them.
func tensors(t *testing.T, run string) map[string]*matrix {
	t.Helper()
	all, _, err := readTables(location(run))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPredictByHand: predictions of lr and gbt are those of a plain computation from their tables.
func TestPredictByHand(t *testing.T) {
	inDir(t)
	text, _ := points("two", 90)
	write(t, "train", text)
	succeed(t, "train", "--model", "lr", "--data", "libsvm:train", "--epochs", "2", "--save", "lr")
	succeed(t, "train", "--model", "gbt", "--data", "libsvm:train", "--epochs", "3", "--save",
		"gbt")
	w, trees := tensors(t, "lr")["lr/w"].data, tensors(t, "gbt")
	write(t, "asked", "0 1:0.5 4:2\n7 2:0.25\n")
	lr := saidBy(t, "predict", "--json", "--from", "lr", "asked")
	forest := saidBy(t, "predict", "--json", "--from", "gbt", "asked")
	for i, x := range [][4]float64{{0.5, 0, 0, 2}, {0, 0.25, 0, 0}} {
		z, all := 0.0, float64(trees["gbt/base"].data[0])
		for j, v := range x {
			z += float64(w[j]) * v
		}
		for k := range trees["gbt/trees"].rows {
			cols := trees["gbt/trees"].cols
			nodes, at := trees["gbt/trees"].data[k*cols:][:cols], 0
			for nodes[3*at] >= 0 {
				if at = 2*at + 1; x[int(nodes[3*((at-1)/2)])] > float64(nodes[3*((at-1)/2)+1]) {
					at++
				}
			}
			all += float64(nodes[3*at+2])
		}
		if p := 1 / (1 + math.Exp(-z)); math.Abs(lr[i].Probability-p) > 1e-6 {
			t.Errorf("lr: %v, want %v", lr[i].Probability, p)
		}
		if math.Abs(forest[i].Value-all) > 1e-12 {
			t.Errorf("gbt: %v, want %v", forest[i].Value, all)
		}
	}
}

// TestPredictElements: elements of a factorisation are the products of its rows, asked for by the
// numbers that its file has, and --top shows the largest of a row.
func TestPredictElements(t *testing.T) {
	inDir(t)
	if err := os.Mkdir("ml", 0o777); err != nil {
		t.Fatal(err)
	}
	stars := "7\t300\t0.5\t1\n900\t122\t3\t1\n7\t20\t5\t0\n900\t20\t4\t0\n"
	write(t, filepath.Join("ml", "u.data"), stars)
	for _, sync := range []string{"stratified", "bosen"} {
		succeed(t, "train", "--model", "mf", "--data", "ml:ml", "--epochs", "5", "--factors", "2",
			"--sync", sync, "--save", sync)
		x := tensors(t, sync)
		want := func(row, col int) float64 {
			a, b := x["mf/l"].data[2*row:], x["mf/r"].data[2*col:]
			return float64(a[0]*b[0]) + float64(a[1]*b[1])
		}
		write(t, "pairs", "900 300\n\n7 20\n")
		for k, s := range saidBy(t, "predict", "--json", "--from", sync, "pairs") {
			if w := want([]int{1, 0}[k], []int{2, 0}[k]); math.Abs(s.Value-w) > 1e-6 {
				t.Errorf("%s: element %v, want %v", sync, s.Value, w)
			}
		}
		if all := saidBy(t, "predict", "--json", "--from", sync, "ml:ml"); len(all) != 4 ||
			math.Abs(all[3].Value-want(1, 1)) > 1e-6 {
			t.Errorf("%s: %+v", sync, all)
		}
		write(t, "rows", "900\n")
		most := saidBy(t, "predict", "--json", "--from", sync, "--top", "2", "rows")[0].Columns
		names := map[int]int{20: 0, 122: 1, 300: 2}
		if len(most) != 2 || most[0].Value < most[1].Value ||
			math.Abs(most[1].Value-want(1, names[most[1].Column])) > 1e-6 {
			t.Errorf("%s: %+v", sync, most)
		}
	}
	write(t, "rows", "7 20\n8\nx\n")
	o := invoke(t, "predict", "--from", "bosen", "--top", "2", "rows")
	for _, want := range []string{"rows:1: \"7 20\": want the number of a row",
		"rows:2: row 8 is none of the 2 that", "rows:3: \"x\" is no number"} {
		if o.status != exitFailure || !strings.Contains(o.stderr, want) {
			t.Errorf("%+v, want %s", o, want)
		}
	}
	if o = invoke(t, "predict", "--from", "bosen", "--top", "2", "ml:ml"); o.status != exitUsage {
		t.Errorf("%+v", o)
	}
}

// TestPredictTablesRefuses: samples that the model has not the features for are refused by these,
// and others go on; what a directory says wrongly of its run is refused.
func TestPredictTablesRefuses(t *testing.T) {
	inDir(t)
	text, _ := points("two", 40)
	write(t, "train", text)
	succeed(t, "train", "--model", "lr", "--data", "libsvm:train", "--epochs", "1", "--save", "run")
	write(t, "asked", "1 5:1\n# none\n1 0:1\n1 4:1\nword\n1 2:x\n")
	o := invoke(t, "predict", "--from", "run", "asked")
	for _, want := range []string{"asked:1: feature 5, and the model has 1 to 4",
		"asked:3: feature 0, and the model's begin at 1", "asked:5: label \"word\" is no number",
		"asked:6: \"2:x\" is no index:value"} {
		if o.status != exitFailure || !strings.Contains(o.stderr, want) {
			t.Errorf("%d %q, want %s", o.status, o.stderr, want)
		}
	}
	if lines := strings.Split(o.stdout, "\n"); len(lines) != 6 || lines[2] == "" {
		t.Errorf("%q", o.stdout)
	}
	about := filepath.Join("run", "run.json")
	good, err := os.ReadFile(about)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string][2]string{
		"predicted nothing with --model lr":    {`"shape"`, `"shapes"`},
		"no samples have -4 features":          {`"features": 4`, `"features": -4`},
		"w":                                    {`"features": 4`, `"features": 400`},
		"it says too little of its --model gb": {`"model": "lr"`, `"model": "gbt"`},
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		if bad == string(good) {
			t.Fatalf("%s is not in %s", change[0], good)
		}
		write(t, about, bad)
		if o := invoke(t, "predict", "--from", "run", "asked"); o.status != exitFailure ||
			!strings.Contains(o.stderr, want) {
			t.Errorf("%v: %+v, want %s", change, o, want)
		}
	}
	write(t, about, string(good))
	if o := invoke(t, "predict", "--from", "run", "--top", "2"); o.status != exitUsage ||
		!strings.Contains(o.stderr, "--top does nothing for lr") {
		t.Errorf("%+v", o)
	}
}
