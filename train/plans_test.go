package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gomem/gomem"
)

// TestPlansAreMadeOnce: plans that a caller has are those that run, with the
// same results; plans of anything else are refused.
func TestPlansAreMadeOnce(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	want, _ := mustRun(t, o)
	plans := func(targets ...gomem.Target) *gomem.Planned {
		p, err := gomem.Plan(context.Background(), o.Model.Graph, o.Session, targets...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := Targets(o.Model)
	o.Planned = plans(all...)
	if got, _ := mustRun(t, o); got.WeightsSHA256 != want.WeightsSHA256 {
		t.Errorf("with plans made before: %+v, without %+v", got, want)
	}
	r := newRun(o)
	if err := r.open(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	for i, target := range all {
		if r.session.Plan(target.Name) != o.Planned.Results[i].Plan {
			t.Errorf("%s was planned again", target.Name)
		}
	}
	if err := r.session.Close(); err != nil {
		t.Error(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if err := r.open(stopped, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was cancelled before it began: %v", err)
	}

	whole := o.Planned
	other := o
	other.Model = toy(toyVocab, unigram{})
	for _, c := range []struct {
		Options
		plans *gomem.Planned
	}{{other, whole}, {o, plans(all[0])}, {o, plans(all[1], all[0])}, {o, &gomem.Planned{}},
		{o, &gomem.Planned{Model: o.Model.Graph, Targets: all}}} {
		c.Planned = c.plans
		_, err := Run(context.Background(), c.Options)
		if e, ok := errors.AsType[*ErrOption](err); !ok || !strings.Contains(e.Option, "plans") {
			t.Errorf("%v", err)
		}
	}
}
