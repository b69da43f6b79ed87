package planner

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// drawModel draws a graph, random or synthetic.
func drawModel(t *rapid.T) *randgraph.Model {
	if rapid.Bool().Draw(t, "synthetic") {
		return randgraph.Synthetic(rapid.IntRange(20, 120).Draw(t, "nodes"))
	}
	return randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
}

// drawProgram draws a program about which the passes have decided, and how.
func drawProgram(t *rapid.T) (*program.Program, Options) {
	m, o := drawModel(t), randomOptions(t)
	o.EnsureDefaults()
	p, err := decided(m.Graph, training(m), o)
	if err != nil {
		t.Fatal(err)
	}
	return p, o
}

// decided is what the passes decide before anything is lowered.
func decided(g *graph.Graph, t Target, o Options) (*program.Program, error) {
	s, err := newVariant(context.Background(), g, o, []Target{t})
	if err != nil {
		return nil, err
	}
	return s.jobs[0].program, nil
}

// emit makes the plan of a program that has been decided about, without waits, by the
// last passes.
func emit(ctx context.Context, p *program.Program, w candidate, last []program.Pass) (*plan.Plan,
	error) {
	k, err := sketched(ctx, p, last, w.options)
	if err != nil {
		return nil, err
	}
	k.pack(need{}, 0)
	return k.lower(p, title(w.options, w.Tuning), w.options), nil
}

// lowered is the plan of a program on a tuning of the ladder, without waits.
func lowered(t *rapid.T, p *program.Program, o Options, r Tuning) *plan.Plan {
	ctx := context.Background()
	last, err := new(job).schedule(ctx, candidate{o, r})
	if err != nil {
		t.Fatal(err)
	}
	made, err := emit(ctx, p, candidate{o, r}, []program.Pass{last})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// bytesOf walks through views, by their operation's own word.
func bytesOf(v graph.Value) graph.Value {
	for v.Node.Op != nil {
		if _, ok := v.Node.Op.(graph.Viewer); !ok {
			break
		}
		v = v.Node.In[0]
	}
	return v
}

// TestSlotsFollowLives: a slot that holds a value on the device is live while the
// value is there, and no longer than the prefetch asks for.
func TestSlotsFollowLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProgram(t)
		// no prefetch: nothing is early or late
		made := lowered(t, p, o, Tuning{Lookahead: o.Lookahead})
		for i, s := range made.Slots {
			if s.Fixed || s.Space != space.Device {
				continue
			}
			first, last := math.MaxInt, -1
			for k, step := range made.Steps {
				plan.Each(step.Do, func(id plan.SlotID, _ bool) {
					if int(id) == i {
						first, last = min(first, k), k
					}
				})
			}
			if first != s.From || last != s.To {
				t.Fatalf("slot %d (%s) is live from %d to %d and used from %d to %d", i, s.Value,
					s.From, s.To, first, last)
			}
		}
	})
}
