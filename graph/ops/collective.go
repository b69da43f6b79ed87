package ops

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Collectives are what all workers of a group do together, in any phase: that in which they
// are made. A group is the parts workers along an axis of the job's mesh, or all workers if
// along is "". Every worker of a group makes the same ones in the same order, under names that
// nothing else of a step is sent by. Sums are added up in an order that depends on parts alone,
// and have the same bits on all workers. Where parts is 1 all of them are x.
//
// Gradients are those of the sum of all workers' losses: so each worker's gradient of its x
// takes in what all workers made of it.

// AllReduce is the sum of what the workers have for x, f32 or f64. Its gradient is the sum of
// theirs.
func AllReduce(x graph.Value, name, along string, parts int) graph.Value {
	return jointly(x, name, graph.How{Fold: graph.Sum, Along: along}, parts, 0)
}

// AllGather is what all workers have for x, [n …] of any type, one after the other by rank:
// [parts·n …], of a scalar [parts]. Its gradient is a [ReduceScatter].
func AllGather(x graph.Value, name, along string, parts int) graph.Value {
	return jointly(x, name, graph.How{Fold: graph.Gather, Along: along}, parts, 0)
}

// ReduceScatter is this rank's block, [n/parts …], of the sum of what the workers have for x,
// [n …] in f32 or f64. Its gradient is an [AllGather].
func ReduceScatter(x graph.Value, name, along string, parts int) graph.Value {
	return jointly(x, name, graph.How{Fold: graph.Scatter, Along: along}, parts, 0)
}

// AllToAll gives block i of x, [n …] of any type, to rank i, and has from each rank one block
// in return, by rank: [n …]. parts divides n. Its gradient is an AllToAll.
func AllToAll(x graph.Value, name, along string, parts int) graph.Value {
	return jointly(x, name, graph.How{Fold: graph.Swap, Along: along}, parts, 0)
}

// Broadcast is what the worker of rank root has for x, of any type. Its gradient is the sum
// of all workers' on that one, a [ReduceTo], and zeros on the others.
func Broadcast(x graph.Value, name, along string, parts, root int) graph.Value {
	return jointly(x, name, graph.How{Fold: graph.Copy, Along: along}, parts, root)
}

// ReduceTo is, on the worker of rank root, the sum of what all have for x, f32 or f64; on the
// others it is zeros. Its gradient is a [Broadcast] of that worker's.
func ReduceTo(x graph.Value, name, along string, parts, root int) graph.Value {
	return jointly(x, name, graph.How{Fold: graph.Reduce, Along: along}, parts, root)
}

// jointly sends x and awaits what becomes of it.
func jointly(x graph.Value, name string, how graph.How, parts, root int) graph.Value {
	if !x.Valid() {
		return graph.Value{}
	}
	return apply(Awaited(how, parts), apply(Sent(name, how, parts, root), x))
}

// Sent is the operation by which a collective hands its operand to the network, among
// parts workers. root is 0, but for [graph.Copy] and [graph.Reduce]. Exactly one node reads
// its result: that of [Awaited]. Rewrites make such nodes, by graph.Graph.Copy; everybody
// else has [AllReduce] and the like.
func Sent(name string, how graph.How, parts, root int) graph.Op {
	return sent{Label: name, How: how, Parts: parts, Root: root}
}

// Awaited is the operation by which a collective has its result back: the how and the parts
// are those of the [Sent] whose result is its operand.
func Awaited(how graph.How, parts int) graph.Op {
	if how.Fold != graph.Scatter && how.Fold != graph.ScatterSome {
		parts = 1
	}
	return arrive{Blocks: parts}
}

type sent struct {
	Label       string
	How         graph.How
	Parts, Root int
}

func (o sent) Name() string { return "send-" + o.How.Fold.String() }

// Exchange is what is sent.
func (o sent) Exchange() graph.Exchange {
	return graph.Exchange{Name: o.Label, How: o.How, Parts: o.Parts, Root: o.Root, Joint: true}
}

func (o sent) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if err := o.How.Check(); err != nil {
		return nil, err
	}
	rooted := o.How.Fold == graph.Copy || o.How.Fold == graph.Reduce
	switch d := in[0].DType; {
	case o.How.Fold == graph.Permute:
		return nil, errors.New("a permute says to whom: see CollectivePermute")
	case o.How.Fold.Some():
		return nil, fmt.Errorf("a %s says which rows: see AllGatherSome", o.How.Fold)
	case o.How.Fold == graph.SwapSome:
		return nil, errors.New("a swap-some says how many rows: see AllToAllV")
	case o.Label == "":
		return nil, errors.New("what is sent has no name")
	case o.Parts < 1:
		return nil, fmt.Errorf("%d workers, want 1 or more", o.Parts)
	case o.Root < 0 || o.Root >= o.Parts || o.Root > 0 && !rooted:
		return nil, fmt.Errorf("rank %d of %d is no root of a %s", o.Root, o.Parts, o.How.Fold)
	case o.How.Fold.Adds() && d != graph.F32 && d != graph.F64:
		return nil, fmt.Errorf("operand 0 is %s, want f32 or f64 to add it up%s", in[0],
			convertible(in[0], graph.F32))
	}
	t, err := o.Exchange().Pending(in[0])
	return []graph.Type{t}, err
}

// Cost is that of a copy; in place there is none.
func (sent) Cost(in, out []graph.Type) graph.Cost { return passed(in, out) }

// InPlace: where x is needed no more, the network has its bytes.
func (o sent) InPlace(in, out []graph.Type) []int {
	if in[0].Bytes() != out[0].Bytes() {
		return nil
	}
	return []int{0}
}

// VJP is a collective of the gradient, but for a block of a sum, whose [arrive] has gathered
// it.
func (o sent) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	back := o.How
	switch o.How.Fold {
	case graph.Gather:
		back.Fold = graph.Scatter
	case graph.Scatter:
		return dout
	case graph.Copy:
		back.Fold = graph.Reduce
	case graph.Reduce:
		back.Fold = graph.Copy
	}
	return []graph.Value{again(n, dout[0], back)}
}

// arrive is what has come of a [sent].
type arrive struct{ Blocks int }

func (arrive) Name() string { return "arrive" }

// Awaits marks the operation as a graph.Awaiter.
func (arrive) Awaits() {}

func (o arrive) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if o.Blocks == 1 {
		return in, nil
	}
	block := graph.Exchange{How: graph.How{Fold: graph.Scatter}, Parts: o.Blocks}
	t, err := block.Result(in[0])
	return []graph.Type{t}, err
}

func (arrive) Cost(in, out []graph.Type) graph.Cost { return passed(in, out) }

// InPlace: always so in a plan.
func (o arrive) InPlace(_, _ []graph.Type) []int {
	if o.Blocks == 1 {
		return []int{0}
	}
	return nil
}

func (arrive) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	from := n.In[0].Node
	switch x, ok := from.Sends(); {
	case !ok:
		return none(1)
	case x.How.Fold == graph.Scatter:
		x.How.Fold = graph.Gather
		return []graph.Value{again(from, dout[0], x.How)}
	case x.How.Fold == graph.ScatterSome:
		x.How.Fold = graph.GatherSome
		return []graph.Value{again(from, dout[0], x.How)}
	}
	return dout
}

// again exchanges a gradient among those who exchanged what n sends. Sums of types that are
// not added up go by way of f32.
func again(n *graph.Node, d graph.Value, how graph.How) graph.Value {
	x, _ := n.Sends()
	if !d.Valid() {
		return d
	}
	exchanged := func(d graph.Value) graph.Value {
		if how.Fold.Some() {
			return jointlySome(d, n.In[1], gradientOf(n, x.Name), how, x.Parts)
		}
		return jointly(d, gradientOf(n, x.Name), how, x.Parts, x.Root)
	}
	t := d.Type().DType
	if how.Fold.Adds() && t != graph.F32 && t != graph.F64 {
		return Cast(exchanged(Cast(d, graph.F32)), t)
	}
	return exchanged(d)
}

// gradientOf is a name for the exchange of a gradient that nothing is sent by after n.
func gradientOf(n *graph.Node, name string) string {
	taken := map[string]bool{}
	for _, later := range n.Graph().Nodes()[n.ID:] {
		if x, ok := later.Gives(); ok {
			taken[x.Name] = true
		}
	}
	name += "/grad"
	for i, first := 2, name; taken[name]; i++ {
		name = fmt.Sprintf("%s%d", first, i)
	}
	return name
}

// givenCPU is what an exchange makes of operand 0 in a world where nobody exchanges anything.
func givenCPU(x graph.Exchange, c *kernel.Call) error {
	copy(c.Out[0].Data, c.In[0].Data)
	x.Alone(c.Out[0].Data)
	return nil
}

func sentCPU(o sent, c *kernel.Call) error { return givenCPU(o.Exchange(), c) }

func arriveCPU(_ arrive, c *kernel.Call) error { return pass(c) }

func init() {
	kernel.Register(kernel.CPU, sentCPU)
	kernel.Register(kernel.CPU, arriveCPU)
	x, ids := tensor.Of(graph.F32, 6, 17), tensor.Of(graph.I32, 6, 17)
	sample := func(op graph.Op, t graph.Type) {
		register(Sample{Op: op, In: []graph.Type{t}, NoGrad: []int{0}})
	}
	for fold := graph.Mean; fold <= graph.Reduce; fold++ {
		how := graph.How{Fold: fold, Along: "batch"}
		sample(Sent("x", how, 3, 0), x)
		if !fold.Adds() {
			sample(Sent("x", how, 2, 0), ids)
		}
	}
	sample(Awaited(graph.How{Fold: graph.Scatter}, 3), x)
	sample(Awaited(graph.How{Fold: graph.Copy}, 3), ids)
}
