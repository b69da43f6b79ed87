package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Packing has matrices that are not trained held in few bits wherever they are: on the device, on
// the host, on disks. It is the format of a parameter, one of those of [ops.PackedType], or "" of
// one that is f32, by its name and by how many rows of how many elements it has. Linear layers with
// Rows ask for it, and who calls [Packed].
type Packing func(parameter string, rows, elements int) string

// Packed is the parameter of the place that is a matrix of so many rows of elements, if the model's
// [Packing] has a format for it, and that; else the format is "", and there is none. Compute with
// it by [ops.MatMulPacked] and [ops.EmbeddingPacked].
func Packed(c *Ctx, name string, rows, elements int) (w graph.Value, format string) {
	m := c.model
	if m.Packing == nil {
		return w, ""
	}
	if format = m.Packing(c.params+name, rows, elements); format == "" {
		return w, ""
	}
	t, err := ops.PackedType(rows, elements, format)
	if err != nil {
		m.Graph.Fail(err)
		return w, format
	}
	w = c.ParamOf(name, Zeros, t)
	if w.Valid() {
		if m.packed == nil {
			m.packed = map[*graph.Node]bool{}
		}
		m.packed[w.Node] = true
	}
	return w, format
}
