package laws_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/planner"
)

// cached is a graph that attends to what a cache has of texts, and to what is new.
type cached struct {
	g                                    *graph.Graph
	cache, rows, position, parent, found graph.Value
	target                               gomem.Target
}

func newCached(t *testing.T) cached {
	t.Helper()
	const batch, heads, length, width, n = 3, 2, 64, 32, 2
	g := graph.New()
	c := cached{
		g:        g,
		cache:    g.State("cache", graph.Of(graph.F32, batch, heads, length, width), graph.Init{}),
		rows:     g.Input("rows", graph.Of(graph.F32, batch, heads, n, width)),
		position: g.Input("position", graph.Of(graph.I32)),
		parent:   g.Input("parent", graph.Of(graph.I32, batch)),
	}
	past := ops.PutAt(ops.Reorder(c.cache, c.parent), c.rows, c.position, 2)
	logits := ops.Add(ops.MatMulT(c.rows, past, false, true),
		ops.CausalMaskAt(c.position, n, length))
	c.found = ops.MatMul(ops.Softmax(logits), past)
	write := ops.ReorderWriteAt(c.cache, c.parent, c.rows, c.position, 2)
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	c.target = gomem.Target{Name: "step", Fetches: []graph.Value{c.found},
		Updates: []graph.NodeID{write.ID}}
	return c
}

// steps runs a search of some steps, whose beams go on from others, and is what it finds
// and leaves in the cache.
func (c cached) steps(t *testing.T, o gomem.Options) trial.Outcome {
	t.Helper()
	ctx := context.Background()
	s, err := gomem.Compile(ctx, c.g, o, c.target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out trial.Outcome
	for i := range 4 {
		fetched, err := s.Step(ctx, "step", c.feeds(i))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fetched[0].Data)
	}
	cache, err := s.Get(c.cache)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, cache.Data)
}

// feeds are a step's rows, the place of them, and where every beam comes from.
func (c cached) feeds(step int) gomem.Feeds {
	rng := rand.New(rand.NewPCG(7, uint64(step)))
	rows := gomem.NewTensor(c.rows.Type())
	for i := range rows.F32() {
		rows.F32()[i] = float32(rng.NormFloat64())
	}
	parent := gomem.NewTensor(c.parent.Type())
	for i := range parent.I32() {
		parent.I32()[i] = rng.Int32N(int32(len(parent.I32())))
	}
	position := gomem.NewTensor(c.position.Type())
	position.I32()[0] = int32(step * c.rows.Type().Size(2))
	return gomem.Feeds{c.rows: rows, c.position: position, c.parent: parent}
}

// TestCachesDoNotDependOnPlans: under every policy, in all memory or the least, a search
// finds the same; where there is enough, a step sends rows to the host and no cache.
func TestCachesDoNotDependOnPlans(t *testing.T) {
	ctx, c := context.Background(), newCached(t)
	want := c.steps(t, gomem.Options{Policy: planner.Vanilla})
	if slices.Equal(want[0], want[1]) {
		t.Fatal("all steps are alike")
	}
	for _, policy := range planner.Policies() {
		o := gomem.Options{Policy: policy}
		least, err := gomem.MinDevice(ctx, c.g, o, c.target)
		if err != nil {
			t.Fatal(err)
		}
		for _, o.DeviceBytes = range []int64{0, least} {
			if got := c.steps(t, o); !got.Equal(want) {
				t.Errorf("%s in %d bytes finds something else", policy, o.DeviceBytes)
			}
			planned, err := gomem.Plan(ctx, c.g, o, c.target)
			if err != nil {
				t.Fatal(err)
			}
			out := planned.Results[0].Plan.Traffic().Out()
			if o.DeviceBytes == 0 && out > c.cache.Type().Bytes()/8 {
				t.Errorf("%s in %d bytes sends %d to the host", policy, o.DeviceBytes, out)
			}
		}
	}
}
