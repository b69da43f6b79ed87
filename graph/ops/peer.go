package ops

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// Peered is the operation that is a collective as a whole, among devices that reach each other's
// memory: a [graph.Gather], a [graph.Swap], a [graph.Copy] or a [graph.Permute], which move values
// and add nothing up. Its result is that of [AllGather], [AllToAll], [Broadcast] or
// [CollectivePermute]. Rewrites make such nodes, by graph.Graph.Copy.
func Peered(x graph.Exchange) graph.Op {
	return peer{Label: x.Name, How: x.How, Parts: x.Parts, Root: x.Root, To: permutationOf(x.To)}
}

type peer struct {
	Label       string
	How         graph.How
	Parts, Root int
	To          permutation
}

func (o peer) Name() string { return "peer-" + o.How.Fold.String() }

// Peer is what is exchanged.
func (o peer) Peer() graph.Exchange {
	x := graph.Exchange{Name: o.Label, How: o.How, Parts: o.Parts, Root: o.Root, Joint: true}
	if o.How.Fold == graph.Permute {
		x.To = o.To.ranks()
	}
	return x
}

func (o peer) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	switch o.How.Fold {
	case graph.Permute:
		if err := o.To.check(); err != nil {
			return nil, err
		}
		if n := len(o.To.ranks()); n != o.Parts {
			return nil, fmt.Errorf("a permutation of %d ranks, among %d workers", n, o.Parts)
		}
	case graph.Gather, graph.Swap, graph.Copy:
		if o.To != "" {
			return nil, fmt.Errorf("a %s does not say to whom", o.How.Fold)
		}
	default:
		return nil, fmt.Errorf("devices move values to each other, by no %s", o.How.Fold)
	}
	switch err := o.How.Check(); {
	case err != nil:
		return nil, err
	case o.Label == "":
		return nil, errors.New("what is exchanged has no name")
	case o.Parts < 1:
		return nil, fmt.Errorf("%d workers, want 1 or more", o.Parts)
	case o.Root < 0 || o.Root >= o.Parts || o.Root > 0 && o.How.Fold != graph.Copy:
		return nil, fmt.Errorf("rank %d of %d is no root of a %s", o.Root, o.Parts, o.How.Fold)
	}
	t, err := o.Peer().Pending(in[0])
	return []graph.Type{t}, err
}

// Cost is that of a copy.
func (peer) Cost(in, out []graph.Type) graph.Cost { return passed(in, out) }

// VJP is that of the collective.
func (o peer) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	d, name := dout[0], gradientOf(n, o.Label)
	switch o.How.Fold {
	case graph.Gather:
		d = ReduceScatter(d, name, o.How.Along, o.Parts)
	case graph.Swap:
		d = AllToAll(d, name, o.How.Along, o.Parts)
	case graph.Copy:
		d = ReduceTo(d, name, o.How.Along, o.Parts, o.Root)
	case graph.Permute:
		d = CollectivePermute(d, name, o.How.Along, o.To.inverse()...)
	}
	return []graph.Value{d}
}

func peerCPU(o peer, c *kernel.Call) error { return givenCPU(o.Peer(), c) }

func peerCUDA(o peer, c *cuda.Call) ([]cuda.Command, error) { return givenCUDA(o.Peer(), c) }

func init() {
	kernel.Register(kernel.CPU, peerCPU)
	cuda.Register(peerCUDA, nil)
	cuda.Exact[peer](nil)
	sample := func(x graph.Exchange, t graph.Type) {
		x.Name, x.How.Along = "x", "batch"
		register(Sample{Op: Peered(x), In: []graph.Type{t}, NoGrad: []int{0}})
	}
	how := func(f graph.Fold) graph.How { return graph.How{Fold: f} }
	x, ids := tensor.Of(graph.F32, 6, 17), tensor.Of(graph.I32, 6, 17)
	sample(graph.Exchange{How: how(graph.Gather), Parts: 3}, x)
	sample(graph.Exchange{How: how(graph.Swap), Parts: 2}, ids)
	sample(graph.Exchange{How: how(graph.Copy), Parts: 3, Root: 2}, x)
	sample(graph.Exchange{How: how(graph.Permute), Parts: 3, To: []int{1, -1, 0}}, x)
}
