package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/fold"
	"github.com/gomem/gomem/graph/fuse"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
)

// constants prints what folding constants and the opposite come to: the smallest device budget of
// each graph, and of a plan within a budget what it keeps, copies and takes.
func constants(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "Policy auto by the prices of "+machine.TitanX+", planned, not run.\n\n"+
		"| step | constants | their MiB | smallest MiB | within MiB | host MiB | copied in MiB | "+
		"step ms |\n|---|---|---:|---:|---:|---:|---:|---:|")
	for _, c := range []struct {
		name  string
		build func() (*graph.Graph, gomem.Target, error)
	}{
		{"masks of 2048 tokens as data", func() (*graph.Graph, gomem.Target, error) {
			return attending(4, 2048, causal)
		}},
		{"biases by distance, 2048 tokens", func() (*graph.Graph, gomem.Target, error) {
			return attending(4, 2048, distances)
		}},
		{"filters of filters", filters},
		{"Transformer base", transformer},
	} {
		g, target, err := c.build()
		if err != nil {
			return err
		}
		if err := constantsRows(ctx, w, c.name, g, target); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func transformer() (*graph.Graph, gomem.Target, error) {
	c, err := models.NewTransformerConfig("base")
	if err != nil {
		return nil, gomem.Target{}, err
	}
	m, err := models.Transformer(c)
	if err != nil {
		return nil, gomem.Target{}, err
	}
	return m.Graph, gomem.Training(m.Graph, m.Objectives[0].Loss), nil
}

// attending is a step of layers of attention whose logits have something added that is the same
// at every step.
func attending(layers, length int,
	of func(g *graph.Graph, length int) graph.Value) (*graph.Graph, gomem.Target, error) {
	const heads, width = 4, 64
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, heads, length, width))
	lr := g.Input("lr", tensor.Of(graph.F32))
	var vars []graph.Value
	for i := range layers {
		w := g.Variable(fmt.Sprintf("w%d", i), tensor.Of(graph.F32, width, width),
			graph.Init{Dist: graph.Normal, Scale: 0.1})
		vars = append(vars, w)
		q := ops.MatMul(x, w)
		logits := ops.Add(ops.MatMul(q, ops.Transpose(x, 0, 2, 1)), of(g, length))
		x = ops.Add(x, ops.MatMul(ops.Softmax(logits), q))
	}
	loss := ops.Mean(ops.Square(x))
	for i, d := range autodiff.Grad(loss, vars...) {
		ops.SGD(vars[i], d, lr)
	}
	return g, gomem.Training(g, loss), g.Err()
}

// causal is a mask as exporters write it: data, for every head.
func causal(g *graph.Graph, length int) graph.Value {
	x := tensor.New(tensor.Of(graph.F32, 4, length, length))
	for i := range x.F32() {
		if i%length > i/length%length {
			x.F32()[i] = -1e9
		}
	}
	return g.Constant("mask", x)
}

// filters is a step behind two filters that are the same at every step, one after the other.
func filters() (*graph.Graph, gomem.Target, error) {
	const size = 512
	g := graph.New()
	x, lr := g.Input("x", tensor.Of(graph.F32, 64, size)), g.Input("lr", tensor.Of(graph.F32))
	w := g.Variable("w", tensor.Of(graph.F32, size, size),
		graph.Init{Dist: graph.Normal, Scale: 0.1})
	filter := func(name string) graph.Value {
		v := tensor.New(tensor.Of(graph.F32, size, size))
		for i := range v.F32() {
			v.F32()[i] = float32(i*len(name)%97) / 97
		}
		return g.Constant(name, v)
	}
	both := ops.MatMul(filter("wide"), filter("narrow"))
	loss := ops.Mean(ops.Square(ops.MatMul(ops.MatMul(x, both), w)))
	ops.SGD(w, autodiff.Grad(loss, w)[0], lr)
	return g, gomem.Training(g, loss), g.Err()
}

// distances are biases that operations compute of positions.
func distances(g *graph.Graph, length int) graph.Value {
	at := make([]float32, length)
	for i := range at {
		at[i] = float32(i)
	}
	rows := g.Constant("rows", tensor.FromF32(at, length, 1))
	columns := g.Constant("columns", tensor.FromF32(at, 1, length))
	return ops.Neg(ops.Log(ops.AddScalar(ops.Abs(ops.Sub(rows, columns)), 1)))
}

// constantsRows prints a row for each graph: as it is stated, folded and unfolded; and what auto
// makes of the choice.
func constantsRows(ctx context.Context, w io.Writer, name string, g *graph.Graph,
	target gomem.Target) error {
	by, err := machine.Named(machine.TitanX)
	if err != nil {
		return err
	}
	o := planner.Options{Policy: planner.Auto, Machine: by, Effort: 200}
	var budget int64
	all := func(graph.Op) bool { return true }
	for _, way := range []string{"stated", "folded", "unfolded"} {
		now, to, err := rewritten(way, all, g, target)
		if err != nil {
			return err
		}
		least, err := planner.MinDevice(ctx, now, to, o)
		if err != nil {
			return err
		}
		if budget == 0 {
			budget = least + least/8
		}
		within := o
		within.DeviceBytes = budget
		r, err := planner.Compile(ctx, now, to, within)
		if err != nil {
			return err
		}
		constantsRow(w, name, way, now, least, budget, r)
	}
	gets := gomem.Options{}.With(o)
	gets.DeviceBytes = budget
	p, err := gomem.Plan(ctx, g, gets, target)
	if err != nil {
		return err
	}
	least, err := gomem.MinDevice(ctx, g, gets, target)
	if err != nil {
		return err
	}
	constantsRow(w, name, "auto's choice", p.Graph, least, budget, p.Results[0])
	return nil
}

func constantsRow(w io.Writer, name, way string, g *graph.Graph, least, budget int64,
	r *planner.Result) {
	var held int64
	for _, n := range g.Nodes() {
		if n.Kind == graph.KindConstant {
			held += n.Out[0].Bytes()
		}
	}
	mib := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	fmt.Fprintf(w, "| %s | %s | %.2f | %.1f | %.1f | %.1f | %.1f | %s |\n", name, way, mib(held),
		mib(least), mib(budget), mib(r.Plan.Spaces[space.Host].Bytes), mib(r.Plan.Traffic().In()),
		ms(r.Step))
}

// rewritten is a graph with its constants in some way, and fused.
func rewritten(way string, runs func(graph.Op) bool, g *graph.Graph,
	t gomem.Target) (*graph.Graph, gomem.Target, error) {
	if way != "stated" {
		r, err := fold.Fold(runs, g, t.Fetches, t.Updates)
		if err != nil {
			return nil, t, err
		}
		g, t = r.Graph, moved(t, r)
		isNew := map[string]bool{}
		for _, c := range r.Changes {
			isNew[c.Name] = true
		}
		which := func(n *graph.Node) bool { return way == "unfolded" || isNew[n.Name] }
		if r, err = fold.Unfold(runs, which, g, t.Fetches, t.Updates); err != nil {
			return nil, t, err
		}
		g, t = r.Graph, moved(t, r)
	}
	r, err := fuse.For(runs, g, t.Fetches, t.Updates)
	if err != nil {
		return nil, t, err
	}
	return r.Graph, moved(t, r), nil
}

// moved is a target in a rewritten graph.
func moved(t gomem.Target, to interface {
	Value(graph.Value) graph.Value
	Node(graph.NodeID) *graph.Node
}) gomem.Target {
	next := gomem.Target{Name: t.Name}
	for _, v := range t.Fetches {
		next.Fetches = append(next.Fetches, to.Value(v))
	}
	for _, id := range t.Updates {
		next.Updates = append(next.Updates, to.Node(id).ID)
	}
	return next
}
