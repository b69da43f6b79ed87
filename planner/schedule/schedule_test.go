package schedule

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/swap"
)

// drawProgram draws a graph, random or synthetic, and lets the passes before this
// one decide about it. It is cut into partitions of a size.
func drawProgram(t *rapid.T) (p *program.Program, size int) {
	var m *randgraph.Model
	if rapid.Bool().Draw(t, "synthetic") {
		m = randgraph.Synthetic(rapid.IntRange(20, 120).Draw(t, "nodes"))
	} else {
		m = randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
	}
	strategy := rapid.SampledFrom(partition.Strategies()).Draw(t, "strategy")
	size = rapid.SampledFrom([]int{0, 1, 2, 3, 5, 20}).Draw(t, "partition")
	passes := []program.Pass{
		program.DeadCode(),
		partition.Pass(strategy, size),
		placement.Pass(rapid.Bool().Draw(t, "host")),
	}
	if rapid.Bool().Draw(t, "swap") {
		passes = append(passes, swap.LookAhead(rapid.IntRange(1, 4).Draw(t, "lookahead")))
	}
	return run(t, m, passes), size
}

// run is a program about which passes have decided.
func run(t rapid.TB, m *randgraph.Model, passes []program.Pass) *program.Program {
	p := program.New(m.Graph, m.Fetches, m.Updates)
	if _, err := program.Run(context.Background(), p, passes); err != nil {
		t.Fatal(err)
	}
	return p
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
func touches(p *program.Program, v graph.Value, in space.ID) []int32 {
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

func checkLife(t *rapid.T, p *program.Program, v graph.Value, l *life) {
	onDevice, onHost := touches(p, v, space.Device), touches(p, v, space.Host)
	var away []program.Gap
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
	why := space.Result
	switch {
	case swapped:
		why = space.SwapOut
	case len(onHost) > 0:
		why = space.Gradient
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

// TestAheadAndBehind: the bisections find what going one position after the other
// finds.
func TestAheadAndBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &builder{prefetch: rapid.IntRange(0, 12).Draw(t, "prefetch")}
		begun := 0
		for range rapid.IntRange(1, 20).Draw(t, "positions") {
			b.begun = append(b.begun, begun)
			begun += rapid.IntRange(1, 5).Draw(t, "operations")
		}
		for pos := range b.begun {
			first, last := pos, pos
			for first > 0 && b.begun[pos]-b.begun[first-1] <= b.prefetch {
				first--
			}
			for last+1 < len(b.begun) && b.begun[last+1]-b.begun[pos] <= b.prefetch {
				last++
			}
			a, z := b.ahead(int32(pos)), b.behind(int32(pos))
			if int(a) != first || int(z) != last {
				t.Fatalf("from %d of %v: %d and %d, want %d and %d", pos, b.begun, a, z, first,
					last)
			}
		}
	})
}

// TestBalance: among operations that do not depend on each other no compute stream
// gets more than the others by more than the largest.
func TestBalance(t *testing.T) {
	p := run(t, randgraph.Synthetic(600), []program.Pass{program.DeadCode(),
		partition.Pass(partition.BreadthFirst, 0), placement.Pass(false)})
	b := newBuilder(p, Options{Streams: 3})
	var largest int64
	for pos, id := range p.Order {
		n := p.Graph.Node(id)
		cost := graph.Cost{FLOPs: int64(1 + pos%7), Bytes: int64(pos % 3)}
		alone := &graph.Node{ID: n.ID, Op: n.Op} // no operands to follow
		b.computeStream(alone, int32(pos), cost)
		largest = max(largest, cost.FLOPs+cost.Bytes)
	}
	least, most := int64(math.MaxInt64), int64(0)
	for _, load := range b.load {
		least, most = min(least, load), max(most, load)
	}
	if most-least > largest {
		t.Errorf("loads %v differ by more than %d", b.load, largest)
	}
}
