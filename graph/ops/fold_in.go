package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// FoldIn is the seed, i32[2], that random operations of iteration k, i32[], are to have in a loop
// whose own seed is another, i32[2]: each iteration draws numbers of its own, the same ones when
// it is computed again. Of one run's seeds and all k, no two give the same; of loops within one
// another, the inner folds its number into what the outer gave.
func FoldIn(seed, k graph.Value) graph.Value { return apply(foldIn{}, seed, k) }

type foldIn struct{}

func (foldIn) Name() string { return "fold-in" }

func (foldIn) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.I32); err != nil {
		return nil, err
	}
	if err := checkSeed(in[0]); err != nil {
		return nil, err
	}
	if in[1].Rank() != 0 {
		return nil, fmt.Errorf("the iteration is %s, want i32[]", in[1])
	}
	return []graph.Type{tensor.Of(graph.I32, 2)}, nil
}

func (foldIn) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 10) }

func (foldIn) VJP(*graph.Node, []graph.Value) []graph.Value { return none(2) }

// foldInCPU: the run's seed takes the number in, by a function that has an inverse, so that it
// tells iterations apart; the step takes in what came of that, and so tells steps apart.
func foldInCPU(_ foldIn, c *kernel.Call) error {
	seed, out := c.In[0].I32(), c.Out[0].I32()
	run := mix32(uint32(seed[0]) + 0x9e3779b9*(uint32(c.In[1].I32()[0])+1))
	out[0], out[1] = int32(run), seed[1]^int32(mix32(run^0x85ebca6b))
	return nil
}

// mix32 is the finaliser of MurmurHash3, which has an inverse: every bit depends on every bit.
func mix32(x uint32) uint32 {
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return x ^ x>>16
}

func init() {
	kernel.Register(kernel.CPU, foldInCPU)
	register(Sample{Op: foldIn{}, In: []graph.Type{tensor.Of(graph.I32, 2), tensor.Of(graph.I32)},
		NoGrad: []int{0, 1}})
}
