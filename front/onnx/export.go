package onnx

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/internal/regular"
)

// Output is a value of a graph that an exported file computes, and what it calls it.
type Output struct {
	Name  string
	Value graph.Value
}

// exportedVersion is of the operators that files are exported with, and exportedIR of their format.
const exportedVersion, exportedIR = 20, 10

// mostInline are the bytes of weights that are within the file itself; more are in one beside it,
// which has its name with ".data" behind.
const mostInline = 64 << 20

// Export writes a graph as a file of ONNX: what the outputs are computed of, with inputs by their
// names, variables as initialisers, each of which get gives its value. What depends on constants
// alone is written as a constant. Operations that ONNX has no form of are named all at once, and
// then nothing is written. The file is complete, or not there.
func Export(path string, outputs []Output, get func(v graph.Value) (tensor.View, error)) error {
	if len(outputs) == 0 || !outputs[0].Value.Valid() {
		return errors.New("a file needs an output")
	}
	e := &exporter{g: outputs[0].Value.Graph(), names: map[graph.Value]string{},
		taken: graph.Names{}, unknown: map[string]string{}}
	if err := e.graph(outputs); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := e.write(path, get); err != nil {
		return fmt.Errorf("export %s: %w", path, err)
	}
	return nil
}

// exporter writes nodes for nodes.
type exporter struct {
	g       *graph.Graph
	file    onnx.Graph
	names   map[graph.Value]string
	taken   graph.Names
	weights []*graph.Node
	unknown map[string]string // operations without a form, each with a node that is one
}

// graph writes what the outputs are computed of.
func (e *exporter) graph(outputs []Output) error {
	for _, o := range outputs {
		if !o.Value.Valid() || o.Value.Graph() != e.g {
			return fmt.Errorf("output %q is no value of the graph", o.Name)
		}
		if e.taken.Has(o.Name) {
			return fmt.Errorf("two outputs are called %q", o.Name)
		}
		e.taken.Add(o.Name)
	}
	var roots []graph.NodeID
	for _, o := range outputs {
		roots = append(roots, o.Value.Node.ID)
	}
	live := e.g.Ancestors(roots)
	if err := e.constants(live); err != nil {
		return err
	}
	for _, n := range e.g.Nodes() {
		if live[n.ID] {
			e.node(n)
		}
	}
	for _, o := range outputs {
		e.file.Outputs = append(e.file.Outputs, described(o.Name, o.Value.Type()))
		e.file.Nodes = append(e.file.Nodes, &onnx.Node{Op: "Identity",
			In: []string{e.names[o.Value]}, Out: []string{o.Name}})
	}
	return e.complaint()
}

// complaint names the operations that have no form.
func (e *exporter) complaint() error {
	if len(e.unknown) == 0 {
		return nil
	}
	var list []string
	for _, op := range slices.Sorted(maps.Keys(e.unknown)) {
		list = append(list, fmt.Sprintf("%s (%s)", op, e.unknown[op]))
	}
	return fmt.Errorf("ONNX has no form of these operations: %s", strings.Join(list, ", "))
}

// described is a value with its type.
func described(name string, t graph.Type) *onnx.Value {
	v := &onnx.Value{Name: name, Kind: "tensor", Type: onnx.DataTypeOf(t.DType), Ranked: true}
	for _, s := range t.Sizes() {
		v.Shape = append(v.Shape, onnx.Dim{Size: int64(s)})
	}
	return v
}

// constants computes what depends on constants alone, and is read by what does not, and writes it.
func (e *exporter) constants(live []bool) error {
	fixed := make([]bool, e.g.Len())
	var read []graph.NodeID
	for _, n := range e.g.Nodes() {
		fixed[n.ID] = n.Kind == graph.KindConstant || !n.Leaf() && n.Kind == graph.KindCompute
		for _, v := range n.In {
			fixed[n.ID] = fixed[n.ID] && fixed[v.Node.ID]
		}
		for _, v := range n.In {
			if live[n.ID] && fixed[v.Node.ID] && !fixed[n.ID] {
				read = append(read, v.Node.ID)
			}
		}
	}
	if read == nil {
		return nil
	}
	m, err := reference.New(e.g, e.g.Ancestors(read), nil)
	if err == nil {
		err = m.Step()
	}
	if err != nil {
		return err
	}
	for _, id := range read {
		n := e.g.Node(id)
		for i := range n.Out {
			if v := n.Value(i); e.names[v] == "" {
				e.names[v] = e.constant(m.Value(v))
			}
		}
	}
	for i, f := range fixed {
		live[i] = live[i] && !f
	}
	return nil
}

// name is a new name like another.
func (e *exporter) name(like string) string {
	return e.taken.Take(like)
}

// constant writes elements.
func (e *exporter) constant(v tensor.View) string {
	name := e.name("constant")
	e.file.Nodes = append(e.file.Nodes, &onnx.Node{Name: name, Op: "Constant", Out: []string{name},
		Attributes: []*onnx.Attribute{{Name: "value", Kind: onnx.TensorKind,
			Tensor: onnx.Of(name, v)}}})
	return name
}

// numbers writes integers, as shapes and axes are.
func (e *exporter) numbers(v ...int) string {
	return e.constant(longs([]int{len(v)}, v...))
}

// number writes a number of f32.
func (e *exporter) number(v float32) string { return e.constant(tensor.FromF32([]float32{v})) }

// attribute is an attribute by the type of its value: int, []int, float32, string, a graph.
func attribute(name string, value any) *onnx.Attribute {
	a := &onnx.Attribute{Name: name}
	switch v := value.(type) {
	case int:
		a.Kind, a.Int = onnx.IntKind, int64(v)
	case float32:
		a.Kind, a.Float = onnx.FloatKind, v
	case string:
		a.Kind, a.String = onnx.StringKind, v
	case *onnx.Graph:
		a.Kind, a.Graph = onnx.GraphKind, v
	case []int:
		a.Kind = onnx.IntsKind
		for _, x := range v {
			a.Ints = append(a.Ints, int64(x))
		}
	}
	return a
}

// attributes are attributes by name.
type attributes map[string]any

func (a attributes) list() (out []*onnx.Attribute) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		out = append(out, attribute(name, a[name]))
	}
	return out
}

// made writes a node in between, and returns its only result.
func (e *exporter) made(op string, a attributes, in ...string) string {
	name := e.name(strings.ToLower(op))
	e.file.Nodes = append(e.file.Nodes, &onnx.Node{Name: name, Op: op, In: in, Out: []string{name},
		Attributes: a.list()})
	return name
}

// field is an attribute of an operation of ours.
func field(op graph.Op, name string) reflect.Value {
	return reflect.ValueOf(op).FieldByName(name)
}

// node writes a node.
func (e *exporter) node(n *graph.Node) {
	switch n.Kind {
	case graph.KindInput:
		e.names[n.Value(0)] = e.name(n.Name)
		e.file.Inputs = append(e.file.Inputs, described(e.names[n.Value(0)], n.Out[0]))
		return
	case graph.KindVariable:
		e.names[n.Value(0)] = e.name(n.Name)
		e.weights = append(e.weights, n)
		return
	}
	form, ok := forms[n.Op.Name()]
	if !ok {
		e.unknown[n.Op.Name()] = n.Name
		return
	}
	x := exported{exporter: e, Node: n}
	for _, v := range n.In {
		x.in = append(x.in, e.names[v])
	}
	for i, name := range form(x) {
		if i < len(n.Out) {
			e.names[n.Value(i)] = name
		}
	}
	for i := range n.Out {
		if e.names[n.Value(i)] == "" {
			e.names[n.Value(i)] = e.name("unused")
		}
	}
}

// exported is a node that is written, with the names of its operands.
type exported struct {
	*exporter
	*graph.Node
	in []string
}

// none says that this form of the operation cannot be written.
func (x exported) none(why string) []string {
	x.unknown[x.Op.Name()+", "+why] = x.Node.Name
	return nil
}

// write writes the file, and weights beside it where they are many.
func (e *exporter) write(path string, get func(v graph.Value) (tensor.View, error)) error {
	var total int64
	for _, n := range e.weights {
		total += n.Out[0].Bytes()
	}
	e.file.Name = "gomem"
	data := ""
	var beside *os.File
	if total > mostInline {
		data = path + ".data"
		f, err := os.Create(data + ".tmp")
		if err != nil {
			return err
		}
		beside = f
		defer os.Remove(data + ".tmp")
		defer f.Close()
	}
	var at int64
	for _, n := range e.weights {
		v, err := get(n.Value(0))
		if err != nil {
			return err
		}
		name := e.names[n.Value(0)]
		if beside == nil {
			e.file.Initializers = append(e.file.Initializers, onnx.Of(name, v))
			continue
		}
		if _, err := beside.Write(v.Data); err != nil {
			return err
		}
		e.file.Initializers = append(e.file.Initializers, onnx.Outside(name, v.Type,
			onnx.External{Location: filepath.Base(data), Offset: at, Length: int64(len(v.Data))}))
		at += int64(len(v.Data))
	}
	m := onnx.Model{IRVersion: exportedIR, Producer: "gomem", Graph: &e.file,
		Opsets: []onnx.Opset{{Version: exportedVersion}}}
	if beside != nil {
		if err := errors.Join(beside.Sync(), beside.Close()); err != nil {
			return err
		}
		if err := os.Rename(data+".tmp", data); err != nil {
			return err
		}
	}
	return replaced(path, m.Encode())
}

// exportedNode is a node of the file.
func exportedNode(op string, a attributes, in, out []string) *onnx.Node {
	return &onnx.Node{Name: out[0], Op: op, In: in, Out: out, Attributes: a.list()}
}

// dataType is a type of ours in a file.
func dataType(d graph.DType) onnx.DataType { return onnx.DataTypeOf(d) }

// replaced writes a file as a whole.
func replaced(path string, data []byte) error {
	return regular.Replace(regular.OS{}, filepath.Dir(path), filepath.Base(path),
		func(f regular.File) error {
			_, err := f.Write(data)
			return err
		})
}
