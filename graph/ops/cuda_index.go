package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// table is rows of inner elements by index, for each of outer parts: n of them on one side,
// count on the other.
type table struct{ outer, count, n, inner, first int }

// take takes rows. What is outside is zero, or else not a number.
func (t table) take(out, x, index cuda.Operand, zero bool) ([]cuda.Command, error) {
	return only(overElements("take_rows", t.outer*t.count*t.inner, out, x, index, t.outer, t.count,
		t.n, t.inner, t.first, size(x), zero))
}

// add adds rows up, and to what is at kept unless that is 0.
func (t table) add(out cuda.Operand, kept uint64, d, index cuda.Operand) ([]cuda.Command, error) {
	const group = 16 // rows of a block
	tiles := (t.inner + threads - 1) / threads
	return only(launched(kernelOf("add_rows", d), t.outer*((t.n+group-1)/group)*tiles, out, kept,
		d, index, t.outer, t.count, t.n, t.inner, t.first, tiles))
}

// tableOf is a table f32[n d] and indices into it.
func tableOf(t, index cuda.Operand, first int) table {
	return table{1, elems(index), t.Type.Size(0), t.Type.Size(1), first}
}

func embeddingCUDA(_ embedding, c *cuda.Call) ([]cuda.Command, error) {
	return tableOf(c.In[0], c.In[1], 0).take(c.Out[0], c.In[0], c.In[1], false)
}

func embeddingGradCUDA(_ embeddingGrad, c *cuda.Call) ([]cuda.Command, error) {
	return tableOf(c.Out[0], c.In[0], 0).add(c.Out[0], 0, c.In[1], c.In[0])
}

func embeddingAddCUDA(_ embeddingAdd, c *cuda.Call) ([]cuda.Command, error) {
	return tableOf(c.Out[0], c.In[1], 0).add(c.Out[0], c.In[0].Addr, c.In[2], c.In[1])
}

func embeddingPartCUDA(o embeddingPart, c *cuda.Call) ([]cuda.Command, error) {
	return tableOf(c.In[0], c.In[1], o.First).take(c.Out[0], c.In[0], c.In[1], true)
}

func embeddingPartGradCUDA(o embeddingPartGrad, c *cuda.Call) ([]cuda.Command, error) {
	return tableOf(c.Out[0], c.In[0], o.First).add(c.Out[0], 0, c.In[1], c.In[0])
}

func takeCUDA(o take, c *cuda.Call) ([]cuda.Command, error) {
	t := c.In[0].Type
	outer := graph.Type{Shape: t.Shape[:o.Axis]}.Elems()
	inner := graph.Type{Shape: t.Shape[o.Axis+1:]}.Elems()
	return table{outer, elems(c.In[1]), t.Size(o.Axis), inner, 0}.take(c.Out[0], c.In[0], c.In[1],
		false)
}

func takeGradCUDA(o takeGrad, c *cuda.Call) ([]cuda.Command, error) {
	t := c.Out[0].Type
	return table{t.Size(0), elems(c.In[0]), o.Size, t.Size(2), 0}.add(c.Out[0], 0, c.In[1],
		c.In[0])
}

func reorderCUDA(_ reorder, c *cuda.Call) ([]cuda.Command, error) {
	t := c.In[0].Type
	inner := graph.Type{Shape: t.Shape[1:]}.Elems()
	return table{1, elems(c.In[1]), t.Size(0), inner, 0}.take(c.Out[0], c.In[0], c.In[1], false)
}

func gatherCUDA(o gather, c *cuda.Call) ([]cuda.Command, error) {
	x, index := c.In[0].Type, c.In[1].Type
	strides := stridesOf(x)
	var w cudaWalk
	for i, d := range index.Shape {
		a := strided{size: d.Size}
		if i != o.Axis {
			a.stride[0] = strides[i]
		}
		w.axes = append(w.axes, a)
	}
	return only(overElements("gather", elems(c.In[1]), w.args(c.Out[0], c.In[0], c.In[1],
		x.Size(o.Axis), strides[o.Axis], size(c.In[0]))...))
}

func scatterCUDA(o scatter, c *cuda.Call) ([]cuda.Command, error) {
	return scattered(c, o.Axis)
}

// scattered adds up, for every element of the result, what has its index along an axis:
// operands are the indices and the elements.
func scattered(c *cuda.Call, axis int) ([]cuda.Command, error) {
	index := c.In[0].Type
	strides := stridesOf(index)
	var w, inside cudaWalk
	for i, d := range c.Out[0].Type.Shape {
		a, limit := strided{size: d.Size, stride: each{0, strides[i]}}, index.Size(i)
		if i == axis {
			a.stride, limit = each{1, 0}, d.Size
		}
		w.axes = append(w.axes, a)
		inside.axes = append(inside.axes, strided{size: limit})
	}
	more := append([]any{c.Out[0], c.In[1], c.In[0], index.Size(axis), strides[axis]},
		inside.args()...)
	return only(overElements("scatter", elems(c.Out[0]), w.args(more...)...))
}

func scatterLastCUDA(_ scatterLast, c *cuda.Call) ([]cuda.Command, error) {
	flat := *c // any number of axes is two
	flat.In = []cuda.Operand{flattened(c.In[0]), flattened(c.In[1])}
	flat.Out = []cuda.Operand{flattened(c.Out[0])}
	return scattered(&flat, 1)
}

// flattened is a value as rows of its last axis.
func flattened(o cuda.Operand) cuda.Operand {
	rows, n := lastRows(o)
	return cuda.Operand{Addr: o.Addr, Type: tensor.Of(o.Type.DType, rows, n)}
}

func gatherLastCUDA(_ gatherLast, c *cuda.Call) ([]cuda.Command, error) {
	flat := *c
	flat.In = []cuda.Operand{flattened(c.In[1]), flattened(c.In[0])}
	return gatherCUDA(gather{Axis: 1}, &flat)
}

// inRows is an operation with places in rows, of which it has those from an element on.
type inRows interface {
	from(c *cuda.Call, first int) ([]cuda.Command, error)
}

func inRowsCUDA[O inRows](o O, c *cuda.Call) ([]cuda.Command, error) { return o.from(c, 0) }

func onePlaceCUDA(o onePlace, c *cuda.Call) ([]cuda.Command, error) {
	whole, ok := o.Of.(inRows)
	if !ok {
		return nil, fmt.Errorf("no cuda kernel for a part of %s", o.Of.Name())
	}
	return whole.from(c, o.First)
}

func (takeLast) from(c *cuda.Call, first int) ([]cuda.Command, error) {
	rows, n := lastRows(c.In[0])
	return only(overElements("take_last", rows, c.Out[0], c.In[0], c.In[1], rows, n, first))
}

func (putLast) from(c *cuda.Call, first int) ([]cuda.Command, error) {
	rows, n := lastRows(c.Out[0])
	return only(overElements("put_last", rows*n, c.Out[0], c.In[0], c.In[1], rows, n, first))
}

func (oneHot) from(c *cuda.Call, first int) ([]cuda.Command, error) {
	rows, n := lastRows(c.Out[0])
	return only(overElements("one_hot", rows*n, c.Out[0], c.In[0], rows, n, first))
}

// atPlace moves a part that is in a whole from a position on.
func atPlace(name string, to, from, position cuda.Operand, whole, part tensor.Type,
	axis int) cuda.Command {
	outer := graph.Type{Shape: whole.Shape[:axis]}.Elems()
	inner := graph.Type{Shape: whole.Shape[axis+1:]}.Elems()
	each := max(1, outer/max(1, elems(position)))
	return overElements(name, part.Elems(), to, from, position, outer, whole.Size(axis),
		part.Size(axis), inner, each, int32(whole.DType.Size()))
}

// writeAtCUDA reorders by way of the scratch, which has all of the variable.
func writeAtCUDA(o writeAt, c *cuda.Call) ([]cuda.Command, error) {
	cache, rows := c.In[0], c.In[1]
	var list []cuda.Command
	if o.Reorder && elems(cache) > 0 {
		room := cuda.Operand{Addr: c.Scratch, Type: cache.Type}
		moved, err := reorderCUDA(reorder{}, &cuda.Call{In: []cuda.Operand{cache, c.In[3]},
			Out: []cuda.Operand{room}})
		if err != nil {
			return nil, err
		}
		list = append(moved, copiedWhole(cache, room))
	}
	if elems(rows) == 0 {
		return list, nil
	}
	return append(list, atPlace("put_at", cache, rows, c.In[2], cache.Type, rows.Type,
		o.Axis)), nil
}

func writeAtScratch(o writeAt, in, _ []graph.Type) int64 {
	if !o.Reorder {
		return 0
	}
	return in[0].Bytes()
}

func putAtCUDA(o putAt, c *cuda.Call) ([]cuda.Command, error) {
	var list []cuda.Command
	if c.In[0].Addr != c.Out[0].Addr {
		list = append(list, copiedWhole(c.Out[0], c.In[0]))
	}
	if elems(c.In[1]) == 0 {
		return list, nil
	}
	return append(list, atPlace("put_at", c.Out[0], c.In[1], c.In[2], c.Out[0].Type, c.In[1].Type,
		o.Axis)), nil
}

func sliceAtCUDA(o sliceAt, c *cuda.Call) ([]cuda.Command, error) {
	return only(atPlace("slice_at", c.Out[0], c.In[0], c.In[1], c.In[0].Type, c.Out[0].Type,
		o.Axis))
}

func rotaryCUDA(o rotary, c *cuda.Call) ([]cuda.Command, error) {
	t, positions := c.In[0].Type, c.In[1].Type
	rows, width := lastRows(c.In[0])
	var rates uint64
	if o.Rated {
		rates = c.In[2].Addr
	}
	each := rows // rows that share the positions
	if positions.Rank() == 2 {
		each /= max(1, t.Size(0))
	}
	const strip = 16 // places of a thread
	places, half := o.sequences(typesOf(c.In)), o.Width/2
	return []cuda.Command{
		overElements("rotary_angles", (places+strip-1)/strip*half, c.Scratch, c.In[1], rates,
			places, half, flag(positions.Rank() > 0), o.Base, o.Back),
		overWarps(kernelOf("rotary", c.In[0]), rows, c.Out[0], c.In[0], c.Scratch, rows,
			t.Size(o.length(t)), o.heads(t), width, half, each, o.Interleaved),
	}, nil
}

// rotaryScratch has the cosine and the sine of every angle.
func rotaryScratch(o rotary, in, _ []graph.Type) int64 {
	return int64(bytesOf(o.sequences(in) * o.Width))
}

func init() {
	cuda.Register(embeddingCUDA, nil)
	cuda.Register(embeddingGradCUDA, nil)
	cuda.Register(embeddingAddCUDA, nil)
	cuda.Register(embeddingPartCUDA, nil)
	cuda.Register(embeddingPartGradCUDA, nil)
	cuda.Register(takeCUDA, nil)
	cuda.Register(takeGradCUDA, nil)
	cuda.Register(reorderCUDA, nil)
	cuda.Register(gatherCUDA, nil)
	cuda.Register(scatterCUDA, nil)
	cuda.Register(scatterLastCUDA, nil)
	cuda.Register(gatherLastCUDA, nil)
	cuda.Register(inRowsCUDA[takeLast], nil)
	cuda.Register(inRowsCUDA[putLast], nil)
	cuda.Register(inRowsCUDA[oneHot], nil)
	cuda.Register(onePlaceCUDA, nil)
	cuda.Register(writeAtCUDA, writeAtScratch)
	cuda.Register(putAtCUDA, nil)
	cuda.Register(sliceAtCUDA, nil)
	cuda.Register(rotaryCUDA, rotaryScratch)
}
