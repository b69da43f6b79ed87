package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/turns"
	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// small is a model of a kind that takes no time.
func small(kind string) config {
	return config{Kind: kind, Layers: 2, Width: 16, Heads: 2, Hidden: 24, Experts: 4, Vocab: 50,
		Batch: 2, Length: 6}
}

func smallTrainer(t *testing.T, kind string) *trainer {
	t.Helper()
	m, err := build(small(kind))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := newTrainer(t.Context(), m, gomem.Options{Threads: 1}.With(resident))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.session.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// TestModelsAgreeWithPyTorch is the comparison's premise: both sides compute the
// same, from the gradients to the update.
func TestModelsAgreeWithPyTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("starting PyTorch takes seconds")
	}
	o, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range names() {
		t.Run(kind, func(t *testing.T) {
			tr := smallTrainer(t, kind)
			initial, err := tr.initial()
			if err != nil {
				t.Fatal(err)
			}
			k := task{config: tr.config, Threads: 1, Rate: learningRate,
				BalanceWeight: balanceWeight, CapacityFactor: capacityFactor}
			p, err := startPeer(t.Context(), o.python, k, initial)
			if err != nil {
				t.Skip(err)
			}
			if _, err := warm(t.Context(), tr, []*peer{p}); err != nil {
				t.Error(err)
			}
			if m, err := p.memory(); err != nil || m.State < 2*m.Parameters ||
				m.Step < m.Parameters {
				t.Errorf("memory %+v, %v: want the state to be two of the parameters, and a step "+
					"to have gradients", m, err)
			}
			if list, err := p.profile(); err != nil || len(list) == 0 || list[0].Name == "" ||
				list[0].Calls < 1 {
				t.Errorf("profile %v, %v", list, err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestModelsLearn: the loss begins near that of guessing, and falls.
func TestModelsLearn(t *testing.T) {
	for _, kind := range names() {
		tr := smallTrainer(t, kind)
		var losses []float64
		for range 30 {
			_, loss, err := tr.train(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, loss)
		}
		first, last := losses[0], losses[len(losses)-1]
		if guess := math.Log(50); math.Abs(first-guess) > 1.5 || !(last < first) {
			t.Errorf("%s: loss %v, then %v; guessing has %v", kind, first, last, guess)
		}
	}
}

// TestSizes: the parameters of the tables' models by closed form.
func TestSizes(t *testing.T) {
	const d, ff, vocab, e = 512, 2048, 32000, 32
	attention, norm, forward := 4*(d*d+d), 2*d, 2*d*ff+ff+d
	moe := vocab*d + 2*(attention+2*norm+d*e+2*e*d*ff)
	want := map[string]int{
		"transformer": vocab*d + 6*(attention+forward+2*norm) + 6*(2*attention+forward+3*norm),
		"moe-einsum":  moe,
		"moe-gather":  moe,
	}
	for _, c := range configs() {
		m, err := build(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.graph.Parameters(); got != int64(want[c.Kind]) {
			t.Errorf("%s has %d parameters, want %d", c.Kind, got, want[c.Kind])
		}
	}
	if b := (&builder{model: &model{config: configs()[1]}}); b.capacity() != 20 {
		t.Errorf("an expert has %d slots, want 1.25 of 16", b.capacity())
	}
}

func TestBadModels(t *testing.T) {
	if _, err := build(small("wgan")); err == nil || !strings.Contains(err.Error(), `"wgan"`) {
		t.Errorf("error %v, want it to name the model", err)
	}
	c := small("transformer")
	c.Heads = 3
	if _, err := build(c); err == nil || !strings.Contains(err.Error(), "model.go") {
		t.Errorf("error %v, want it to name the line", err)
	}
}

func TestParse(t *testing.T) {
	o, err := parse(nil)
	if err != nil || len(o.models) != 3 || o.rounds != 9 || o.threads[0] != runtime.GOMAXPROCS(0) ||
		o.threads[len(o.threads)-1] != 1 {
		t.Errorf("defaults are %+v, %v", o, err)
	}
	o, err = parse([]string{"-model", "moe-gather", "-threads", "1"})
	if err != nil || len(o.models) != 1 || o.models[0].Kind != "moe-gather" ||
		!slices.Equal(o.threads, []int{1}) {
		t.Errorf("options are %+v, %v", o, err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-model", "resnet"}, "want one of transformer"},
		{[]string{"-threads", "-1"}, "-threads -1"},
		{[]string{"-threads", "100000"}, "-threads 100000"},
		{[]string{"-rounds", "0"}, "-rounds 0"},
		{[]string{"all"}, `"all"`},
	} {
		if _, err := parse(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.args, err, c.want)
		}
	}
}

// TestMissingPeer: the error is one line that says why.
func TestMissingPeer(t *testing.T) {
	c := small("transformer")
	_, err := startPeer(t.Context(), "/no/such/python", task{config: c, Threads: 1},
		&tensors{})
	if err == nil || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "/no/such/python") {
		t.Errorf("error %v", err)
	}
	r := outcome{config: c, threads: 1, missing: err, rounds: turns.Rounds{{Times: []float64{0.5}}}}
	if cells := strings.Join(r.timeCells(), " | "); !strings.Contains(cells, "500.0 | missing (") ||
		!strings.Contains(cells, "python3-torch") {
		t.Errorf("row is %q", cells)
	}
	var w strings.Builder
	reportMemory(&w, []outcome{r, r})
	if strings.Count(w.String(), "transformer") != 1 || !strings.Contains(w.String(), "missing") {
		t.Errorf("memory is %s", w.String())
	}
}

// TestSlowPeer: a PyTorch that multiplies with the wrong library is no peer, and
// there is no ratio to it.
func TestSlowPeer(t *testing.T) {
	for _, c := range []struct {
		blas string
		want string // "": good
	}{
		{`[]`, ""},
		{`[{"path": "/lib/libblas.so.3", "parallel": -1}, ` +
			`{"path": "/lib/libopenblasp.so", "parallel": 2}]`, ""},
		{`[{"path": "/lib/libblas.so.3", "parallel": -1}]`, "/lib/libblas.so.3"},
		{`[{"path": "/lib/libopenblasp.so", "parallel": 1}]`, "/lib/libopenblasp.so"},
	} {
		python := filepath.Join(t.TempDir(), "python")
		script := "#!/bin/sh\necho '{\"about\": \"PyTorch 1\", \"blas\": " + c.blas +
			"}'\necho '{}'\nexec cat >/dev/null\n"
		if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		p, err := startRival(t.Context(), python,
			task{config: small("transformer"), Threads: 1}, &tensors{})
		if c.want == "" {
			if err != nil || p.About != "PyTorch 1" {
				t.Errorf("%s: %v", c.blas, err)
			} else if err := p.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "apt-get install libopenblas0-openmp") {
			t.Errorf("%s: %v", c.blas, err)
			continue
		}
		r := outcome{config: small("transformer"), threads: 1, missing: err,
			rounds: turns.Rounds{{Times: []float64{0.5}}}}
		if cells := r.timeCells(); !strings.Contains(cells[3], c.want) || cells[4]+cells[5] != "" {
			t.Errorf("a ratio in %q", cells)
		}
	}
}

// TestProfile: launches are added up by operation and sizes; copies are not.
func TestProfile(t *testing.T) {
	m, err := build(small("transformer"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := gomem.Plan(t.Context(), m.graph, gomem.Options{NoFusion: true}.With(resident),
		m.target())
	if err != nil {
		t.Fatal(err)
	}
	var events []trace.Event
	for i := range p.Results[0].Plan.Steps {
		events = append(events, trace.Event{Step: i, Start: time.Second,
			End: time.Second + time.Microsecond})
	}
	got := newProfile(p, events, time.Second)
	launches := p.Results[0].Plan.Launches()
	if want := time.Duration(launches) * time.Microsecond; got.kernels != want {
		t.Errorf("kernels took %v, want %v", got.kernels, want)
	}
	calls := 0
	for _, g := range got.groups {
		calls += g.calls
		if g.name == "matmul 2×6×16, 16×24 → 2×6×24" &&
			(g.calls != 4 || g.cost.FLOPs != 4*2*12*16*24) {
			t.Errorf("group is %+v", g)
		}
	}
	if calls != launches || got.groups[0].calls < got.groups[1].calls {
		t.Errorf("%d calls, the first of %d", calls, got.groups[0].calls)
	}
	if s := sizes(tensor.Of(graph.F32)); s != "1" {
		t.Errorf("a scalar is %q", s)
	}
	var w strings.Builder
	r := outcome{config: m.config, threads: 2, profile: got,
		operators: []operator{{"aten::mm", "[[1, 2]]", 3, 0.5}}}
	reportProfiles(&w, []outcome{r})
	for _, want := range []string{"transformer, 2 threads", "| aten::mm [[1, 2]] | 3 | 500.0 |"} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, w.String())
		}
	}
}
