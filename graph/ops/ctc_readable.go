package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// CTCReadable is 1 for each item that has frames, and enough of them for [CTCLoss] to
// read its labels, and 0 for those without and those it skips: labels i32[b l],
// labelLengths and inputLengths i32[b] → f32[b]. It has no gradient.
func CTCReadable(labels, labelLengths, inputLengths graph.Value) graph.Value {
	return apply(ctcReadable{}, labels, labelLengths, inputLengths)
}

type ctcReadable struct{}

func (ctcReadable) Name() string { return "ctc-readable" }

func (ctcReadable) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in, graph.I32, graph.I32, graph.I32); err != nil {
		return nil, err
	}
	if in[0].Rank() != 2 {
		return nil, fmt.Errorf("labels are %s, want two axes", in[0])
	}
	for i, t := range in[1:] {
		if t.Rank() != 1 || t.Size(0) != in[0].Size(0) {
			return nil, fmt.Errorf("operand %d is %s, want i32[%d]%s", 1+i, t, in[0].Size(0),
				convertible(t, graph.I32))
		}
	}
	return []graph.Type{{DType: graph.F32, Shape: in[1].Shape}}, nil
}

func (ctcReadable) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 1) }

func (ctcReadable) VJP(*graph.Node, []graph.Value) []graph.Value { return none(3) }

// framesFor is the least number of frames that labels can be read from: one for each,
// and one for a blank between equal ones.
func framesFor(labels []int32) int {
	n := len(labels)
	for i := 1; i < len(labels); i++ {
		if labels[i] == labels[i-1] {
			n++
		}
	}
	return n
}

func ctcReadableCPU(_ ctcReadable, c *kernel.Call) error {
	labels, lengths, frames, out := c.In[0].I32(), c.In[1].I32(), c.In[2].I32(), c.Out[0].F32()
	room := c.In[0].Type.Size(1)
	if err := checkLengths("label", lengths, room); err != nil {
		return err
	}
	for k := range out {
		out[k] = 0
		if frames[k] > 0 && framesFor(labels[k*room:][:lengths[k]]) <= int(frames[k]) {
			out[k] = 1
		}
	}
	return nil
}

func init() {
	kernel.Register(kernel.CPU, ctcReadableCPU)
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	register(Sample{Op: ctcReadable{}, In: []graph.Type{ids(5, 3), ids(5), ids(5)},
		Fill: fills{1: below(4), 2: below(6)}, NoGrad: []int{0, 1, 2}})
}
