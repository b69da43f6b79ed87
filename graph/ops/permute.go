package ops

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// CollectivePermute is a collective by which what each worker has for x, of any type, goes to
// one other: that of rank i to rank to[i], or to none if that is -1. to has an element for each
// worker of the group, and no rank twice; whose rank is not in it has zeros. So a pair that
// sends and receives is one of it, and a shift to the next rank is. Every x that goes to
// another rank is sent once, and nothing else. Its gradient is the CollectivePermute the other
// way.
func CollectivePermute(x graph.Value, name, along string, to ...int) graph.Value {
	if !x.Valid() {
		return graph.Value{}
	}
	return apply(arrive{Blocks: 1}, apply(Permuted(name, along, to), x))
}

// Permuted is the operation by which a [CollectivePermute] hands its operand to the network.
// Exactly one node reads its result: that of [Awaited] for a [graph.Permute].
func Permuted(name, along string, to []int) graph.Op {
	return permuted{Label: name, Along: along, To: permutationOf(to)}
}

type permuted struct {
	Label, Along string
	To           permutation
}

func (permuted) Name() string { return "send-permute" }

// Exchange is what is sent.
func (o permuted) Exchange() graph.Exchange {
	to := o.To.ranks()
	return graph.Exchange{Name: o.Label, How: graph.How{Fold: graph.Permute, Along: o.Along},
		Parts: len(to), To: to, Joint: true}
}

func (o permuted) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	x := o.Exchange()
	if err := x.How.Check(); err != nil {
		return nil, err
	}
	if o.Label == "" {
		return nil, errors.New("what is sent has no name")
	}
	return in, o.To.check()
}

// Cost is that of a copy; in place there is none.
func (permuted) Cost(in, out []graph.Type) graph.Cost { return passed(in, out) }

// InPlace: where x is needed no more, the network has its bytes.
func (permuted) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP sends gradients back to where values came from.
func (o permuted) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	if !dout[0].Valid() {
		return dout
	}
	return []graph.Value{CollectivePermute(dout[0], gradientOf(n, o.Label), o.Along,
		o.To.inverse()...)}
}

// permutation is a list of ranks as an attribute: comparable, unlike a slice.
type permutation string

func permutationOf(to []int) permutation {
	var s strings.Builder
	for _, r := range to {
		fmt.Fprintf(&s, "%d ", r)
	}
	return permutation(s.String())
}

func (p permutation) ranks() []int {
	to := make([]int, strings.Count(string(p), " "))
	rest := strings.NewReader(string(p))
	for i := range to {
		fmt.Fscan(rest, &to[i]) // what permutationOf has written
	}
	return to
}

// inverse goes the other way.
func (p permutation) inverse() []int {
	to := p.ranks()
	back := make([]int, len(to))
	for i := range back {
		back[i] = slices.Index(to, i)
	}
	return back
}

// check reports what is no permutation, some of whose ranks may go nowhere.
func (p permutation) check() error {
	to := p.ranks()
	if !slices.ContainsFunc(to, func(rank int) bool { return rank >= 0 }) {
		return fmt.Errorf("%v is a permutation by which nothing goes anywhere", to)
	}
	for i, rank := range to {
		switch {
		case rank < -1 || rank >= len(to):
			return fmt.Errorf("%v is no permutation: there is no rank %d of %d", to, rank, len(to))
		case rank >= 0 && slices.Index(to, rank) < i:
			return fmt.Errorf("%v is no permutation: rank %d is in it twice", to, rank)
		}
	}
	return nil
}

// permutedCPU is that of a world where nobody exchanges anything.
func permutedCPU(_ permuted, c *kernel.Call) error { return pass(c) }

func init() {
	kernel.Register(kernel.CPU, permutedCPU)
	cuda.Register(passCUDA[permuted], nil)
	for i, t := range []graph.Type{tensor.Of(graph.F32, 6, 17), tensor.Of(graph.I32, 6),
		tensor.Of(graph.Bool)} {
		op := Permuted("x", "batch", [][]int{{1, 2, 0}, {-1, 0}, {0}}[i])
		register(Sample{Op: op, In: []graph.Type{t}, NoGrad: []int{0}})
	}
}
