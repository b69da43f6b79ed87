package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

// losing are batches whose files are gone from an execution on.
type losing struct {
	data.Batches
	from int
	err  error
}

func (l *losing) Train(execution int) data.Batch {
	if execution >= l.from {
		l.err = errors.New("the disk is gone")
	}
	return l.Batches.Train(execution)
}

func (l *losing) Err() error { return l.err }

// TestRescue: an error that is not the variables' fault does not lose them. Between
// the objectives of a step they are nothing to continue from.
func TestRescue(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	want, _ := mustRun(t, o)
	whole := o.Loader
	for _, c := range []struct {
		times, from int // executions a step, and the first that cannot be read
		saved       int
	}{{1, 1, 1}, {1, 7, 7}, {1, 19, 19}, {2, 8, 4}, {2, 9, 0}, {3, 1, 0}} {
		o := o
		o.Model = toy(toyVocab, unigram{})
		o.Model.Objectives[0].Times = c.times
		o.Loader, o.Save = &losing{Batches: whole, from: c.from}, filepath.Join(t.TempDir(), "run")
		s, err := Run(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), "the disk is gone") {
			t.Fatalf("%+v: %v", c, err)
		}
		found, err := Inspect(o.Save)
		if c.saved == 0 && err == nil || found.Step != c.saved || s.Checkpoint != found.Path {
			t.Errorf("%+v: summary %+v, found %+v, %v", c, s, found, err)
		}
		if c.saved == 0 || c.times > 1 {
			continue
		}
		o.Loader, o.Resume = whole, o.Save
		if s, _ := mustRun(t, o); s.WeightsSHA256 != want.WeightsSHA256 {
			t.Errorf("%+v: %+v, want %+v", c, s, want)
		}
	}
}

// TestRescueFails: both errors are said on one line.
func TestRescueFails(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save, o.Loader = t.TempDir(), &losing{Batches: o.Loader, from: 7}
	o.Observe = func(e Event) {
		if e.Kind == Step && e.Step == 7 {
			if err := os.Mkdir(filepath.Join(o.Save, fileName(7)), 0o700); err != nil {
				t.Error(err)
			}
		}
	}
	_, err := Run(context.Background(), o)
	if err == nil || !strings.HasPrefix(err.Error(), "the disk is gone; and then checkpoint ") ||
		strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}

// unwritable is a scorer whose disk is full.
type unwritable struct{}

func (unwritable) Score(data.Batch, []gomem.Tensor,
	func([]gomem.Tensor) ([]gomem.Tensor, error)) error {
	return errors.New("no space for pictures")
}

func (unwritable) Metrics() (map[string]float64, error) { return nil, nil }

// TestRescueFromEvaluation: what an evaluation cannot write does not lose a run.
func TestRescueFromEvaluation(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save, o.EvalEvery = t.TempDir(), 6
	o.Scorer = func(int, bool) Scorer { return unwritable{} }
	_, err := Run(context.Background(), o)
	if err == nil || err.Error() != "no space for pictures" {
		t.Error(err)
	}
	if c, err := Inspect(o.Save); err != nil || c.Step != 6 {
		t.Errorf("%+v, %v", c, err)
	}
}

// asking is a scorer that stops the run and evaluates on.
type asking struct {
	stop  func()
	asked int
}

func (a *asking) Score(b data.Batch, _ []gomem.Tensor,
	again func([]gomem.Tensor) ([]gomem.Tensor, error)) error {
	a.stop()
	for range 1000 {
		a.asked++
		if _, err := again(b.Inputs); err != nil {
			return err
		}
	}
	return nil
}

func (*asking) Metrics() (map[string]float64, error) { return nil, nil }

// TestInterruptedEvaluation: an evaluation is given up at once, and the run is
// saved as it stands.
func TestInterruptedEvaluation(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	want, _ := mustRun(t, o)
	ctx, stop := context.WithCancel(context.Background())
	a := &asking{stop: stop}
	o.Save, o.EvalEvery = t.TempDir(), 6
	o.Scorer = func(int, bool) Scorer { return a }
	events := watch(&o)
	s, err := Run(ctx, o)
	if err != nil || !s.Interrupted || s.Steps != 6 || a.asked != 1 || s.EvalBatches != 0 {
		t.Errorf("%+v, %v; asked %d times", s, err, a.asked)
	}
	for _, e := range *events {
		if e.Kind == Eval {
			t.Errorf("%+v", e)
		}
	}
	o.Resume, o.EvalEvery, o.Scorer = o.Save, 0, nil
	if s, _ := mustRun(t, o); s.WeightsSHA256 != want.WeightsSHA256 {
		t.Errorf("%+v, want %+v", s, want)
	}
}

// outside are batches with an id that is none of the vocabulary.
type outside struct{ data.Batches }

func (o outside) Train(execution int) data.Batch {
	b := o.Batches.Train(execution)
	if execution == 5 {
		b.Inputs = append([]gomem.Tensor{}, b.Inputs...)
		b.Inputs[1] = tensor.FromI32(make([]int32, toyPairs*toyLength), toyPairs, toyLength)
		b.Inputs[1].I32()[3] = toyVocab
	}
	return b
}

// TestRescueFromAKernel: an operation that fails before any update loses nothing.
func TestRescueFromAKernel(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save, o.Loader = t.TempDir(), outside{o.Loader}
	_, err := Run(context.Background(), o)
	if failed, ok := errors.AsType[*gomem.StepError](err); !ok || !failed.Intact() {
		t.Fatalf("%v", err)
	}
	if c, err := Inspect(o.Save); err != nil || c.Step != 5 {
		t.Errorf("%+v, %v", c, err)
	}
}
