package compile

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/space"
)

// drawModel draws a graph, random or synthetic.
func drawModel(t *rapid.T) *randgraph.Model {
	if rapid.Bool().Draw(t, "synthetic") {
		return randgraph.Synthetic(rapid.IntRange(20, 120).Draw(t, "nodes"))
	}
	return randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
}

// drawProgram draws a program about which the passes have decided, and how.
func drawProgram(t *rapid.T) (*pass.Program, Options) {
	m, o := drawModel(t), randomOptions(t)
	o.EnsureDefaults()
	p, err := program(m.Graph, training(m), o)
	if err != nil {
		t.Fatal(err)
	}
	return p, o
}

// program is what the passes decide before anything is lowered.
func program(g *graph.Graph, t Target, o Options) (*pass.Program, error) {
	s, err := newSearch(context.Background(), g, o, []Target{t})
	if err != nil {
		return nil, err
	}
	return s.jobs[0].program, nil
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

// touches is where a value is made or read in a space, one position after the
// other, by a plain look at every operation.
func touches(p *pass.Program, v graph.Value, in space.ID) []int32 {
	var out []int32
	for pos, id := range p.Order {
		n := p.Graph.Node(id)
		touched := n == v.Node
		for _, operand := range n.In {
			touched = touched || bytesOf(operand) == v
		}
		if touched && n.Executes() && p.Place[id] == in {
			out = append(out, int32(pos))
		}
	}
	return out
}

// TestLives holds every life against a plain recount of who touches the value and
// the absences that were decided.
func TestLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _ := drawProgram(t)
		all := lives(p)
		for _, n := range p.Graph.Nodes() {
			for i := range n.Out {
				v := n.Value(i)
				l := all[p.ValueIndex(v)]
				has := p.Live[n.ID] && (n.Kind == graph.KindInput || n.Executes())
				if has != (l != nil) {
					t.Fatalf("%s has a life: %v", v, l != nil)
				}
				if l != nil {
					checkLife(t, p, v, l)
				}
			}
		}
	})
}

func checkLife(t *rapid.T, p *pass.Program, v graph.Value, l *life) {
	onDevice, onHost := touches(p, v, space.Device), touches(p, v, space.Host)
	var away []pass.Gap
	if p.Away != nil {
		away = p.Away[p.ValueIndex(v)]
	}
	var covered []int32
	for _, s := range l.stays {
		for _, u := range onDevice {
			if s.first <= u && u <= s.last {
				covered = append(covered, u)
			}
		}
		if !slices.Contains(onDevice, s.first) || !slices.Contains(onDevice, s.last) {
			t.Fatalf("%s stays from %d to %d, it is used at %v", v, s.first, s.last, onDevice)
		}
	}
	if !slices.Equal(covered, onDevice) {
		t.Fatalf("%s is used at %v, its stays cover %v", v, onDevice, covered)
	}
	if want := min(1, len(onDevice)) + len(away); len(l.stays) != want {
		t.Fatalf("%s stays %d times, want %d: it is away %v", v, len(l.stays), want, away)
	}
	for i, g := range away {
		if l.stays[i].last != g.After || l.stays[i+1].first != g.Before {
			t.Fatalf("%s is away %v, its stays are %v", v, away, l.stays)
		}
	}
	fetched := slices.ContainsFunc(p.Fetches, func(f graph.Value) bool { return bytesOf(f) == v })
	swapped := len(l.stays) > 1
	copied := swapped || len(onHost) > 0 || fetched
	why := plan.Result
	switch {
	case swapped:
		why = plan.SwapOut
	case len(onHost) > 0:
		why = plan.Gradient
	}
	switch {
	case l.fetched != fetched || l.value != v:
		t.Fatalf("%s is fetched: %v", v, l.fetched)
	case v.Node.Leaf():
		if l.producedAt != -1 || l.onHost {
			t.Fatalf("input %s is made at %d", v, l.producedAt)
		}
	case l.producedAt != int32(slices.Index(p.Order, v.Node.ID)),
		l.onHost != (p.Place[v.Node.ID] == space.Host):
		t.Fatalf("%s is made at %d, on the host: %v", v, l.producedAt, l.onHost)
	case l.hostCopy != copied || copied && l.why != why:
		t.Fatalf("%s is copied to the host: %v (%s), want %v (%s)", v, l.hostCopy, l.why, copied,
			why)
	}
}

// TestSlotsFollowLives: a slot that holds a value on the device is live while the
// value is there, and no longer than the prefetch asks for.
func TestSlotsFollowLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProgram(t)
		made := lower(p, o, Rung{Lookahead: o.Lookahead}) // no prefetch: nothing is early or late
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
