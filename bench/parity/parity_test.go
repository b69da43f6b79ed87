package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/bench/internal/turns"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/longtest"
)

// TestPyTorch is what takes PyTorch, which is slow to start.
func TestPyTorch(t *testing.T) {
	longtest.Skip(t)
	p, err := startPeer(context.Background(), "/usr/bin/python3")
	if missing, ok := errors.AsType[*torch.ErrMissing](err); ok {
		t.Skip("nothing to compare with: ", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Run("parity", func(t *testing.T) { testParity(t, p) })
	t.Run("bfloat16", func(t *testing.T) { testBF16(t, p) })
	t.Run("disagreement", func(t *testing.T) { testDisagreement(t, p) })
	t.Run("timing", testTiming)
	t.Run("failures", func(t *testing.T) { testFailures(t, p) })
	if err := p.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", p.dir, err)
	}
}

// testParity: the loss and every gradient of every model are PyTorch's.
func testParity(t *testing.T, p *peer) {
	var b bytes.Buffer
	if err := table(context.Background(), p, cases(smallest), &b); err != nil {
		t.Errorf("%v\n%s", err, &b)
	}
	if rows := strings.Count(b.String(), "\n| "); rows != 1+len(cases(smallest)) {
		t.Errorf("%d rows for %d models:\n%s", rows, len(cases(smallest)), &b)
	}
}

// testBF16: in bfloat16 losses and gradients are as near to the truth as with PyTorch's autocast
// to it, which keeps residuals and norms in f32: half of the gradients within 1.25 times its
// error, and the worst within twice that. Of other models, autocast on the processor does not
// differentiate some operator.
func testBF16(t *testing.T, p *peer) {
	for _, c := range cases(smallest) {
		if !strings.HasPrefix(c.name, "transformer") && !strings.HasPrefix(c.name, "gpt") &&
			!strings.HasPrefix(c.name, "resnet") {
			continue
		}
		s, err := c.build()
		if err != nil {
			t.Fatal(err)
		}
		r, err := executeIn(context.Background(), s, precision.BF16)
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.ask(r)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if d := math.Abs(float64(r.loss)-a.Loss) / a.Loss; d > 2e-3 {
			t.Errorf("%s: loss %v, want %v; PyTorch's %v", c.name, r.loss, a.Loss, a.Loss32)
		}
		var ours, theirs []float64
		for _, g := range a.Gradients {
			ours, theirs = append(ours, g.Error), append(theirs, g.Error32)
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		n := len(ours)
		t.Logf("%s: gradients' errors %.4f and at worst %.4f, PyTorch's %.4f and %.4f", c.name,
			ours[n/2], ours[n-1], theirs[n/2], theirs[n-1])
		if ours[n/2] > 1.25*theirs[n/2] || ours[n-1] > 2*theirs[n-1] {
			t.Errorf("%s: errors are larger than PyTorch's", c.name)
		}
	}
}

// deepSpeechRecord is that of the model with the fewest gradients.
func deepSpeechRecord(t *testing.T) record {
	t.Helper()
	s, err := at(smallest).deepSpeech(false)()
	if err != nil {
		t.Fatal(err)
	}
	r, err := execute(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// testDisagreement: an error of one element of one gradient is found and named,
// and so is one of the loss, and what is not a number.
func testDisagreement(t *testing.T, p *peer) {
	r := deepSpeechRecord(t)
	check := func(what string, agree bool) answer {
		t.Helper()
		a, err := p.ask(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := (result{record: r, answer: a}).agrees(); got != agree {
			t.Errorf("%s: agree %v, want %v", what, got, agree)
		}
		return a
	}
	check("as computed", true)
	largest := r.tensors["gradient/3/weight"].F32()
	at := 0
	for i, x := range largest {
		if math.Abs(float64(x)) > math.Abs(float64(largest[at])) {
			at = i
		}
	}
	for _, wrong := range []float32{largest[at] * 1.001, -largest[at], float32(math.NaN()),
		float32(math.Inf(1))} {
		right := largest[at]
		largest[at] = wrong
		a := check("a wrong element", false)
		if w := (result{answer: a}).worst(); w.Name != "3/weight" {
			t.Errorf("the worst gradient is %v, want that of 3/weight", w)
		}
		largest[at] = right
	}
	r.loss *= 1.001
	check("a wrong loss", false)
	r.loss = float32(math.NaN())
	check("a loss that is not a number", false)
}

// TestRecord: an execution brings all that the comparison needs, and is the same
// whenever it is asked for.
func TestRecord(t *testing.T) {
	r, again := deepSpeechRecord(t), deepSpeechRecord(t)
	if r.gradients != 12 || r.loss != again.loss {
		t.Errorf("%d gradients of losses %v and %v, want 12 of one", r.gradients, r.loss,
			again.loss)
	}
	for _, name := range r.names {
		x := r.tensors[name]
		if !bytes.Equal(x.Data, again.tensors[name].Data) {
			t.Errorf("%s differs between two executions", name)
		}
		parameter, ok := strings.CutPrefix(name, "gradient/")
		if ok && !x.Type.Equal(r.tensors["parameter/"+parameter].Type) {
			t.Errorf("%s is %s, unlike its parameter", name, x.Type)
		}
	}
	if frames := r.tensors["input/frames"].I32(); frames[0] != 40 || frames[3] != 0 {
		t.Errorf("frames are %v, want the first utterance to have all, and the last none", frames)
	}
}

// TestBatches: what a loader may give is there, and no id is too large.
func TestBatches(t *testing.T) {
	for _, c := range cases(smallest) {
		s, err := c.build()
		if err != nil {
			t.Fatal(err)
		}
		feeds := s.batch(newRand(2))
		for _, v := range s.model.Graph.Inputs() {
			x, ok := feeds[v.Value(0)]
			if !ok || !x.Type.Equal(v.Out[0]) {
				t.Fatalf("%s: input %s is fed with %s", c.name, v.Name, x.Type)
			}
			if v.Out[0].DType != graph.I32 || v.Name == "seed" || v.Name == "frames" ||
				v.Name == "lengths" {
				continue
			}
			padding, padded := int32(0), 0
			if v.Name == "targets" { // gpt's ids are all in use
				padding = -1
			}
			for _, id := range x.I32() {
				if id < padding || int(id) >= max(2, s.model.Classes) {
					t.Errorf("%s: %s has id %d of %d", c.name, v.Name, id, s.model.Classes)
				}
				if id == padding {
					padded++
				}
			}
			if padded == 0 || padded == len(x.I32()) {
				t.Errorf("%s: %d of %d ids of %s are padding", c.name, padded, len(x.I32()), v.Name)
			}
		}
	}
}

// testTiming: models train on both sides from the same losses, and noise is the same.
func testTiming(t *testing.T) {
	o, err := parse([]string{"-time", "-size", smallest, "-rounds", "1"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.watch = func(...int) *turns.Watch { return &turns.Watch{} } // which waits for nobody
	for _, c := range o.cases {
		if c.name != "gpt" && c.name != "wgan, critic" {
			continue
		}
		r, err := timed(context.Background(), o, c, 1)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if r.apart >= tolerance || len(r.rounds) != 1 || r.rounds[0].Times[1] <= 0 {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// TestTimingCells: a ratio is to the faster of PyTorch's, and to the other where the compiler
// fails.
func TestTimingCells(t *testing.T) {
	r := timing{name: "m", threads: 2, rounds: turns.Rounds{
		{Times: []float64{1, 4, 2}, Work: []float64{1, 4, 4}}}}
	if got := strings.Join(r.cells(), " "); got !=
		"m 2 1000.0 4000.0 2000.0 0.50 0.25 0e+00 0 of 1" {
		t.Errorf("row is %q", got)
	}
	r.uncompiled = errors.New("no compiler")
	if got := strings.Join(r.cells(), " "); got !=
		"m 2 1000.0 4000.0 fails 0.25 0.25 0e+00 0 of 1" {
		t.Errorf("row is %q", got)
	}
}

// testFailures: what PyTorch cannot do is told in a line, and the next record
// is served nevertheless.
func testFailures(t *testing.T, p *peer) {
	r := deepSpeechRecord(t)
	kind := r.metadata["kind"]
	r.metadata["kind"] = "perceptron"
	if _, err := p.ask(r); err == nil || !strings.Contains(err.Error(), "perceptron") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("unknown model: %v", err)
	}
	r.metadata["kind"] = kind
	if _, err := p.ask(r); err != nil {
		t.Error(err)
	}
}

// TestNothingToCompareWith: a missing interpreter, or one without PyTorch, is no
// failure; one that breaks is.
func TestNothingToCompareWith(t *testing.T) {
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "python3")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ python, said, failed string }{
		{filepath.Join(t.TempDir(), "python3"), "no Python interpreter at", ""},
		{script(`echo '{"missing": "No module named torch"}'`), "No module named torch", ""},
		{script(`echo 'Illegal instruction' >&2; exit 3`), "",
			"PyTorch stopped: Illegal instruction"},
		{script(`exit 3`), "", "PyTorch stopped: exit status 3"},
		{script(`echo hello`), "", `PyTorch stopped: answer "hello\n"`},
	} {
		var b bytes.Buffer
		err := run(context.Background(), options{cases: cases(smallest), python: c.python}, &b)
		if got := b.String(); !strings.Contains(got, c.said) ||
			strings.Count(got, "\n") != min(1, len(c.said)) {
			t.Errorf("%s: says %q, want one line with %q", c.python, got, c.said)
		}
		if (err != nil) != (c.failed != "") || err != nil &&
			!strings.Contains(err.Error(), c.failed) {
			t.Errorf("%s: error %v, want %q", c.python, err, c.failed)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-model", "perceptron"}, `-model "perceptron": no model has that in its name`},
		{[]string{"extra"}, `unexpected argument "extra"`},
		{[]string{"-sizes", "base"}, "flag provided but not defined: -sizes"},
	} {
		if _, err := parse(c.args, io.Discard); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
	if o, err := parse(nil, io.Discard); err != nil || len(o.cases) != len(cases(smallest)) {
		t.Errorf("no arguments: %d cases, %v", len(o.cases), err)
	}
}
