package fold

import (
	"bytes"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// propose says how a constant may be made, the least first: what is the same along an axis is had
// once, and what is left may be a triangle or one-hot vectors.
func propose(x tensor.View) (list []generator) {
	once := x
	for axis := range x.Type.Shape {
		once = unrepeated(once, axis)
	}
	repeats := once.Type.Bytes() < x.Type.Bytes()
	rest := func(v graph.Value) graph.Value {
		if repeats {
			v = ops.BroadcastTo(v, x.Type.Sizes()...)
		}
		if !v.Type().Equal(x.Type) {
			v = ops.Reshape(v, x.Type.Shape...)
		}
		return v
	}
	if number, core, ok := triangle(once); ok {
		list = append(list, generator{seed: number, core: core, rest: rest})
	}
	if ids, core, ok := oneHots(once); ok {
		list = append(list, generator{seed: ids, core: core, rest: rest})
	}
	if repeats {
		itself := func(v graph.Value) graph.Value { return v }
		list = append(list, generator{seed: once, core: itself, rest: rest})
	}
	return list
}

// plain is a view as one of a type without names.
func plain(d graph.DType, data []byte, sizes ...int) tensor.View {
	return tensor.View{Type: tensor.Of(d, sizes...), Data: data}
}

// unrepeated has the first element along an axis if all are the same, and else all.
func unrepeated(x tensor.View, axis int) tensor.View {
	sizes := x.Type.Sizes()
	n, inner := sizes[axis], int(x.Type.DType.Size())
	for _, s := range sizes[axis+1:] {
		inner *= s
	}
	if n < 2 || inner == 0 || len(x.Data) == 0 {
		return x
	}
	var once []byte
	for block := x.Data; len(block) > 0; block = block[n*inner:] {
		first := block[:inner]
		if !bytes.Equal(block[inner:n*inner], block[:(n-1)*inner]) {
			return x
		}
		once = append(once, first...)
	}
	sizes[axis] = 1
	return plain(x.Type.DType, once, sizes...)
}

// triangle proposes that a matrix is one number on one side of a diagonal, and zero on the other:
// by its first row in which both are.
func triangle(x tensor.View) (number tensor.View, core func(graph.Value) graph.Value, ok bool) {
	t, size := x.Type, int(x.Type.DType.Size())
	if t.Rank() < 2 || t.Size(-1) < 2 || t.Size(-2) < 2 || t.Elems() != t.Size(-1)*t.Size(-2) {
		return number, nil, false
	}
	width, zero := t.Size(-1), bytes.Repeat([]byte{0}, size)
	sizes := t.Sizes()
	for row := range t.Size(-2) {
		data := x.Data[row*width*size : (row+1)*width*size]
		at := 1 // where the row changes
		for at < width && bytes.Equal(data[at*size:(at+1)*size], data[:size]) {
			at++
		}
		if at == width {
			continue
		}
		first, last := data[:size], data[len(data)-size:]
		fill := func(v graph.Value) graph.Value { return ops.BroadcastTo(v, sizes...) }
		ones := scalarSizes(t.Rank())
		switch {
		case bytes.Equal(last, zero):
			return plain(t.DType, first, ones...), func(v graph.Value) graph.Value {
				return ops.Tril(fill(v), at-row-1)
			}, true
		case bytes.Equal(first, zero):
			return plain(t.DType, last, ones...), func(v graph.Value) graph.Value {
				return ops.Triu(fill(v), at-row)
			}, true
		}
		return number, nil, false
	}
	return number, nil, false
}

// scalarSizes are those of one element with so many axes.
func scalarSizes(rank int) []int {
	return slices.Repeat([]int{1}, rank)
}

// oneHots proposes that rows have a one each.
func oneHots(x tensor.View) (ids tensor.View, core func(graph.Value) graph.Value, ok bool) {
	t := x.Type
	if t.DType != graph.F32 || t.Rank() < 2 || t.Size(-1) < 2 {
		return ids, nil, false
	}
	width := t.Size(-1)
	one := tensor.FromF32([]float32{1}).Data
	sizes := t.Sizes()
	ids = tensor.New(tensor.Of(graph.I32, sizes[:len(sizes)-1]...))
	for row := range ids.I32() {
		data := x.Data[row*width*4 : (row+1)*width*4]
		at := 0
		for at < width && !bytes.Equal(data[at*4:at*4+4], one) {
			at++
		}
		if at == width {
			return ids, nil, false
		}
		ids.I32()[row] = int32(at)
	}
	return ids, func(v graph.Value) graph.Value { return ops.OneHot(v, width) }, true
}
