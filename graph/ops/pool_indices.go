package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// MaxPoolIndices is MaxPool and where in x its elements are: i64, of the elements in the order of
// the last axis. [MaxUnpool] puts elements back there.
func MaxPoolIndices(x graph.Value, p Pool) (y, indices graph.Value) {
	w, ok := p.over(x)
	if !ok {
		return
	}
	out := applyN(2, maxPoolND{w}, x)
	t := x.Type()
	sizes := make([]int, t.Rank())
	for i := range sizes {
		sizes[i] = 1
	}
	sizes[0], sizes[1] = t.Size(0), t.Size(1)
	first := tensor.New(tensor.Of(graph.I64, sizes...))
	for i := range first.I64() {
		first.I64()[i] = int64(i * w.elements(t))
	}
	return out[0], Add(Cast(out[1], graph.I64), x.Graph().Constant("planes", first))
}

// MaxUnpool is zeros of some sizes with the elements of y where indices, i32 or i64, of
// [MaxPoolIndices] say.
func MaxUnpool(y, indices graph.Value, sizes ...int) graph.Value {
	if !y.Valid() || !indices.Valid() {
		return graph.Value{}
	}
	flat := tensor.Of(graph.F32, tensor.Of(graph.F32, sizes...).Elems())
	n := y.Type().Elems()
	at := ReshapeSizes(Cast(indices, graph.I32), n)
	put := Scatter(Zeros(y.Graph(), flat), at, ReshapeSizes(y, n), 0, ScatterSet)
	return ReshapeSizes(put, sizes...)
}
