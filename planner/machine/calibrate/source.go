package calibrate

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/kernel"
)

// source makes data for operands.
type source struct {
	floats []byte                // 32-bit floats
	below  map[*graph.Node]int32 // limits of leaves of numbers; maxNumber for others
}

// maxNumber is the limit of numbers that no kernel has refused.
const maxNumber = 1 << 16

// noiseBytes is how much noise there is, again and again.
const noiseBytes = 1 << 18

// newSource makes positive noise: second moments have no sign, and logarithms of it
// are numbers.
func newSource() source {
	v := tensor.New(tensor.Of(tensor.F32, noiseBytes/4))
	x := uint32(1)
	for i := range v.F32() {
		x = x*1664525 + 1013904223
		v.F32()[i] = 0.2 + float32(0.6*float32(x>>8)/(1<<24))
	}
	return source{v.Data, map[*graph.Node]int32{}}
}

// exact reports whether kernels may go by what the values are: indices and masks.
func exact(t tensor.Type) bool { return !t.DType.Floating() }

// noise fills a region with floats: those of a variable are as large as it starts
// with, so that what is computed of them is neither huge nor denormal. A single number
// that is fed is 1, as the number of a step may be.
func (s source) noise(v graph.Value, r device.Region) error {
	data := s.floats
	switch n := v.Node; {
	case n.Kind == graph.KindVariable:
		data = scaled(data, n.Init)
	case n.Leaf() && v.Type().Rank() == 0:
		data = scaled(data, graph.Init{Scale: 1})
	}
	for r.Bytes > 0 {
		n := min(r.Bytes, noiseBytes)
		if err := r.Mem.Write(r.Off, data[:n]); err != nil {
			return err
		}
		r.Off, r.Bytes = r.Off+n, r.Bytes-n
	}
	return nil
}

// scaled is the noise as a variable starts; of several that are packed, as the first.
func scaled(floats []byte, i graph.Init) []byte {
	for len(i.Each) > 0 {
		i = i.Each[0]
	}
	out := tensor.New(tensor.Of(tensor.F32, noiseBytes/4))
	in := tensor.View{Type: out.Type, Data: floats}
	for k, x := range in.F32() {
		out.F32()[k] = float32(i.Scale)
		if i.Dist != graph.Constant {
			out.F32()[k] *= 5 * (x - 0.5) // in [-1.5, 1.5]
		}
	}
	return out.Data
}

// numbered are the leaves of which the exact operands of a node are computed.
func numbered(n *graph.Node) []*graph.Node {
	var out []*graph.Node
	for _, v := range n.In {
		switch {
		case !exact(v.Type()):
		case v.Node.Leaf():
			out = append(out, v.Node)
		default:
			out = append(out, numbered(v.Node)...)
		}
	}
	return out
}

// value is data for a value: noise, or what its operation makes of such.
func (s source) value(v graph.Value) (tensor.View, error) {
	n := v.Node
	switch {
	case !exact(v.Type()):
		return s.filled(v.Type()), nil
	case n.Kind == graph.KindConstant:
		return n.Data, nil
	case n.Leaf():
		return s.numbers(n), nil
	}
	if view, ok := n.Op.(graph.Viewer); ok {
		x, err := s.value(n.In[0])
		if err != nil {
			return tensor.View{}, err
		}
		off := view.View(n.InTypes(), n.Out)[v.Index]
		return tensor.View{Type: v.Type(), Data: x.Data[off : off+v.Type().Bytes()]}, nil
	}
	out, err := s.computed(n)
	if err != nil {
		return tensor.View{}, err
	}
	return out[v.Index], nil
}

// computed is what the processor's kernel of a node makes of data for its operands.
func (s source) computed(n *graph.Node) ([]tensor.View, error) {
	c := kernel.Call{Scratch: tensor.New(tensor.Of(tensor.U8, int(n.Cost().Scratch))).Data}
	for _, in := range n.In {
		x, err := s.value(in)
		if err != nil {
			return nil, err
		}
		c.In = append(c.In, x)
	}
	for _, t := range n.Out {
		c.Out = append(c.Out, tensor.New(t))
	}
	if err := call(n, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", n.Name, err)
	}
	return c.Out, nil
}

// call runs a node's kernel. Data that it was not made for may make it panic.
func call(n *graph.Node, c *kernel.Call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kernel panicked: %v", p)
		}
	}()
	fn, err := kernel.Lookup(kernel.CPU, n.Op)
	if err != nil {
		return err
	}
	return fn(n.Op, c)
}

// filled is noise of a type.
func (s source) filled(t tensor.Type) tensor.View {
	v := tensor.New(t)
	for rest := v.Data; len(rest) > 0; {
		rest = rest[copy(rest, s.floats):]
	}
	return v
}

// numbers are spread over the upper half of what is below a leaf's limit: lengths are
// mostly long, and ids are not all the same.
func (s source) numbers(leaf *graph.Node) tensor.View {
	v := tensor.New(leaf.Out[0])
	if v.Type.DType != tensor.I32 {
		return v
	}
	below, ok := s.below[leaf]
	if !ok {
		below = maxNumber
	}
	for i := range v.I32() {
		v.I32()[i] = below/2 + int32(i)*7%(below-below/2)
	}
	return v
}
