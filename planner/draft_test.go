package planner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// TestDraft: a draft is refused what a plan is refused, and nothing else; it keeps to its budget.
func TestDraft(t *testing.T) {
	draws(t, 1, 30, func(t *rapid.T) {
		m := randgraph.Random(func(n int) int {
			return rapid.IntRange(0, n-1).Draw(t, "pick")
		}, 10)
		by, err := machine.Named(rapid.SampledFrom(machine.Builtin()).Draw(t, "machine"))
		if err != nil {
			t.Fatal(err)
		}
		targets := []Target{training(m)}
		o := Options{Policy: Auto, Machine: by, Effort: 10}
		least, most := span(t, m.Graph, o, targets)
		o.Draft = true
		for _, budget := range []int64{least, rapid.Int64Range(least, most).Draw(t, "budget")} {
			o.DeviceBytes = budget
			p, err := Plan(t.Context(), m.Graph, o, targets...)
			if err != nil {
				t.Fatal(err)
			}
			if p.Peak(space.Device) > budget {
				t.Fatalf("%d bytes of %d", p.Peak(space.Device), budget)
			}
		}
		if o.DeviceBytes = least - 1; o.DeviceBytes > 0 {
			_, err := Plan(t.Context(), m.Graph, o, targets...)
			if _, refused := errors.AsType[*ErrOutOfMemory](err); !refused {
				t.Fatalf("a byte less than the least: %v", err)
			}
		}
	})
}

// asked is a context that counts how often it is asked whether it is done, as searches do
// before each evaluation.
type asked struct {
	context.Context
	times *atomic.Int64
}

func (a asked) Err() error {
	a.times.Add(1)
	return a.Context.Err()
}

// TestDraftIsBrief: a draft takes a small part of the evaluations of a plan.
func TestDraftIsBrief(t *testing.T) {
	longtest.Skip(t)
	m := randgraph.Synthetic(300)
	least, most := span(t, m.Graph, Options{Policy: Auto}, []Target{training(m)})
	for _, budget := range []int64{most / 2, max(least, most/5)}[:longtest.Count(1, 2)] {
		var counts [2]int64
		for i, draft := range []bool{false, true} {
			var times atomic.Int64
			o := Options{Policy: Auto, DeviceBytes: budget, Draft: draft}
			if _, err := Compile(asked{t.Context(), &times}, m.Graph, training(m), o); err != nil {
				t.Fatal(err)
			}
			counts[i] = times.Load()
		}
		if counts[1]*20 > counts[0] {
			t.Errorf("a draft within %d bytes takes %d evaluations, a plan %d", budget, counts[1],
				counts[0])
		}
	}
}
