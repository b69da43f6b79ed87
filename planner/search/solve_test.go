package search

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/program/programtest"
)

// link is a machine for tests: so many operations and bytes of memory a
// nanosecond, and so many bytes of a copy.
type link struct {
	flops, memory, copies float64
	launch                time.Duration
}

func (link) Name() string     { return "test" }
func (link) Shared() float64  { return 0 }
func (l link) Kappa() float64 { return 2 * l.flops / l.copies }

func (l link) Time(n *graph.Node, in space.ID) time.Duration {
	c := n.Cost()
	if in == space.Host {
		return time.Duration(float64(c.Bytes) / l.memory * 9)
	}
	return l.launch + time.Duration(max(float64(c.FLOPs)/l.flops, float64(c.Bytes)/l.memory))
}

func (l link) Copy(_, _ space.ID, bytes int64) time.Duration {
	return time.Duration(float64(bytes) / l.copies)
}

// titan is the machine of most measurements: 4.38 TFLOP/s, 360 GB/s, 12 GB/s.
func titan() link { return link{4380, 360, 12, 5 * time.Microsecond} }

// slow has copies and operations of comparable time for matrices of a few bytes.
func slow() link { return link{0.1, 1, 0.05, 100} }

// eager is a program in creation order, updates as soon as they are ready.
func eager(t testing.TB, g *graph.Graph, fetches []graph.Value,
	updates []graph.NodeID) *program.Program {
	t.Helper()
	p := program.New(g, fetches, updates)
	_, err := program.Run(context.Background(), p,
		[]program.Pass{program.DeadCode(), partition.Pass(partition.DFS, 0)})
	if err != nil {
		t.Fatal(err)
	}
	p.SetOrder(created(p))
	return p
}

func created(p *program.Program) []graph.NodeID {
	succ := p.Successors()
	waits := succ.InDegrees()
	var order []graph.NodeID
	var visit func(id graph.NodeID)
	visit = func(id graph.NodeID) {
		waits[id] = -1
		order = append(order, id)
		for _, s := range succ.Of(id) {
			waits[s]--
		}
		for _, s := range succ.Of(id) {
			if waits[s] == 0 && p.Graph.Node(s).Phase == graph.Update {
				visit(s)
			}
		}
	}
	for _, id := range slices.Sorted(slices.Values(p.Order)) {
		if waits[id] == 0 {
			visit(id)
		}
	}
	return order
}

func randomProgram(t *rapid.T, tb testing.TB) *program.Program {
	m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 12)
	return eager(tb, m.Graph, m.Fetches, m.Updates)
}

const plenty = int64(1) << 50

// TestSchedules: schedules of random graphs under budgets from too little to too
// much are right, and need no more than is said.
func TestSchedules(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := randomProgram(r, t)
		pr := New(p, slow())
		all, err := pr.Solve(context.Background(), Budget{plenty, plenty}, Options{Effort: 20})
		if err != nil || all == nil {
			r.Fatalf("nothing fits everything: %v", err)
		}
		checkDecision(r, p, pr, all)
		percent := rapid.Int64Range(10, 100).Draw(r, "percent")
		o := Options{Effort: rapid.IntRange(1, 150).Draw(r, "effort"),
			NoRecompute: rapid.Bool().Draw(r, "no recompute"),
			NoSwap:      rapid.Bool().Draw(r, "no swap")}
		if rapid.Bool().Draw(r, "homes given") {
			o.Resident = make([]bool, p.Graph.Len())
			for i := range o.Resident {
				o.Resident[i] = rapid.Bool().Draw(r, "resident")
			}
		}
		d, err := pr.Solve(context.Background(), Budget{all.Peak() * percent / 100, plenty}, o)
		if err != nil {
			r.Fatal(err)
		}
		if d != nil {
			checkDecision(r, p, pr, d)
			checkOptions(r, p, o, d)
		}
	})
}

func checkDecision(t rapid.TB, p *program.Program, pr *Problem, d *Decision) {
	t.Helper()
	s := pr.Schedule(d)
	if err := programtest.Verify(p, s); err != nil {
		t.Fatal(err)
	}
	if peak := programtest.Taken(s, space.Device); peak != d.Peak() || peak > d.Budget().Device {
		t.Fatalf("the device needs %d bytes, the decision says %d of %d", peak, d.Peak(),
			d.Budget().Device)
	}
	if peak := programtest.Taken(s, space.Host); peak > d.host || peak > d.Budget().Host {
		t.Fatalf("the host needs %d bytes, the decision says %d of %d", peak, d.host,
			d.Budget().Host)
	}
}

// checkOptions: what is excluded does not happen, and homes are those given.
func checkOptions(t rapid.TB, p *program.Program, o Options, d *Decision) {
	t.Helper()
	swapped, recomputed := d.swapped, d.recomputed
	if o.NoSwap && swapped > 0 || o.NoRecompute && recomputed > 0 {
		t.Fatalf("%+v: %d bytes swapped, %d recomputed", o, swapped, recomputed)
	}
	homes := d.Resident()
	for _, n := range p.Graph.Nodes() {
		leaf := n.Kind == graph.KindVariable || n.Kind == graph.KindConstant
		if leaf && o.Resident != nil && homes[n.ID] != o.Resident[n.ID] {
			t.Fatalf("%s is elsewhere", n.Name)
		}
	}
}
