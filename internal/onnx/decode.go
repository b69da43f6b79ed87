package onnx

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Decode reads a model. Its tensors are parts of the file's bytes, which have to stay.
func Decode(file []byte) (*Model, error) {
	m := new(Model)
	d := decoder{}
	var producer, version string
	err := fields(file, func(f field) error {
		switch f.num {
		case 1:
			return f.integer(&m.IRVersion)
		case 2:
			return f.text(&producer)
		case 3:
			return f.text(&version)
		case 7:
			return one(f, &m.Graph, d.graph)
		case 8:
			return opset(f, &m.Opsets)
		case 20:
			return errors.New("it has training information, which is not read: leave it out")
		case 25:
			return more(f, &m.Functions, d.function)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.Producer = producer; version != "" {
		m.Producer += " " + version
	}
	if m.Graph == nil || len(m.Opsets) == 0 {
		return nil, errors.New("it is no model of ONNX: it has no graph, or no versions of " +
			"operators")
	}
	return m, nil
}

// decoder knows how deep it is.
type decoder struct{ depth int }

func opset(f field, to *[]Opset) error {
	var s Opset
	err := fields(f.bytes, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&s.Domain)
		case 2:
			return f.integer(&s.Version)
		}
		return nil
	})
	*to = append(*to, s)
	return err
}

func (d decoder) graph(message []byte) (*Graph, error) {
	g := new(Graph)
	if d.depth++; d.depth > MaxDepth {
		return nil, fmt.Errorf("graphs within graphs are more than %d deep", MaxDepth)
	}
	return g, fields(message, func(f field) error {
		switch f.num {
		case 1:
			return more(f, &g.Nodes, d.node)
		case 2:
			return f.text(&g.Name)
		case 5:
			return more(f, &g.Initializers, decodeTensor)
		case 11:
			return more(f, &g.Inputs, decodeValue)
		case 12:
			return more(f, &g.Outputs, decodeValue)
		case 13:
			return more(f, &g.Values, decodeValue)
		case 15:
			return errors.New("it has sparse weights, which are not read: write them dense")
		}
		return nil
	})
}

func (d decoder) node(message []byte) (*Node, error) {
	n := new(Node)
	return n, fields(message, func(f field) error {
		switch f.num {
		case 1:
			return f.texts(&n.In)
		case 2:
			return f.texts(&n.Out)
		case 3:
			return f.text(&n.Name)
		case 4:
			return f.text(&n.Op)
		case 5:
			return more(f, &n.Attributes, d.attribute)
		case 7:
			return f.text(&n.Domain)
		case 8:
			return f.text(&n.Overload)
		}
		return nil
	})
}

// attribute also says of which kind one is where the file does not, as the first files did not.
func (d decoder) attribute(message []byte) (*Attribute, error) {
	a := new(Attribute)
	kind, found := int64(0), AttributeKind(0)
	err := fields(message, func(f field) error {
		if k, ok := kindOf[f.num]; ok {
			found = k
		}
		switch f.num {
		case 1:
			return f.text(&a.Name)
		case 20:
			return f.integer(&kind)
		case 21:
			return f.text(&a.Ref)
		}
		return d.content(f, a)
	})
	if a.Kind = AttributeKind(kind); kind == 0 {
		a.Kind = found
	}
	return a, of("attribute", a.Name, err)
}

// kindOf has the kinds that fields of an attribute have.
var kindOf = map[protowire.Number]AttributeKind{2: FloatKind, 3: IntKind, 4: StringKind,
	5: TensorKind, 6: GraphKind, 7: FloatsKind, 8: IntsKind, 9: StringsKind, 10: TensorsKind,
	11: GraphsKind}

// content is what an attribute has.
func (d decoder) content(f field, a *Attribute) error {
	switch f.num {
	case 2:
		if f.kind != protowire.Fixed32Type {
			return errWireType
		}
		a.Float = math.Float32frombits(uint32(f.value))
	case 3:
		return f.integer(&a.Int)
	case 4: // any bytes
		a.String = string(f.bytes)
	case 5:
		return one(f, &a.Tensor, decodeTensor)
	case 6:
		return one(f, &a.Graph, d.graph)
	case 7:
		return f.floats(&a.Floats)
	case 8:
		return f.integers(&a.Ints)
	case 9:
		a.Strings = append(a.Strings, string(f.bytes))
	}
	return nil
}

func decodeValue(message []byte) (*Value, error) {
	v := new(Value)
	err := fields(message, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&v.Name)
		case 2:
			return fields(f.bytes, v.typed)
		}
		return nil
	})
	return v, of("value", v.Name, err)
}

// typed is the type of a value.
func (v *Value) typed(f field) error {
	kinds := map[protowire.Number]string{1: "tensor", 4: "sequence", 5: "map", 7: "opaque",
		8: "sparse tensor", 9: "optional"}
	kind, ok := kinds[f.num]
	if !ok {
		return nil
	}
	if v.Kind = kind; kind != "tensor" {
		return nil
	}
	return fields(f.bytes, func(f field) error {
		switch f.num {
		case 1:
			return f.integer((*int64)(&v.Type))
		case 2:
			v.Ranked = true
			return fields(f.bytes, v.axis)
		}
		return nil
	})
}

// axis is one more axis of a value.
func (v *Value) axis(f field) error {
	if f.num != 1 {
		return nil
	}
	d := Dim{Size: -1}
	err := fields(f.bytes, func(f field) error {
		switch f.num {
		case 1:
			return f.integer(&d.Size)
		case 2:
			return f.text(&d.Symbol)
		}
		return nil
	})
	v.Shape = append(v.Shape, d)
	return err
}

func (d decoder) function(message []byte) (*Function, error) {
	u := new(Function)
	err := fields(message, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&u.Name)
		case 4:
			return f.texts(&u.In)
		case 5:
			return f.texts(&u.Out)
		case 6:
			return f.texts(&u.Attributes)
		case 7:
			return more(f, &u.Nodes, d.node)
		case 9:
			return opset(f, &u.Opsets)
		case 10:
			return f.text(&u.Domain)
		case 11:
			return more(f, &u.Defaults, d.attribute)
		case 13:
			return f.text(&u.Overload)
		}
		return nil
	})
	return u, of("function", u.Name, err)
}
