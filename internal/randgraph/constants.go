package randgraph

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// Constants is Random with larger matrices and many constants: fills, masks, rows that repeat,
// one-hot vectors and tables, what is computed of constants alone, and reads of all of them.
func Constants(pick func(n int) int, size int) *Model {
	b := &builder{g: graph.New(), pick: pick, rows: 32 * (1 + pick(2)), cols: 32 * (1 + pick(2)),
		kinds: ownKinds, constants: true}
	b.known = []graph.Value{b.stated()}
	return b.step(size)
}

// stated is a constant f32[rows cols], or one that operations make of nothing.
func (b *builder) stated() graph.Value {
	t := tensor.Of(graph.F32, b.rows, b.cols)
	x, at := tensor.New(t), b.pick(b.rows+b.cols)-b.rows
	number := []float32{1, -1e9, 0.25, 0}[b.pick(4)]
	put := func(f func(row, col int) float32) graph.Value {
		for i := range x.F32() {
			x.F32()[i] = f(i/b.cols, i%b.cols)
		}
		return b.g.Constant("stated", x)
	}
	switch b.pick(8) {
	case 0:
		return ops.Full(b.g, t, number)
	case 1:
		return put(func(_, _ int) float32 { return number })
	case 2:
		return put(func(_, col int) float32 { return float32(col) / 8 })
	case 3:
		return put(func(row, _ int) float32 { return float32(row) / 8 })
	case 4:
		return put(func(row, col int) float32 { return either(col <= row+at, number, 0) })
	case 5:
		return put(func(row, col int) float32 { return either(col >= row+at, number, 0) })
	case 6:
		return put(func(row, col int) float32 { return either(col == row*7%b.cols, 1, 0) })
	}
	return put(func(row, col int) float32 { return float32(float32((row*37+col*11)%23)/8) - 1 })
}

func either(first bool, a, b float32) float32 {
	if first {
		return a
	}
	return b
}

// constant is a value that is known before the first step.
func (b *builder) constant() graph.Value { return b.known[b.pick(len(b.known))] }

// derive adds to what is known.
func (b *builder) derive() {
	k := b.constant()
	switch b.pick(7) {
	case 0:
		k = ops.Add(k, b.constant())
	case 1:
		k = ops.Tanh(k)
	case 2:
		k = ops.Where(ops.Less(k, b.constant()), b.constant(), ops.Scale(k, 0.5))
	case 3:
		flat := ops.ReshapeSizes(k, b.cols, b.rows)
		k = ops.Transpose(flat, 1, 0)
	case 4:
		k = ops.Softmax(k)
	case 5: // several results
		parts := ops.Split(k, 2)
		k = ops.Concat(0, parts[1], ops.Sigmoid(parts[0]))
	default:
		k = b.stated()
	}
	b.known = append(b.known, k)
}

// mix is a value that has to do with what is known.
func (b *builder) mix(i int) graph.Value {
	v, k := b.any(), b.constant()
	switch b.pick(6) {
	case 0:
		return ops.Add(v, k)
	case 1:
		return ops.Mul(ops.Tanh(v), k)
	case 2:
		return ops.Where(ops.Less(k, b.constant()), v, k)
	case 3:
		return ops.MatMul(v, ops.MatMul(ops.Transpose(ops.Tanh(k), 1, 0), ops.Tanh(v)))
	case 4:
		return ops.Add(v, ops.Dropout(k, b.seed, 0.25, fmt.Sprintf("of-known%d", i)))
	}
	flat := ops.ReshapeSizes(k, b.rows*b.cols)
	return ops.ReshapeSizes(ops.Maximum(ops.ReshapeSizes(v, b.rows*b.cols), flat), b.rows, b.cols)
}
