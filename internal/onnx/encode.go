package onnx

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gomem/gomem/graph/tensor"
)

// Of makes a tensor of elements, which it keeps.
func Of(name string, v tensor.View) *Tensor {
	t := typed(name, v.Type)
	t.raw, t.hasRaw = v.Data, true
	return t
}

// Outside makes a tensor whose elements are in another file.
func Outside(name string, kind tensor.Type, e External) *Tensor {
	t := typed(name, kind)
	t.External = &e
	return t
}

func typed(name string, kind tensor.Type) *Tensor {
	t := &Tensor{Name: name, Type: DataTypeOf(kind.DType)}
	for _, s := range kind.Sizes() {
		t.Dims = append(t.Dims, int64(s))
	}
	return t
}

// DataTypeOf is what a type of ours is in files.
func DataTypeOf(d tensor.DType) DataType {
	for t, is := range dataTypes {
		if is.of == d {
			return t
		}
	}
	return 0
}

// writer appends fields to a message.
type writer []byte

func (w *writer) text(num protowire.Number, s string) {
	if s != "" {
		w.message(num, []byte(s))
	}
}

func (w *writer) message(num protowire.Number, b []byte) {
	*w = protowire.AppendBytes(protowire.AppendTag(*w, num, protowire.BytesType), b)
}

func (w *writer) integer(num protowire.Number, v int64) {
	*w = protowire.AppendVarint(protowire.AppendTag(*w, num, protowire.VarintType), uint64(v))
}

func (w *writer) float(num protowire.Number, v float32) {
	*w = protowire.AppendFixed32(protowire.AppendTag(*w, num, protowire.Fixed32Type),
		math.Float32bits(v))
}

// Encode is the file of a model. It has no functions, and its attributes are numbers, strings,
// tensors and graphs.
func (m *Model) Encode() []byte {
	var w writer
	w.integer(1, m.IRVersion)
	w.text(2, m.Producer)
	w.message(7, m.Graph.encode())
	for _, s := range m.Opsets {
		var o writer
		o.text(1, s.Domain)
		o.integer(2, s.Version)
		w.message(8, o)
	}
	return w
}

func (g *Graph) encode() []byte {
	var w writer
	for _, n := range g.Nodes {
		w.message(1, n.encode())
	}
	w.text(2, g.Name)
	for _, t := range g.Initializers {
		w.message(5, t.encode())
	}
	for _, v := range g.Inputs {
		w.message(11, v.encode())
	}
	for _, v := range g.Outputs {
		w.message(12, v.encode())
	}
	return w
}

func (n *Node) encode() []byte {
	var w writer
	for _, s := range n.In { // one that is left out is empty, and there
		w.message(1, []byte(s))
	}
	for _, s := range n.Out {
		w.message(2, []byte(s))
	}
	w.text(3, n.Name)
	w.text(4, n.Op)
	for _, a := range n.Attributes {
		w.message(5, a.encode())
	}
	w.text(7, n.Domain)
	return w
}

func (a *Attribute) encode() []byte {
	var w writer
	w.text(1, a.Name)
	switch a.Kind {
	case FloatKind:
		w.float(2, a.Float)
	case IntKind:
		w.integer(3, a.Int)
	case StringKind:
		w.message(4, []byte(a.String))
	case TensorKind:
		w.message(5, a.Tensor.encode())
	case GraphKind:
		w.message(6, a.Graph.encode())
	case IntsKind:
		for _, v := range a.Ints {
			w.integer(8, v)
		}
	}
	w.integer(20, int64(a.Kind))
	return w
}

func (v *Value) encode() []byte {
	var shape, kind, value, w writer
	for _, d := range v.Shape {
		var dim writer
		if d.Symbol != "" {
			dim.text(2, d.Symbol)
		} else {
			dim.integer(1, d.Size)
		}
		shape.message(1, dim)
	}
	kind.integer(1, int64(v.Type))
	kind.message(2, shape)
	value.message(1, kind)
	w.text(1, v.Name)
	w.message(2, value)
	return w
}

func (t *Tensor) encode() []byte {
	var w writer
	for _, d := range t.Dims {
		w.integer(1, d)
	}
	w.integer(2, int64(t.Type))
	w.text(8, t.Name)
	if e := t.External; e != nil {
		for _, entry := range [][2]string{{"location", e.Location},
			{"offset", strconv.FormatInt(e.Offset, 10)},
			{"length", strconv.FormatInt(e.Length, 10)}} {
			var m writer
			m.text(1, entry[0])
			m.text(2, entry[1])
			w.message(13, m)
		}
		w.integer(14, 1)
		return w
	}
	w.message(9, t.raw)
	return w
}
