package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// scatterWords says as what a kernel takes elements: 0 for floats, or integers of so many bytes.
func scatterWords(x cuda.Operand) int32 {
	if x.Type.DType == graph.F32 {
		return 0
	}
	return size(x)
}

// scatteredTo are the operands' elements before the updates, and the kernel.
func scatteredTo(c *cuda.Call, kernel cuda.Command) ([]cuda.Command, error) {
	var list []cuda.Command
	if c.In[0].Addr != c.Out[0].Addr {
		list = append(list, copiedWhole(c.Out[0], c.In[0]))
	}
	return append(list, kernel), nil
}

func scatterAtCUDA(o scatterAt, c *cuda.Call) ([]cuda.Command, error) {
	x, index := c.In[0].Type, c.In[1].Type
	to, own := stridesOf(x), stridesOf(index)
	var w cudaWalk
	for i, d := range index.Shape {
		a := strided{size: d.Size, stride: each{to[i], own[i]}}
		if i == o.Axis {
			a.stride = each{}
		}
		w.axes = append(w.axes, a)
	}
	return scatteredTo(c, overElements("scatter_at", elems(c.In[1]), w.args(c.Out[0], c.In[2],
		c.In[1], x.Size(o.Axis), to[o.Axis], index.Size(o.Axis), own[o.Axis],
		scatterWords(c.In[0]), int32(o.How))...))
}

// walk is over elements of what vectors name; its axes are those of the places.
func (v vectors) walk() cudaWalk {
	var w cudaWalk
	strides := stridesOf(tensor.Type{Shape: v.sizes})
	for i, d := range v.sizes {
		w.axes = append(w.axes, strided{d.Size, each{strides[i]}})
	}
	return w
}

func scatterNDCUDA(o scatterND, c *cuda.Call) ([]cuda.Command, error) {
	v, err := vectorsOf(c.In[0].Type, c.In[1].Type, o.Batch)
	if err != nil {
		return nil, err
	}
	n := elems(c.In[2])
	return scatteredTo(c, overElements("scatter_nd", n, v.walk().args(c.Out[0], c.In[2], c.In[1], n,
		v.count, v.places, v.inner, scatterWords(c.In[0]), int32(o.How))...))
}

func gatherNDCUDA(o gatherND, c *cuda.Call) ([]cuda.Command, error) {
	v, err := vectorsOf(c.In[0].Type, c.In[1].Type, o.Batch)
	if err != nil {
		return nil, err
	}
	n := elems(c.Out[0])
	return only(overElements("gather_nd", n, v.walk().args(c.Out[0], c.In[0], c.In[1], n, v.count,
		v.places, v.inner, size(c.In[0]))...))
}

func init() {
	cuda.Register(scatterAtCUDA, nil)
	cuda.Register(scatterNDCUDA, nil)
	cuda.Register(gatherNDCUDA, nil)
}
