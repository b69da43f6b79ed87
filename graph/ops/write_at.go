package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Values that grow row by row, such as the keys and values of a decoder's past, have
// the room for all rows from the start. These operations read and write some of them,
// at a position that is an operand: i32[], or i32[batch] for a place of its own in
// every element of axis 0. Rows that would lie outside are an error.

// WriteAt is an update: it writes rows into a variable along an axis, from position on.
// cache is [… length …] of any element type, rows [… n …] agrees with it in all other
// axes. Rows elsewhere stay as they are, and are not touched.
func WriteAt(cache, rows, position graph.Value, along int) *graph.Node {
	o := writeAt{Axis: axis(along, cache.Type().Rank())}
	return update(o, []graph.Value{cache}, rows, position)
}

// ReorderWriteAt is WriteAt after a Reorder in place: element i of the variable's first
// axis becomes what element parent[i] was, parent i32[batch], and then gets its rows.
// It is how the beams of a search go on from the beams that they came from.
func ReorderWriteAt(cache, parent, rows, position graph.Value, along int) *graph.Node {
	o := writeAt{Axis: axis(along, cache.Type().Rank()), Reorder: true}
	return update(o, []graph.Value{cache}, rows, position, parent)
}

// PutAt is x with rows instead of its own along an axis, from position on: WriteAt as a
// value. Its gradient goes to x elsewhere, and to the rows.
func PutAt(x, rows, position graph.Value, along int) graph.Value {
	return apply(putAt{Axis: axis(along, x.Type().Rank())}, x, rows, position)
}

// SliceAt is n rows of x along an axis, from position on; it is to PutAt what Slice is
// to Pad.
func SliceAt(x, position graph.Value, along, n int) graph.Value {
	return apply(sliceAt{Axis: axis(along, x.Type().Rank()), N: n}, x, position)
}

// checkAt wants rows [… n …] that agree with whole [… length …] but for an axis, and a
// position or one for every element of the first.
func checkAt(whole, rows, position graph.Type, axis int) error {
	if axis < 0 || axis >= whole.Rank() {
		return fmt.Errorf("%s has no axis %d", whole, axis)
	}
	if rows.DType != whole.DType || rows.Rank() != whole.Rank() ||
		!resized(rows, axis, 1).Equal(resized(whole, axis, 1)) {
		return fmt.Errorf("rows %s of %s along axis %d%s", rows, whole, axis,
			convertible(rows, whole.DType))
	}
	if rows.Size(axis) > whole.Size(axis) {
		return fmt.Errorf("%d rows where %s has %d", rows.Size(axis), whole, whole.Size(axis))
	}
	if position.DType != graph.I32 || position.Rank() > 1 || position.Rank() == 1 &&
		(axis == 0 || position.Size(0) != whole.Size(0)) {
		return fmt.Errorf("the position is %s, want i32[], or one for each element of axis 0 of "+
			"%s%s", position, whole, convertible(position, graph.I32))
	}
	return nil
}

// checkPositions reports a position at which n rows would not lie in an axis.
func checkPositions(positions []int32, n, size int) error {
	for _, p := range positions {
		if p < 0 || int(p) > size-n {
			return fmt.Errorf("%d rows at position %d are outside an axis of %d", n, p, size)
		}
	}
	return nil
}

// eachPlace visits the runs of rows of a part within a whole, in parallel: f gets where
// they start in each, and how long they are, in bytes.
func eachPlace(c *kernel.Call, whole, part tensor.Type, axis int, positions []int32,
	f func(whole, part, n int)) {
	outer, step := blocks(whole, axis)
	size, n := whole.Size(axis)*step, part.Size(axis)*step
	each := max(1, outer/max(1, len(positions)))
	c.Pool.For(outer, max(1, grain/max(1, n)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i*size+int(positions[i/each])*step, i*n, n)
		}
	})
}

// writeAt has operands cache, rows and position, and parent if it reorders.
type writeAt struct {
	Axis    int
	Reorder bool
}

func (o writeAt) Name() string {
	if o.Reorder {
		return "reorder-write-at"
	}
	return "write-at"
}

func (o writeAt) Infer(in []graph.Type) ([]graph.Type, error) {
	operands := 3
	if o.Reorder {
		operands = 4
	}
	if err := arity(in, operands); err != nil {
		return nil, err
	}
	if err := checkAt(in[0], in[1], in[2], o.Axis); err != nil {
		return nil, err
	}
	if o.Reorder {
		return nil, checkParents(in[0], in[3])
	}
	return nil, nil
}

// Cost: the scratch has a column of every element of axis 0, for each block of columns.
func (o writeAt) Cost(in, _ []graph.Type) graph.Cost {
	cost := graph.Cost{Bytes: 2*in[1].Bytes() + in[2].Bytes()}
	if o.Reorder {
		cost.Bytes += 2 * in[0].Bytes()
		cost.Scratch = int64(len(columnsOf(in[0]))) * int64(in[0].Size(0)) * columnBytes
	}
	return cost
}

func (writeAt) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

// CheckData wants rows that lie inside, and parents that are.
func (o writeAt) CheckData(in []tensor.View) error {
	err := checkPositions(known(in[2]), in[1].Type.Size(o.Axis), in[0].Type.Size(o.Axis))
	if err == nil && o.Reorder {
		err = checkIDs(known(in[3]), in[0].Type.Size(0))
	}
	return err
}

func writeAtCPU(o writeAt, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	cache, rows := c.In[0], c.In[1]
	if o.Reorder {
		reorderInPlace(c, cache, c.In[3].I32())
	}
	eachPlace(c, cache.Type, rows.Type, o.Axis, c.In[2].I32(), func(at, from, n int) {
		copy(cache.Data[at:at+n], rows.Data[from:])
	})
	return nil
}

// columnBytes is how much of an element of axis 0 is moved at a time.
const columnBytes = 1 << 12

// columnsOf are the blocks of columns, of columnBytes each, of the elements of axis 0.
func columnsOf(t tensor.Type) [][2]int {
	row := int(t.Bytes()) / max(1, t.Size(0))
	columns := (row + columnBytes - 1) / columnBytes
	list := make([][2]int, min(columns, 16))
	for i := range list {
		list[i] = [2]int{i * columns / len(list), (i + 1) * columns / len(list)}
	}
	return list
}

// reorderInPlace takes a column of all elements that move to the scratch, and from there
// to where they go.
func reorderInPlace(c *kernel.Call, x tensor.View, parent []int32) {
	if isOwn(parent) {
		return
	}
	row, list := len(x.Data)/len(parent), columnsOf(x.Type)
	c.Pool.Run(len(list), func(b int) {
		room := c.Scratch[b*len(parent)*columnBytes:]
		for column := list[b][0]; column < list[b][1]; column++ {
			lo, hi := column*columnBytes, min(row, (column+1)*columnBytes)
			for i, p := range parent {
				if int(p) != i {
					copy(room[i*columnBytes:(i+1)*columnBytes], x.Data[int(p)*row+lo:int(p)*row+hi])
				}
			}
			for i, p := range parent {
				if int(p) != i {
					copy(x.Data[i*row+lo:i*row+hi], room[i*columnBytes:])
				}
			}
		}
	})
}

// isOwn reports whether every element is its own parent.
func isOwn(parent []int32) bool {
	for i, p := range parent {
		if int(p) != i {
			return false
		}
	}
	return true
}

// putAt has operands x, rows and position.
type putAt struct{ Axis int }

func (putAt) Name() string { return "put-at" }

func (o putAt) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 3); err != nil {
		return nil, err
	}
	return in[:1:1], checkAt(in[0], in[1], in[2], o.Axis)
}

func (putAt) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

// InPlace: only the rows are written.
func (putAt) InPlace(_, _ []graph.Type) []int { return []int{0} }

// CheckData wants rows that lie inside.
func (o putAt) CheckData(in []tensor.View) error { return writeAt{Axis: o.Axis}.CheckData(in) }

func (o putAt) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	rows, position, d := n.In[1].Type(), n.In[2], dout[0]
	return []graph.Value{
		apply(o, d, Zeros(n.Graph(), rows), position),
		apply(sliceAt{Axis: o.Axis, N: rows.Size(o.Axis)}, d, position), {},
	}
}

func putAtCPU(o putAt, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	x, rows, out := c.In[0], c.In[1], c.Out[0]
	c.Pool.For(len(out.Data), 4*grain, func(lo, hi int) { copy(out.Data[lo:hi], x.Data[lo:hi]) })
	eachPlace(c, out.Type, rows.Type, o.Axis, c.In[2].I32(), func(at, from, n int) {
		copy(out.Data[at:at+n], rows.Data[from:])
	})
	return nil
}

// sliceAt has operands x and position.
type sliceAt struct{ Axis, N int }

func (sliceAt) Name() string { return "slice-at" }

func (o sliceAt) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 2); err != nil {
		return nil, err
	}
	if o.Axis < 0 || o.Axis >= in[0].Rank() || o.N < 0 || o.N > in[0].Size(o.Axis) {
		return nil, fmt.Errorf("%s has no %d rows along axis %d", in[0], o.N, o.Axis)
	}
	out := resized(in[0], o.Axis, o.N)
	return []graph.Type{out}, checkAt(in[0], out, in[1], o.Axis)
}

func (sliceAt) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2*out[0].Bytes() + in[1].Bytes()}
}

// CheckData wants rows that lie inside.
func (o sliceAt) CheckData(in []tensor.View) error {
	return checkPositions(known(in[1]), o.N, in[0].Type.Size(o.Axis))
}

func (o sliceAt) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	zeros := Zeros(n.Graph(), n.In[0].Type())
	return []graph.Value{apply(putAt{o.Axis}, zeros, dout[0], n.In[1]), {}}
}

func sliceAtCPU(o sliceAt, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	x, out := c.In[0], c.Out[0]
	eachPlace(c, x.Type, out.Type, o.Axis, c.In[1].I32(), func(at, to, n int) {
		copy(out.Data[to:to+n], x.Data[at:])
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, writeAtCPU)
	kernel.Register(kernel.CPU, putAtCPU)
	kernel.Register(kernel.CPU, sliceAtCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	i := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	put := func(axis int, in ...graph.Type) Sample {
		return Sample{Op: putAt{axis}, In: in, Fill: fills{2: below(3)}, NoGrad: []int{2},
			Second: true}
	}
	register(
		Sample{Op: writeAt{Axis: 1}, In: []graph.Type{f(3, 5, 4), f(3, 2, 4), i()},
			Fill: fills{2: below(4)}, Update: 1},
		Sample{Op: writeAt{Axis: 2}, In: []graph.Type{f(3, 2, 5, 4), f(3, 2, 1, 4), i(3)},
			Fill: fills{2: below(5)}, Update: 1},
		Sample{Op: writeAt{Axis: 2, Reorder: true}, Fill: fills{2: below(5), 3: below(3)},
			In: []graph.Type{f(3, 2, 5, 400), f(3, 2, 1, 400), i(3), i(3)}, Update: 1},
		put(0, f(4, 5), f(2, 5), i()), put(1, f(3, 4), f(3, 2), i()),
		put(2, f(3, 2, 4, 5), f(3, 2, 2, 5), i(3)),
		Sample{Op: putAt{1}, In: []graph.Type{i(3, 4), i(3, 1), i(3)}, Fill: fills{2: below(4)},
			NoGrad: []int{0, 1, 2}},
		Sample{Op: sliceAt{0, 2}, In: []graph.Type{f(4, 5), i()}, Fill: fills{1: below(3)},
			NoGrad: []int{1}, Second: true},
		Sample{Op: sliceAt{2, 2}, In: []graph.Type{f(3, 2, 4, 5), i(3)}, Fill: fills{1: below(3)},
			NoGrad: []int{1}, Second: true},
	)
}
