package train

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/planner"
)

// tinyTransformer is a real model, with a run that saves.
func tinyTransformer(t *testing.T) Options {
	t.Helper()
	c, err := models.NewTransformerConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Transformer(c)
	if err != nil {
		t.Fatal(err)
	}
	pairs, tok := corpus(t, c.Vocab)
	return Options{Model: &m.Model, Loader: loader(t, pairs, tok, &m.Model), Tokenizer: tok,
		Session: gomem.Options{Threads: 1}, Steps: 3, Seed: 1<<40 + 5, EvalBatches: 2,
		Save: filepath.Join(t.TempDir(), "run"), Scorer: TextScorer(tok, 1)}
}

// evaluated is what of a model evaluates.
func evaluated(t *testing.T, m *nn.Model) *nn.Model {
	t.Helper()
	e, err := (&models.Model{Model: *m}).Evaluation()
	if err != nil {
		t.Fatal(err)
	}
	return &e.Model
}

// TestEvaluateLikeTraining: a checkpoint evaluates to what the run said last, under
// any plan, in less memory, and of all batches if no number is given.
func TestEvaluateLikeTraining(t *testing.T) {
	o := tinyTransformer(t)
	want, _ := mustRun(t, o)
	e := evaluated(t, o.Model)
	x := EvalOptions{Model: e, Executions: o.Model.Executions(), Loader: o.Loader, From: o.Save,
		Batches: 2, Scorer: func() Scorer { return o.Scorer(0, true) }}
	for _, policy := range []planner.Policy{planner.Vanilla, planner.Thesis, planner.Auto} {
		x.Session = gomem.Options{Policy: policy}
		got, err := Evaluate(context.Background(), x)
		if err != nil {
			t.Fatal(err)
		}
		if got.Loss != want.EvalLoss || got.Batches != 2 || got.Units == 0 ||
			got.Metrics["accuracy"] != want.EvalMetrics["accuracy"] ||
			got.Metrics["bleu"] != want.EvalMetrics["bleu"] {
			t.Errorf("%s: %+v, the run had %v %v", policy, got, want.EvalLoss, want.EvalMetrics)
		}
		for _, u := range got.Usage {
			if u.Actual != u.Predicted {
				t.Errorf("%s: %+v", policy, u)
			}
		}
		if n := got.Usage[0].Actual + got.Usage[1].Actual; n >= want.ActualDevicePeak+
			want.ActualHostPeak {
			t.Errorf("%s: %d bytes, training took %d and %d", policy, n, want.ActualDevicePeak,
				want.ActualHostPeak)
		}
	}
	x.Batches, x.Scorer = 0, nil
	if got, err := Evaluate(context.Background(), x); err != nil ||
		got.Batches != o.Loader.HeldOutBatches() {
		t.Errorf("%+v, %v; there are %d batches", got, err, o.Loader.HeldOutBatches())
	}
}

// TestEvaluateRefuses: what cannot be evaluated is said on a line.
func TestEvaluateRefuses(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save, o.Steps = t.TempDir(), 1
	mustRun(t, o)
	other := evaluated(t, toy(toyVocab+1, unigram{}))
	e := evaluated(t, o.Model)
	good := EvalOptions{Model: e, Executions: 1, Loader: o.Loader, From: o.Save}
	for _, c := range []struct {
		change func(*EvalOptions)
		says   string
	}{
		{func(x *EvalOptions) { x.Model = nil }, "model"},
		{func(x *EvalOptions) { x.Loader = nil }, "loader"},
		{func(x *EvalOptions) { x.Executions = 0 }, "executions"},
		{func(x *EvalOptions) { x.Session.Device = gomem.Null }, "computes nothing"},
		{func(x *EvalOptions) { x.From = t.TempDir() }, "there is no checkpoint"},
		{func(x *EvalOptions) { x.Model = other }, "variable w is f32[300] in the checkpoint"},
	} {
		x := good
		c.change(&x)
		if _, err := Evaluate(context.Background(), x); err == nil ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%v does not say %q", err, c.says)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Evaluate(ctx, good); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestLoad: only the variables that are asked for are set.
func TestLoad(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save, o.Steps = t.TempDir(), 2
	mustRun(t, o)
	s := session(t, o.Model)
	vars := s.Variables()
	before, err := s.Get(vars[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := Load(o.Save, s, vars[:1]); err != nil {
		t.Fatal(err)
	}
	saved, err := open(o.Save)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.close()
	want, err := saved.file.Get(vars[0].Node.Name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(vars[0])
	after, err2 := s.Get(vars[1])
	if err != nil || err2 != nil || string(got.Data) != string(want.Data) ||
		string(after.Data) != string(before.Data) {
		t.Errorf("%v, %v: not what was asked for", err, err2)
	}
	stranger := graph.New().Variable("stranger", tensor.Of(graph.F32), graph.Init{})
	err = Load(o.Save, s, []graph.Value{stranger})
	if err == nil || !strings.Contains(err.Error(), "stranger is missing in the checkpoint") {
		t.Errorf("a variable that is not there: %v", err)
	}
}
