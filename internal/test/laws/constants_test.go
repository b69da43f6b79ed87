package laws_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// TestPlansOfConstants: the first law holds for models with many constants, which may be folded and
// computed again.
func TestPlansOfConstants(t *testing.T) { plansDoNotAffect(t, randgraph.Constants, 1) }

// TestConstantsAtLeast: within the smallest budget that auto is granted a model with many constants
// has the bits of a loop without plans and takes that budget; and the least is none of what each of
// the graphs needs alone, whose constants are as they are, folded or computed again.
func TestConstantsAtLeast(t *testing.T) {
	ways := map[string]bool{}
	for i := range longtest.Count(12, 300) {
		m := randgraph.Constants(rand.New(rand.NewPCG(uint64(i), 1)).IntN, 4)
		now := constantsAtLeast(t, m)
		ways[made(m.Graph, now)] = true
	}
	for _, way := range []string{"folded", "unfolded"} {
		if !ways[way] {
			t.Errorf("no graph is %s: %v", way, ways)
		}
	}
}

// constantsAtLeast checks a model, and returns the graph that is planned.
func constantsAtLeast(t *testing.T, m *randgraph.Model) *graph.Graph {
	target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
	o := gomem.Options{Policy: planner.Auto, Effort: 5}
	want, err := trial.Plain(m)
	if err != nil {
		t.Fatal(err)
	}
	least, err := gomem.MinDevice(t.Context(), m.Graph, o, target)
	if err != nil {
		t.Fatal(err)
	}
	stated, err := planner.MinDevice(t.Context(), m.Graph, target, o.Planning())
	if err != nil || least > stated {
		t.Fatalf("the minimum grows from %d to %d (%v)", stated, least, err)
	}
	o.DeviceBytes = least
	p, err := gomem.Plan(t.Context(), m.Graph, o, target)
	if err != nil {
		t.Fatal(err)
	}
	if have := p.Peak(space.Device); have != least {
		t.Fatalf("the peak is %d within %d", have, least)
	}
	got, err := trial.Trained(m, o)
	if err != nil || !want.Equal(got) {
		t.Fatalf("other bits within %d bytes: %v", least, err)
	}
	return p.Graph
}

// made says what became of a graph's constants.
func made(was, now *graph.Graph) string {
	if n, m := bytesOfConstants(was), bytesOfConstants(now); n > m {
		return "unfolded"
	} else if n < m {
		return "folded"
	}
	return "as stated"
}

func bytesOfConstants(g *graph.Graph) (sum int64) {
	for _, n := range g.Nodes() {
		if n.Kind == graph.KindConstant {
			sum += n.Out[0].Bytes()
		}
	}
	return sum
}
