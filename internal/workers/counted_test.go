package workers

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/planner"
)

// flows are, of so many workers, how many of at most so many rows go from each to each: any
// numbers, nothing at all, everything, and all to one.
func flows(workers, most int) [][][]int32 {
	list := make([][][]int32, 4)
	for from := range workers {
		rows := make([][]int32, 4)
		for to := range workers {
			toOne := 0
			if to == workers-1 {
				toOne = most
			}
			for k, n := range []int{(from*from + 2*to + from*to) % (most + 1), 0, most, toOne} {
				rows[k] = append(rows[k], int32(n))
			}
		}
		for k := range list {
			list[k] = append(list[k], rows[k])
		}
	}
	return list
}

// swapped is what a worker has in the end of what those of its line have, if rows go by a flow,
// and how many have come. Gradients go backward.
func swapped(in [][]float32, flow [][]int32, place, most int, backward bool) (out []float32,
	came []int32) {
	block := len(in[0]) / len(in)
	for with, x := range in {
		n := flow[with][place]
		if backward {
			n = flow[place][with]
		}
		got := make([]float32, block)
		copy(got[:int(n)*(block/most)], x[place*block:])
		out, came = append(out, got...), append(came, n)
	}
	return out, came
}

// countedStep is a worker's session of a step that sends counted rows, and gradients of them.
type countedStep struct {
	session      *gomem.Session
	x, w, counts graph.Value
	feeds        gomem.Feeds
}

const mostRows, rowWidth = 5, 3

func newCountedStep(t *testing.T, m *Member, o gomem.Options, along string, rank,
	parts int) (*countedStep, error) {
	g := graph.New()
	c := &countedStep{x: g.Input("x", graph.Of(graph.F32, parts*mostRows, rowWidth)),
		w:      g.Input("w", graph.Of(graph.F32, parts*mostRows, rowWidth)),
		counts: g.Input("counts", graph.Of(graph.I32, parts)), feeds: gomem.Feeds{}}
	y, came := ops.AllToAllV(c.x, c.counts, "y", along, parts)
	dx := autodiff.Grad(ops.Sum(ops.Mul(y, c.w)), c.x)[0]
	for i, v := range []graph.Value{c.x, c.w, c.counts} {
		c.feeds[v] = gomem.NewTensor(v.Type())
		whole(c.feeds[v], rank, uint64(i))
	}
	bound, err := m.Bytes(g)
	if err != nil {
		return nil, err
	}
	m.bound = bound
	c.session, err = gomem.Compile(t.Context(), g, o,
		gomem.Target{Name: "step", Fetches: []graph.Value{y, came, dx}})
	return c, err
}

// run runs a step in which as many rows go as counts say.
func (c *countedStep) run(t *testing.T, m *Member, counts []int32) ([]gomem.Tensor, error) {
	copy(c.feeds[c.counts].I32(), counts)
	out, err := c.session.Step(t.Context(), "step", c.feeds)
	if err != nil {
		return nil, err
	}
	for _, u := range c.session.Usage() {
		if u.Actual != u.Predicted {
			return nil, fmt.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	if x := m.Exchanged(); x.Memory > m.bound {
		return nil, fmt.Errorf("exchanging took %d bytes, %d were said", x.Memory, m.bound)
	}
	return out, nil
}

// each does something on all workers at once.
func (g *grid) each(t *testing.T, f func(rank int) error) {
	t.Helper()
	errs := make([]error, len(g.members))
	var all sync.WaitGroup
	for rank := range g.members {
		all.Go(func() { errs[rank] = f(rank) })
	}
	all.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", rank, err)
		}
	}
}

// TestAllToAllV: among one to four workers, or those of a line, of any numbers of rows each has
// those that are for it, of gradients those of rows that went, and zeros elsewhere. A row that
// goes to another worker is sent once each way, how many there are once, and nothing besides.
func TestAllToAllV(t *testing.T) {
	policies := []gomem.Options{{}, {Policy: planner.Vanilla}, {Policy: planner.Auto},
		{Policy: planner.Thesis, Partition: 1}, {Policy: planner.Grappler}, {}}
	for i, shape := range [][]int{{1, 1}, {1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}} {
		shape := collective.Mesh{Shape: shape, Names: []string{"a", "b"}}
		members, sent := counted(t, shape)
		g, parts := &grid{shape, members}, shape.Shape[1]
		steps := make([]*countedStep, len(members))
		g.each(t, func(rank int) (err error) {
			o := policies[i]
			if i > 0 { // and once with nobody to exchange with
				o.Network = members[rank].Network()
			}
			steps[rank], err = newCountedStep(t, members[rank], o, "b", rank, parts)
			return err
		})
		list := flows(parts, mostRows)
		for k, flow := range append(list[:1:1], list...) {
			before, got := sent.Load(), make([][]gomem.Tensor, len(members))
			g.each(t, func(rank int) (err error) {
				_, place := g.line("b", rank)
				got[rank], err = steps[rank].run(t, members[rank], flow[place])
				return err
			})
			g.checkCounted(t, steps, flow, got)
			// In the first step workers also compare what they exchange.
			want := shape.Shape[0] * countedBytes(flow)
			if bytes := sent.Load() - before; k > 0 && bytes != int64(want) {
				t.Errorf("%v, flow %d: %d bytes are sent, want %d", shape.Shape, k, bytes, want)
			}
		}
		g.each(t, func(rank int) error { return steps[rank].session.Close() })
	}
}

// countedBytes are those that workers of a line send of a flow and its gradient.
func countedBytes(flow [][]int32) int {
	sum := 4 * len(flow) * (len(flow) - 1) // how many rows
	for from, to := range flow {
		for rank, n := range to {
			if rank != from {
				sum += 2 * 4 * rowWidth * int(n)
			}
		}
	}
	return sum
}

// checkCounted compares what workers have with what they should.
func (g *grid) checkCounted(t *testing.T, steps []*countedStep, flow [][]int32,
	got [][]gomem.Tensor) {
	t.Helper()
	for rank, out := range got {
		ranks, place := g.line("b", rank)
		var xs, ws [][]float32
		for _, r := range ranks {
			xs = append(xs, steps[r].feeds[steps[r].x].F32())
			ws = append(ws, steps[r].feeds[steps[r].w].F32())
		}
		y, came := swapped(xs, flow, place, mostRows, false)
		dx, _ := swapped(ws, flow, place, mostRows, true)
		if !slices.Equal(out[0].F32(), y) || !slices.Equal(out[1].I32(), came) {
			t.Errorf("%v: worker %d has rows %v, want %v", flow, rank, out[0].F32(), y)
		}
		if !slices.Equal(out[2].F32(), dx) {
			t.Errorf("%v: worker %d has the gradient %v, want %v", flow, rank, out[2].F32(), dx)
		}
	}
}

// TestAllToAllVChecksCounts: that are fed before a step, and that are computed in it, whether
// there are other workers or none.
func TestAllToAllVChecksCounts(t *testing.T) {
	longtest.Skip(t)
	for n := 1; n <= 2; n++ {
		for _, bad := range []int32{-1, 4} {
			for _, fed := range []bool{true, false} {
				g := inGrid(t, collective.Mesh{Shape: []int{n}, Names: []string{"a"}})
				var all sync.WaitGroup
				for _, m := range g.members {
					all.Go(func() {
						p := &share{graph: graph.New()}
						x := p.graph.Input("x", graph.Of(graph.F32, 3*n, 2))
						in := p.graph.Input("counts", graph.Of(graph.I32, n))
						counts := in
						if !fed {
							counts = ops.Cast(ops.Relu(ops.Cast(in, graph.F32)), graph.I32)
							if bad < 0 {
								counts = ops.Cast(ops.Neg(ops.Cast(in, graph.F32)), graph.I32)
							}
						}
						y, _ := ops.AllToAllV(x, counts, "y", "", n)
						p.fetches = []graph.Value{y}
						p.feeds = gomem.Feeds{x: gomem.NewTensor(x.Type()),
							in: gomem.NewTensor(in.Type())}
						v := bad
						if !fed {
							v = max(bad, -bad)
						}
						p.feeds[in].I32()[n-1] = v
						_, err := p.run(t, m, gomem.Options{})
						want := fmt.Sprint(bad, " rows ")
						if err == nil || !strings.Contains(err.Error(), want) ||
							fed != strings.Contains(err.Error(), "input x or counts") {
							t.Errorf("%d workers, fed %v: %v, want %s", n, fed, err, want)
						}
					})
				}
				all.Wait()
			}
		}
	}
}
