package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// TestValidate: options that no run can have, each refused on one line.
func TestValidate(t *testing.T) {
	good := toyOptions(t, toy(toyVocab, unigram{}))
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	short := toy(toyVocab, unigram{})
	short.Data[1] = short.Graph.Input("short", good.Model.Seed.Type())
	vector := toy(toyVocab, unigram{})
	vector.EvalMetrics[0].Value = vector.Objectives[0].Updates[0].In[0]
	for _, c := range []struct {
		want string
		edit func(*Options)
	}{
		{"model: a run needs one", func(o *Options) { o.Model = nil }},
		{"model: a run needs one", func(o *Options) { o.Model = &nn.Model{} }},
		{"loader: a run needs one", func(o *Options) { o.Loader = nil }},
		{"steps: -1 is negative", func(o *Options) { o.Steps = -1 }},
		{"nothing to do", func(o *Options) { o.Steps = 0 }},
		{"choose one", func(o *Options) { o.Epochs = 2 }},
		{"epochs: -2 is not", func(o *Options) { o.Epochs = -2 }},
		{"epochs: NaN is not", func(o *Options) { o.Epochs = math.NaN() }},
		{"too many", func(o *Options) { o.Steps, o.Epochs = 0, 1e300 }},
		{"too many", func(o *Options) { o.Steps = 1 << 25 }},
		{"evaluations: -1", func(o *Options) { o.EvalEvery = -1 }},
		{"batches an evaluation: -1", func(o *Options) { o.EvalBatches = -1 }},
		{"keep: -1", func(o *Options) { o.Keep = -1 }},
		{"no directory to save to", func(o *Options) { o.SaveEvery = 1 }},
		{"source i32[4 16], short i32[2]", func(o *Options) { o.Model = short }},
		{"w of the model is f32[vocab:300], want f32[]", func(o *Options) { o.Model = vector }},
		{"there: not a directory", func(o *Options) { o.Save = file }},
		{"not a directory", func(o *Options) { o.Save = filepath.Join(file, "below") }},
		{"no such file", func(o *Options) { o.Resume = filepath.Join(dir, "none") }},
		{"neither save nor resume",
			func(o *Options) { o.Save, o.Session.Device = dir, gomem.Null }},
		{"threads", func(o *Options) { o.Session.Threads = -1 }},
		{`checkpoints: "data" is "\xff", which is not UTF-8`, func(o *Options) {
			o.Save, o.Config = filepath.Join(dir, "new"), map[string]string{"data": "\xff"}
		}},
	} {
		o := good
		c.edit(&o)
		_, err := Run(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not say %q", err, c.want)
		}
		_, option := errors.AsType[*ErrOption](err)
		if _, checkpoint := errors.AsType[*ErrCheckpoint](err); !option && !checkpoint {
			t.Errorf("%v is a %T", err, err)
		}
	}
	o := good
	o.Save = filepath.Join(dir, "new", "deep")
	if err := o.Validate(); err != nil || len(names(t, dir)) != 1 {
		t.Errorf("%v; validation left %v", err, names(t, dir))
	}
}

// TestValidateModel: a model with which no run can do what it says. Without
// objectives, or with one that is never executed, it would train nothing and
// report success.
func TestValidateModel(t *testing.T) {
	good := toyOptions(t, toy(toyVocab, unigram{}))
	foreign := toy(toyVocab, unigram{})
	objective := func(edit func(*nn.Objective)) func(*nn.Model) {
		return func(m *nn.Model) { edit(&m.Objectives[0]) }
	}
	for _, c := range []struct {
		want string
		edit func(*nn.Model)
	}{
		{"no schedule", func(m *nn.Model) { m.Schedule = nil }},
		{"add one with Model.Minimize(loss, optimizer)", func(m *nn.Model) { m.Objectives = nil }},
		{"its seed is none", func(m *nn.Model) { m.Seed = graph.Value{} }},
		{"its seed is rate f32[], want an input i32[2]",
			func(m *nn.Model) { m.Seed = m.LearningRate }},
		{"its learning rate is none", func(m *nn.Model) { m.LearningRate = graph.Value{} }},
		{"its step is step", func(m *nn.Model) { m.Step = foreign.Step }},
		{"input 1 of its data", func(m *nn.Model) { m.Data[1] = foreign.Data[1] }},
		{"executed 0 times", objective(func(o *nn.Objective) { o.Times = 0 })},
		{"executed -1 times", objective(func(o *nn.Objective) { o.Times = -1 })},
		{"executed 16777217 times", objective(func(o *nn.Objective) { o.Times = 1<<24 + 1 })},
		{`objective "": the name`, objective(func(o *nn.Objective) { o.Name = "" })},
		{`objective "eval": the name`, objective(func(o *nn.Objective) { o.Name = "eval" })},
		{`objective "train": the name`, func(m *nn.Model) {
			m.Objectives = append(m.Objectives, m.Objectives[0])
		}},
		{"updates nothing", objective(func(o *nn.Objective) { o.Updates = nil })},
		{"update 0 is no update",
			objective(func(o *nn.Objective) { o.Updates = []*graph.Node{nil} })},
		{"update 0 is no update", objective(func(o *nn.Objective) {
			o.Updates = []*graph.Node{o.Loss.Node}
		})},
		{"update 0 is no update", objective(func(o *nn.Objective) {
			o.Updates = foreign.Objectives[0].Updates
		})},
		{"none of the model",
			objective(func(o *nn.Objective) { o.Loss = graph.Value{} })},
		{"f32[]", objective(func(o *nn.Objective) { o.Loss.Index = 7 })},
		{"want f32[]", objective(func(o *nn.Objective) {
			o.Metrics = []nn.Metric{{Name: "w", Value: foreign.EvalLoss}}
		})},
		{"add one with Model.Evaluate(loss)",
			func(m *nn.Model) { m.EvalLoss = graph.Value{} }},
		{"with Model.Minimize(loss, optimizer) and Model.Evaluate(loss)",
			func(m *nn.Model) { *m = *nn.NewModel() }},
		{"Model.Schedule", func(m *nn.Model) { m.Schedule = nil }},
		{"evaluation: none", func(m *nn.Model) { m.EvalMetrics[0].Value = graph.Value{} }},
		{"output none of the evaluation",
			func(m *nn.Model) { m.EvalOutputs = []graph.Value{{}} }},
		{"sticky", func(m *nn.Model) { m.Graph.Fail(errors.New("sticky")) }},
	} {
		o := good
		o.Model = toy(toyVocab, unigram{})
		c.edit(o.Model)
		events := watch(&o)
		_, err := Run(context.Background(), o)
		e, ok := errors.AsType[*ErrOption](err)
		if !ok || e.Option != "model" || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") || len(*events) > 0 {
			t.Errorf("%v (%T) does not say %q; events %v", err, err, c.want, *events)
		}
	}
}

// TestManyTurns: an objective that is executed several times a step counts its
// turns in a 32-bit float too.
func TestManyTurns(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Model.Objectives[0].Times, o.Steps = 5, maxSteps/5
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	o.Steps++
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "at most 3355443") {
		t.Error(err)
	}
}

// empty has no examples.
type empty struct{ data.Batches }

func (empty) StepsPerEpoch() int { return 0 }

// unreadable has lost its files.
type unreadable struct{ data.Batches }

func (unreadable) Train(int) data.Batch { return data.Batch{} }
func (unreadable) Err() error           { return errors.New("the disk is gone") }

// TestNoContext and no data: errors, too.
func TestNoContext(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	var none context.Context
	if _, err := Run(none, o); err == nil || !strings.Contains(err.Error(), "context: it is nil") {
		t.Error(err)
	}
	o.Loader = unreadable{o.Loader}
	if err := o.Validate(); err == nil || err.Error() != "the disk is gone" {
		t.Error(err)
	}
	o.Loader, o.Steps, o.Epochs = empty{o.Loader}, 0, 3
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "nothing to do") {
		t.Error(err)
	}
}
