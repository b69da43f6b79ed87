package ops

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// AllGatherSome is [AllGather] of rows: of all of them together, each is sent to those workers
// only that have to do with it, and the others have zeros. ranks, i32[rows most], says for every
// row of the result which workers these are, by rank, where -1 is none; all workers have the
// same. Rows are equal parts of the result, by as many of its axes as make so many. Its gradient
// is a [ReduceScatterSome].
func AllGatherSome(x, ranks graph.Value, name, along string, parts int) graph.Value {
	return jointlySome(x, ranks, name, graph.How{Fold: graph.GatherSome, Along: along}, parts)
}

// ReduceScatterSome is [ReduceScatter] of rows: every worker sends those only that it has to do
// with, by ranks as in [AllGatherSome], and counts for others as if it had zeros there. Where
// two workers at most have to do with a row, sums have the bits of a [ReduceScatter] of such
// zeros. Its gradient is an AllGatherSome.
func ReduceScatterSome(x, ranks graph.Value, name, along string, parts int) graph.Value {
	return jointlySome(x, ranks, name, graph.How{Fold: graph.ScatterSome, Along: along}, parts)
}

// jointlySome sends x by ranks and awaits what becomes of it.
func jointlySome(x, ranks graph.Value, name string, how graph.How, parts int) graph.Value {
	if !x.Valid() || !ranks.Valid() {
		return graph.Value{}
	}
	return apply(Awaited(how, parts), apply(SentSome(name, how, parts, ranks.Type()), x, ranks))
}

// SentSome is the operation by which a collective of some rows hands its first operand to the
// network, among parts workers; its second one is of a type, and says which rows. Exactly one
// node reads its result: that of [Awaited]. Rewrites make such nodes, by graph.Graph.Copy.
func SentSome(name string, how graph.How, parts int, ranks graph.Type) graph.Op {
	o := sentSome{Label: name, How: how, Parts: parts}
	if ranks.Rank() == 2 {
		o.Rows, o.Each = ranks.Size(0), ranks.Size(1)
	}
	return o
}

type sentSome struct {
	Label             string
	How               graph.How
	Parts, Rows, Each int
}

func (o sentSome) Name() string { return "send-" + o.How.Fold.String() }

// Exchange is what is sent.
func (o sentSome) Exchange() graph.Exchange {
	return graph.Exchange{Name: o.Label, How: o.How, Parts: o.Parts, Rows: o.Rows, Each: o.Each,
		Joint: true}
}

func (o sentSome) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	if err := o.How.Check(); err != nil {
		return nil, err
	}
	want := tensor.Of(graph.I32, o.Rows, o.Each)
	switch d := in[0].DType; {
	case !o.How.Fold.Some():
		return nil, fmt.Errorf("a %s is of all rows: see the other collectives", o.How.Fold)
	case o.Label == "":
		return nil, errors.New("what is sent has no name")
	case o.Parts < 1:
		return nil, fmt.Errorf("%d workers, want 1 or more", o.Parts)
	case o.Each < 1 || !in[1].Equal(want):
		return nil, fmt.Errorf("who has to do with rows is %s, want i32[rows most]%s", in[1],
			convertible(in[1], graph.I32))
	case o.How.Fold.Adds() && d != graph.F32 && d != graph.F64:
		return nil, fmt.Errorf("operand 0 is %s, want f32 or f64 to add it up%s", in[0],
			convertible(in[0], graph.F32))
	}
	t, err := o.Exchange().Pending(in[0])
	if err == nil && !o.fits(t) {
		err = fmt.Errorf("%d rows are not equal parts of %s among %d workers", o.Rows, t, o.Parts)
	}
	return []graph.Type{t}, err
}

// fits reports whether leading axes of what is pending make up the rows, as many for each
// worker.
func (o sentSome) fits(t graph.Type) bool {
	rows := 1
	for _, d := range t.Shape {
		if rows == o.Rows {
			break
		}
		rows *= d.Size
	}
	return rows == o.Rows && rows%o.Parts == 0
}

// Cost is that of a copy; in place there is none.
func (sentSome) Cost(in, out []graph.Type) graph.Cost { return passed(in, out) }

// InPlace: where x is needed no more, the network has its bytes.
func (sentSome) InPlace(in, out []graph.Type) []int { return sent{}.InPlace(in, out) }

// VJP is the sum of the gradients of those who have to do with rows; of such a sum [arrive] has
// gathered it.
func (o sentSome) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if o.How.Fold == graph.ScatterSome {
		return []graph.Value{dout[0], {}}
	}
	back := o.How
	back.Fold = graph.ScatterSome
	return []graph.Value{again(n, dout[0], back), {}}
}

func sentSomeCPU(o sentSome, c *kernel.Call) error { return givenCPU(o.Exchange(), c) }

func sentSomeCUDA(o sentSome, c *cuda.Call) ([]cuda.Command, error) {
	return givenCUDA(o.Exchange(), c)
}

func init() {
	kernel.Register(kernel.CPU, sentSomeCPU)
	cuda.Register(sentSomeCUDA, nil)
	cuda.Exact[sentSome](nil)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	sample := func(fold graph.Fold, parts int, x, ranks graph.Type) {
		op := SentSome("x", graph.How{Fold: fold, Along: "batch"}, parts, ranks)
		register(Sample{Op: op, In: []graph.Type{x, ranks}, Fill: fills{1: choices(parts)},
			NoGrad: []int{0, 1}})
	}
	sample(graph.GatherSome, 3, f(2, 17), tensor.Of(graph.I32, 6, 2))
	sample(graph.GatherSome, 2, tensor.Of(graph.I32, 3, 4, 5), tensor.Of(graph.I32, 24, 1))
	sample(graph.ScatterSome, 3, f(6, 17), tensor.Of(graph.I32, 6, 2))
	sample(graph.ScatterSome, 2, f(4, 3, 5), tensor.Of(graph.I32, 12, 3))
}
