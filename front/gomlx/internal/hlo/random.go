package hlo

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
)

// Random is so many random bits as a type has, and the state after them: state u64[n], of which
// the first two words are those of Go's PCG (math/rand/v2), and others stay as they are. Bytes are
// those of the generator's words, the low ones first.
func Random(state graph.Value, t graph.Type) (next, bits graph.Value) {
	n := graph.Apply(random{DType: t.DType, Sizes: listOf(t.Sizes())}, state)
	if n == nil {
		return graph.Value{}, graph.Value{}
	}
	return n.Value(0), n.Value(1)
}

type random struct {
	streaming
	DType graph.DType
	Sizes list
}

func (random) Name() string { return "random-bits" }

func (o random) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if t := in[0]; t.DType != graph.U64 || t.Rank() != 1 || t.Size(0) < 2 {
		return nil, fmt.Errorf("state %s, want two words or more of u64", t)
	}
	if err := check(o.Sizes); err != nil {
		return nil, err
	}
	if o.DType == graph.Bool || o.DType.Floating() {
		return nil, fmt.Errorf("random bits of %s, want integers", o.DType)
	}
	return []graph.Type{in[0], graph.Of(o.DType, o.Sizes.of()...)}, nil
}

func randomCPU(_ random, c *custom.Call) error {
	state, next, out := c.In[0].U64(), c.Out[0].U64(), c.Out[1].Data
	pcg := rand.NewPCG(state[0], state[1])
	for len(out) > 0 {
		word := pcg.Uint64()
		n := min(8, len(out))
		for i := range n {
			out[i] = byte(word >> (8 * i))
		}
		out = out[n:]
	}
	copy(next, state)
	return after(pcg, next)
}

// after puts the state of a generator into words, bytes in the opposite order, as the backend
// "go" of GoMLX does: models that it starts and this one start alike.
func after(pcg *rand.PCG, words []uint64) error {
	saved, err := pcg.MarshalBinary()
	const prefix = len("pcg:")
	if err != nil || len(saved) != prefix+16 {
		return fmt.Errorf("the state of the generator: %x, %w", saved, err)
	}
	words[0] = binary.LittleEndian.Uint64(saved[prefix:])
	words[1] = binary.LittleEndian.Uint64(saved[prefix+8:])
	return nil
}
