package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/mesh"
)

// TestMeshFlags: what cannot be divided is refused in a line that names the flag.
func TestMeshFlags(t *testing.T) {
	inDir(t)
	for _, c := range []struct {
		line, why string
	}{
		{"plan --size s512 --mesh batch", `--mesh: "batch" is no axis`},
		{"plan --size s512 --mesh batch:0", "out of range"},
		{"train --size s512 --mesh batch:2x2", "is for 2 processes, this is one: want slices"},
		{"plan --size s512 --mesh experts:4x5", "do not divide: 2, 4 and 8 do"},
		{"fit --size s512 --max depth --mesh batch:3x1", "no depth makes a model: --mesh batch:3"},
		{"plan --size s512 --mesh batch:3", "which the 3 of axis batch of the mesh do not " +
			"divide: 2 and 4 do"},
		{"train --size s512 --data tsv:pairs.tsv --steps 1 --mesh batch:3", "--mesh batch:3: "},
		{"plan --size s512 --mesh rows:2", "an axis rows: there are batch, experts, length"},
		{"plan --size s512 --mesh batch:2 --layout batch=rows", `the mesh has no axis "rows"`},
		{"plan --size s512 --mesh batch:2 --layout */nothing:1=batch", "has such a name"},
		{"plan --size s512 --mesh batch:2 --layout source:2=batch", "has no axis 2"},
		{"plan --size s512 --layout batch=batch", "--layout needs --mesh"},
		{"plan --size s512 --sharding", "--sharding needs --mesh"},
		{"plan --size s512 --mesh batch:2 --sharding --json", "can't be used together"},
	} {
		o := invoke(t, strings.Fields(c.line)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, c.why) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("gomem %s: status %d, %q; want %q", c.line, o.status, o.stderr, c.why)
		}
	}
}

// TestProcessesRefuse: what the processes of a mesh cannot do yet is refused before any is
// started, and so is a mesh of another number of them.
func TestProcessesRefuse(t *testing.T) {
	inDir(t)
	for flags, why := range map[string]string{
		"--mesh batch:4x1":             "is for 4 processes, there are 2",
		"--mesh batch:2x1 --sync ring": "--sync and the processes of --mesh batch:2x1 can't be",
		"--mesh batch:2x1 --min 1":     "--min and the processes of --mesh batch:2x1 can't be",
		"--mesh batch:2x1 --profile p": "--profile and the processes of --mesh batch:2x1 can't",
	} {
		o := gather(t, inMemory{}, with(with(tiny, "--local", "2"), strings.Fields(flags)...)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, why) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: status %d, %q; want %q", flags, o.status, o.stderr, why)
		}
	}
}

// TestProcessesResume: what the processes of a mesh save others go on from, in another mesh
// and in none, and so do those that evaluate and predict; in the same mesh, a run that was
// cut in two saves, to the byte, what one does that was not.
func TestProcessesResume(t *testing.T) {
	inDir(t)
	run := func(steps, mesh, resume, save string) {
		t.Helper()
		args := with(tinyMoE, "--optimizer", "adam", "--steps", steps, "--save", save, "--json",
			"--eval-every", "1")
		if mesh != "" {
			args = append(args, "--mesh", mesh, "--local", "2")
		}
		if resume != "" {
			args = append(args, "--resume", resume)
		}
		summaryOf(t, gather(t, inMemory{}, args...))
	}
	const last = "/step-00000003.safetensors"
	run("3", "experts:2x1", "", "whole")
	run("2", "experts:2x1", "", "half")
	run("3", "experts:2x1", "half", "again")
	run("3", "batch:2x1", "half", "other")
	run("3", "", "half", "one")
	whole, err := os.ReadFile("whole" + last)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"again", "other", "one"} {
		file, err := os.ReadFile(dir + last)
		if err != nil || len(file) != len(whole) || dir == "again" && !bytes.Equal(file, whole) {
			t.Errorf("%s: %d bytes, not those of a run that was not cut, %d; %v", dir, len(file),
				len(whole), err)
		}
	}
	succeed(t, "eval", "--from", "half", "--eval-batches", "1", "--bleu", "0")
	if err := os.WriteFile("text", []byte("the number 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := invoke(t, "predict", "--from", "half", "text"); o.status != exitOK {
		t.Error(o)
	}
}

// TestSharding: plan says how every value is divided, what was converted, and what it
// comes to.
func TestSharding(t *testing.T) {
	out := succeed(t, "plan", "--size", "s512", "--mesh", "batch:2,experts:2", "--sharding")
	for _, want := range []string{
		"\nsource i32[4/batch 16]\n",
		"\nenc/0/moe/reshape_2 f32[2/batch 8/experts 5 32]\n",
		"\nenc/0/moe/expert5/w0 f32[32 64] at experts:1\n",
		"\nenc/0/moe/expert1/matmul f32[10/batch 64] at experts:0\n",
		"\nsum ", " divided, ", " computed once\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if bad := tooWide(out, 80); len(bad) > 0 {
		t.Errorf("%d lines are too wide: %s", len(bad), bad[0])
	}
}

// TestMeshOfProcesses: the plan of a mesh of several processes says what each needs, and
// what it sends: two sums a layer of what the experts come to, and their gates' gradients.
func TestMeshOfProcesses(t *testing.T) {
	out := succeed(t, "plan", "--size", "s512", "--mesh", "experts:4x1", "--json")
	var x explanation
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatal(err)
	}
	if len(x.Ranks) != 4 || x.Ranks[3].Rank != 3 || x.Ranks[0].Device != x.DevicePeak ||
		x.Ranks[3].Host == 0 {
		t.Errorf("ranks %+v, device %d", x.Ranks, x.DevicePeak)
	}
	if len(x.Wire) != 1 || x.Wire[0].Bytes != 135168 {
		t.Errorf("wire %+v, want 135168 bytes of sums", x.Wire)
	}
	text := succeed(t, "plan", "--size", "s512", "--mesh", "experts:4x1")
	for _, want := range []string{"\nThis is the plan of process 0 of 4.\n", "process",
		"\neach sends 132KiB a step:\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if bad := tooWide(text, 80); len(bad) > 0 {
		t.Errorf("%d lines are too wide: %s", len(bad), bad[0])
	}
}

// TestPlanAsksFit: the plan of experts on a mesh says what finds how many would fit; that of
// other models, and without a mesh, does not.
func TestPlanAsksFit(t *testing.T) {
	const line = "\ngomem fit --max experts, with the same flags, says how many would fit.\n"
	for flags, says := range map[string]bool{
		"--mesh experts:4x1":                  true,
		"--moe sparse --mesh experts:1x2":     true,
		"--mesh batch:2":                      true,
		"--model transformer --mesh batch:2":  false,
		"--moe sparse --device-memory 100MiB": false,
	} {
		out := succeed(t, with([]string{"plan", "--size", "s512", "--policy", "thesis"},
			strings.Fields(flags)...)...)
		if strings.Contains(out, line) != says {
			t.Errorf("%s: want it to ask %v in\n%s", flags, says, out)
		}
		if bad := tooWide(out, 80); len(bad) > 0 {
			t.Errorf("%s: %d lines are too wide: %s", flags, len(bad), bad[0])
		}
	}
}

// TestRoutedRows: with the batch and the experts along one axis, plan says how much processes
// send at most of the rows that sparse experts want.
func TestRoutedRows(t *testing.T) {
	args := []string{"plan", "--size", "s512", "--moe", "sparse", "--batch", "8",
		"--mesh", "x:4x1", "--layout", "experts=x,batch=x"}
	var x explanation
	if err := json.Unmarshal([]byte(succeed(t, append(args, "--json")...)), &x); err != nil {
		t.Fatal(err)
	}
	most := map[mesh.ConversionKind]bool{}
	for _, k := range x.Wire {
		most[k.Kind] = k.AtMost
	}
	if !most[mesh.GatherSome] || !most[mesh.ScatterSome] || most[mesh.Gather] {
		t.Errorf("wire %+v", x.Wire)
	}
	text := succeed(t, args...)
	sharding := succeed(t, append(args, "--sharding")...)
	for _, want := range []string{"\neach sends at most ", "\n  gather-some at most ",
		"\n  scatter-some at most "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, want := range []string{"\ngather-some enc/0/moe/reshape_2 along x, 16384 bytes, for\n" +
		"  enc/0/moe/gather-rows, at most 8192 on the wire\n", "\nscatter-some: "} {
		if !strings.Contains(sharding, want) {
			t.Errorf("%q is missing in\n%s", want, sharding)
		}
	}
	for _, out := range []string{text, sharding} {
		if bad := tooWide(out, 80); len(bad) > 0 {
			t.Errorf("%d lines are too wide: %s", len(bad), bad[0])
		}
	}
}

// TestWireIsForecast: what two to four processes send in a step, counted where they hand it to
// their transport, is what the plan says, but for what frames it and what workers agree on.
func TestWireIsForecast(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for n, flags := range map[string]string{
		"2": "--mesh experts:2x1",
		"3": "--mesh batch:3x1 --batch 6 --model transformer",
		"4": "--mesh experts:4x1",
	} {
		args := strings.Fields(flags)
		var x explanation
		decode(t, succeed(t, with([]string{"plan", "--size", "s512", "--json"}, args...)...), &x)
		if len(x.Wire) != 1 || x.Wire[0].Bytes < 1<<16 {
			t.Fatalf("wire %+v", x.Wire)
		}
		sent := func(steps string) float64 {
			s := summaryOf(t, gather(t, inMemory{}, with(tinyMoE, with(args, "--local", n, "--json",
				"--bleu", "0", "--steps", steps)...)...))
			return s["exchanged"].(map[string]any)["sent_bytes"].(float64)
		}
		workers, wire := len(x.Ranks), x.Wire[0]
		each := (sent("6") - sent("2")) / 4 / float64(workers)
		const head = 48 // bytes before those of a message, one in every round
		heads := float64(wire.Count) * head * float64(mesh.SumSent(1, workers)) / float64(workers)
		if rest := each - float64(wire.Bytes) - heads; rest < -1 || rest > 512 {
			t.Errorf("%s: each sends %.0f bytes a step and %.0f of heads, forecast %d", flags,
				each-heads, heads, wire.Bytes)
		}
	}
}

// TestFitDivides: what is looked for comes in multiples of what a mesh divides it by; four
// processes have room for more experts than one.
func TestFitDivides(t *testing.T) {
	most := map[string]int{}
	for _, axes := range []string{"experts:1x4", "experts:4x1"} {
		o := invoke(t, "fit", "--size", "s512", "--max", "experts", "--mesh", axes,
			"--moe", "sparse", "--policy", "thesis", "--expert-hidden", "2048",
			"--host-memory", "120MiB", "--json")
		var x fitted
		if err := json.Unmarshal([]byte(o.stdout), &x); err != nil {
			t.Fatalf("%v: status %d, %s", err, o.status, o.stderr)
		}
		if x.Max%4 != 0 || x.Next != x.Max+4 || x.NextRefusedBy != "host" || !x.Complete {
			t.Errorf("%s: %+v", axes, x)
		}
		most[axes] = x.Max
	}
	if most["experts:4x1"] < 2*most["experts:1x4"] {
		t.Errorf("%v: four processes have room for few more", most)
	}
}

// TestFitBeyondTheHost: where there is a disk behind the host of four processes, it is the disk
// alone that sets how many experts there is room for.
func TestFitBeyondTheHost(t *testing.T) {
	longtest.Skip(t)
	most := map[string]int{}
	for by, disk := range map[string][]string{"host": nil, "disk": {"--disk-memory", "20MiB"}} {
		var x fitted
		decode(t, succeed(t, with(append([]string{"fit", "--size", "s512", "--max", "experts",
			"--mesh", "experts:4x1", "--moe", "sparse", "--policy", "thesis", "--expert-hidden",
			"2048", "--host-memory", "110MiB", "--json"}, disk...))...), &x)
		if x.NextRefusedBy != by || !x.Complete {
			t.Errorf("%v: %+v", disk, x)
		}
		most[by] = x.Max
	}
	if most["disk"] < 2*most["host"] {
		t.Errorf("%v: a disk of twice the host's memory makes little room", most)
	}
}

// TestMeshResumes: a run in slices saves whole variables, which a run in other slices goes
// on from, and one without; its report is of the slices' plan.
func TestMeshResumes(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	adam := with(tinyMoE, "--optimizer", "adam", "--device-memory", "24MiB")
	succeed(t, with(adam, "--steps", "1", "--save", "run", "--mesh", "experts:2")...)
	for i, mesh := range []string{"experts:4", "", "batch:2"} {
		args := with(adam, "--steps", "2", "--resume", "run/step-00000001.safetensors", "--save",
			fmt.Sprintf("other%d", i))
		if mesh != "" {
			args = append(args, "--mesh", mesh)
		}
		succeed(t, args...)
	}
}

// TestExportOverMesh: four processes that begin with a public checkpoint, and learn next to
// nothing, save one of which export makes the same weights, to the byte, as of a run of one.
func TestExportOverMesh(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	gpt := []string{"train", "--model", "gpt", "--size", "s512", "--data", "text:pairs.tsv",
		"--eval-batches", "1", "--steps"}
	succeed(t, with(gpt, "9", "--save", "run")...) // so that no weight is 0
	succeed(t, "export", "--from", "run", "published")
	again := with(gpt, "1", "--init", "published", "--lr", "1e-30", "--json", "--save")
	succeed(t, with(again, "one")...)
	summaryOf(t, gather(t, inMemory{}, with(again, "four", "--local", "4", "--mesh", "b:2x1,m:2x2",
		"--layout", "batch=b,h/*/weight:0=m,wte/weight:0=b")...))
	want, err := os.ReadFile("published/model.safetensors")
	for _, run := range []string{"one", "four"} {
		succeed(t, "export", "--from", run, run+"-out")
		have, failed := os.ReadFile(run + "-out/model.safetensors")
		if err != nil || failed != nil || !bytes.Equal(have, want) {
			t.Errorf("of the run of %s other weights are exported: %v, %v", run, err, failed)
		}
	}
}

// TestFourProcessesResume: what four processes save, each in slices, one and two go on from,
// too, and four others, with any optimizer: to the losses of a run that was not cut in two, nor
// divided. In the same mesh they have its bits.
func TestFourProcessesResume(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	const last = "/step-00000004.safetensors"
	four := []string{"--mesh", "batch:2x2,m:2x1", "--layout",
		"batch=batch,*/ff/w0:1=m,*/ff/w1:0=m,*/q:0=batch", "--local", "4"}
	for _, optimizer := range []string{"adafactor", "adam"}[:longtest.Count(1, 2)] {
		run := func(steps, save string, args ...string) (losses []float64) {
			t.Helper()
			args = append(with(tiny, "--model", "transformer", "--optimizer", optimizer,
				"--schedule", "constant", "--lr", "0.01", "--eval-every", "4", "--json", "--steps",
				steps, "--save", optimizer+save), args...)
			o := gather(t, inMemory{}, args...)
			summaryOf(t, o)
			lines, _ := trainLines(t, o.stdout)
			for _, l := range lines {
				if l.Type == "step" || l.Type == "eval" {
					losses = append(losses, l.Loss+l.Held)
				}
			}
			return losses
		}
		half := []string{"--resume", optimizer + "half"}
		want := run("4", "one")
		run("2", "half", four...)
		run("4", "uncut", four...)
		for name, args := range map[string][]string{"none": nil, "again": four,
			"two":    {"--mesh", "batch:2x1", "--local", "2"},
			"others": {"--mesh", "m:4x2", "--layout", "*/ff/w0:1=m,*/ff/w1:0=m", "--local", "4"},
		} {
			have := run("4", name, append(half, args...)...)
			if len(want) != 5 || len(have) != 3 { // an evaluation is last
				t.Fatalf("%s: losses %v, of one that was not cut in two %v", name, have, want)
			}
			rest := want[2:]
			for i, loss := range have {
				if math.Abs(loss-rest[i]) > 1e-5*rest[i] {
					t.Errorf("%s, %s: losses %v, of one that was not cut in two %v", optimizer,
						name, have, rest)
				}
			}
		}
		uncut, err := os.ReadFile(optimizer + "uncut" + last)
		again, failed := os.ReadFile(optimizer + "again" + last)
		if err != nil || failed != nil || !bytes.Equal(again, uncut) {
			t.Errorf("%s: in the same mesh they have other bits: %v, %v", optimizer, err, failed)
		}
	}
}

// TestMeshUnderAnyBudget: the bits of a run may depend on its mesh, and never on its budget or
// its policy: nothing that plans in a shorter way, such as where vanilla fits, leaves it out.
func TestMeshUnderAnyBudget(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	weights := func(flags string) string {
		t.Helper()
		run := with(tiny, "--steps", "2", "--eval-batches", "1", "--bleu", "0", "--json")
		s := summaryOf(t, invoke(t, with(run, strings.Fields(flags)...)...))
		return s["weights_sha256"].(string)
	}
	plain, divided := weights(""), weights("--mesh batch:2 --policy vanilla")
	if plain == divided {
		t.Fatal("a mesh has the bits of none: nothing is told apart")
	}
	for _, flags := range longtest.Some(1, []string{"--mesh batch:2 --device-memory 400KiB",
		"--mesh batch:2"}) {
		if weights(flags) != divided {
			t.Errorf("%s: other weights than under --policy vanilla", flags)
		}
	}
	for _, policy := range []string{"auto", "vanilla"} {
		o := gather(t, inMemory{}, with(tiny, "--mesh", "nope:7", "--policy", policy, "--local",
			"2")...)
		if o.status != exitUsage || !strings.Contains(o.stderr, "an axis nope") {
			t.Errorf("%s: status %d, %q", policy, o.status, o.stderr)
		}
	}
}
