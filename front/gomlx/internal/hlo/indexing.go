package hlo

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
)

// Gather is blocks of x, of any element type, from n places: row i of indices, i64[n k], is where
// block i begins along the axes in along, and it begins at 0 along all others. A block has sizes
// along x's axes: [n sizes…]. One that would reach out of x is moved inside.
func Gather(x, indices graph.Value, along, sizes []int) graph.Value {
	return apply(gather{Along: listOf(along), Sizes: listOf(sizes)}, x, indices)
}

type gather struct {
	streaming
	Along, Sizes list
}

func (gather) Name() string { return "gather-blocks" }

func (o gather) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := errors.Join(operands(in, 2), check(o.Along, o.Sizes)); err != nil {
		return nil, err
	}
	x := in[0]
	if o.Sizes.N != x.Rank() {
		return nil, fmt.Errorf("blocks of %d axes of %s", o.Sizes.N, x)
	}
	for i, n := range o.Sizes.of() {
		if n < 0 || n > x.Size(i) {
			return nil, fmt.Errorf("blocks of %d along axis %d of %s", n, i, x)
		}
	}
	if err := places(x, in[1], o.Along); err != nil {
		return nil, err
	}
	sizes := append([]int{in[1].Size(0)}, o.Sizes.of()...)
	return []graph.Type{graph.Of(x.DType, sizes...)}, nil
}

// places rejects indices that do not say where along some axes of x blocks begin.
func places(x, indices graph.Type, along list) error {
	if indices.DType != graph.I64 || indices.Rank() != 2 || indices.Size(1) != along.N {
		return fmt.Errorf("indices %s, want i64[n %d]", indices, along.N)
	}
	for _, a := range along.of() {
		if a < 0 || a >= x.Rank() {
			return fmt.Errorf("indices along axis %d of %s", a, x)
		}
	}
	return nil
}

func gatherCPU(o gather, c *custom.Call) error {
	x, at, out := c.In[0], c.In[1].I64(), c.Out[0]
	bytes := int(x.Type.DType.Size())
	ss := strides(x.Type, bytes)
	sizes := o.Sizes.of()
	ds := strides(graph.Of(x.Type.DType, sizes...), bytes)
	block := bytes
	for _, n := range sizes {
		block *= n
	}
	k := o.Along.N
	c.For(c.In[1].Type.Size(0), max(1, grain/block), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from := 0
			for j, a := range o.Along.of() {
				from += ss[a] * inside(at[i*k+j], x.Type.Size(a)-sizes[a])
			}
			move(out.Data, x.Data, i*block, from, bytes, sizes, ds[:], ss[:])
		}
	})
	return nil
}

// inside is the index, or the nearest from 0 to most.
func inside(index int64, most int) int { return int(min(max(index, 0), int64(most))) }

// Scatter is x with blocks put to n places: row i of indices, i64[n k], is where block i of
// updates, [n sizes…], begins along the axes in along, and it begins at 0 along all others.
// Elements of blocks that reach out of x are left out, but blocks that replace what is there, by
// [Put], are moved inside. x is of numbers of any type but 16-bit floating-point ones, or, for
// Put, of any type.
func Scatter(how How, x, indices, updates graph.Value, along []int) graph.Value {
	return apply(scatter{How: how, Along: listOf(along)}, x, indices, updates)
}

type scatter struct {
	streaming
	How   How
	Along list
}

func (scatter) Name() string { return "scatter-blocks" }

func (o scatter) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := errors.Join(operands(in, 3), check(o.Along)); err != nil {
		return nil, err
	}
	x, updates := in[0], in[2]
	if err := errors.Join(places(x, in[1], o.Along), numeric(x.DType, o.How)); err != nil {
		return nil, err
	}
	if updates.DType != x.DType || updates.Rank() != x.Rank()+1 ||
		updates.Size(0) != in[1].Size(0) {
		return nil, fmt.Errorf("updates %s for %d places of %s", updates, in[1].Size(0), x)
	}
	for i := range x.Shape {
		if updates.Size(i+1) > x.Size(i) {
			return nil, fmt.Errorf("updates %s are larger than %s", updates, x)
		}
	}
	return []graph.Type{graph.Of(x.DType, x.Sizes()...)}, nil
}

// InPlace: what is read of x is what the result has already.
func (scatter) InPlace(_, _ []graph.Type) []int { return []int{0} }

func scatterCPU(o scatter, c *custom.Call) error {
	x, at, updates, out := c.In[0], c.In[1].I64(), c.In[2], c.Out[0]
	copy(out.Data, x.Data)
	if len(updates.Data) == 0 {
		return nil
	}
	put := folder(o.How, out, updates)
	size, step := x.Type.Sizes(), strides(x.Type, 1)
	block := odometer{sizes: updates.Type.Sizes()[1:]}
	k, j := o.Along.N, 0
	for i := range c.In[1].Type.Size(0) {
		var start [maxRank]int64
		for l, a := range o.Along.of() {
			start[a] = at[i*k+l]
			if o.How == Put {
				start[a] = int64(inside(start[a], size[a]-block.sizes[a]))
			}
		}
		for more := true; more; more = block.next() {
			if to, ok := place(size, step, start, block.at); ok {
				put(to, j)
			}
			j++
		}
	}
	return nil
}

// place is the index of the element at start + at; false if there is none.
func place(size []int, step [maxRank]int, start [maxRank]int64, at [maxRank]int) (int, bool) {
	to := 0
	for a, n := range size {
		i := start[a] + int64(at[a])
		if i < 0 || i >= int64(n) {
			return 0, false
		}
		to += int(i) * step[a]
	}
	return to, true
}
