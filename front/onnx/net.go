package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/nn"
)

// Options say how a file becomes a network.
type Options struct {
	// Sizes are of axes of inputs that have none in the file, by their symbols; "x.0" is axis 0
	// of input "x", which has precedence.
	Sizes map[string]int
	// Batch is the size of axis 0 of inputs whose size is neither in the file nor in Sizes;
	// 0: those stay open.
	Batch int
	// Given are inputs that are no inputs of the network: they have these elements always. What
	// shapes depend on has to be given, such as the sizes that an image is scaled to.
	Given map[string]tensor.View
	// Bound is the most iterations of a loop whose end depends on data: memory is planned for so
	// many, and one that goes on is an error of the step. 0 refuses such loops.
	Bound int
	// Frozen says which parameters are not trained; nil: all are. Those of 16 bits in the file
	// have 16 bits in memory; what is trained has 32, since steps are smaller than 16 bits tell.
	Frozen func(name string) bool
	// Untrained says that no pass is for training: all are frozen, and still count as parameters.
	// Norms of averages are part of what is before them then: see the package.
	Untrained bool
}

// Net is a network of a file. It holds the file's bytes.
type Net struct {
	file      *onnx.File
	frozen    func(name string) bool
	untrained bool
	given     map[string]tensor.View
	bound     int

	weights   map[string]*onnx.Tensor // by name, of the main graph
	functions map[functionName]*onnx.Function
	inputs    []input
	averages  map[string]bool // weights that are a norm's mean or variance
	// readers are the nodes that read a name, nil for a graph whose output it is
	readers map[string][]*onnx.Node

	loads   map[string]*onnx.Tensor // parameters that a pass has used
	derived map[string]*derived     // and those that are computed of weights
}

// input is an input that is to be fed.
type input struct {
	name string
	kind graph.Type
}

type functionName struct{ domain, name, overload string }

// Open reads a file, and refuses what no network can be made of: operators that are not known,
// inputs whose sizes are not, and sizes that are of no axis.
func Open(path string, o Options) (*Net, error) {
	file, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	frozen := func(name string) bool { return o.Untrained || o.Frozen != nil && o.Frozen(name) }
	n := &Net{file: file, frozen: frozen, untrained: o.Untrained, given: o.Given, bound: o.Bound,
		weights: map[string]*onnx.Tensor{}, functions: map[functionName]*onnx.Function{},
		loads: map[string]*onnx.Tensor{}, derived: map[string]*derived{},
		averages: map[string]bool{}, readers: map[string][]*onnx.Node{}}
	for _, t := range file.Graph.Initializers {
		n.weights[t.Name] = t
	}
	for _, f := range file.Functions {
		n.functions[functionName{f.Domain, f.Name, f.Overload}] = f
	}
	if err = n.known(); err == nil {
		err = n.bind(n.batched(o))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

func axisName(v *onnx.Value, axis int) string { return fmt.Sprintf("%s.%d", v.Name, axis) }

// batched are the sizes, with those of axis 0 that are the batch's.
func (n *Net) batched(o Options) map[string]int {
	if o.Batch == 0 {
		return o.Sizes
	}
	sizes := maps.Clone(o.Sizes)
	if sizes == nil {
		sizes = map[string]int{}
	}
	for _, v := range n.file.Graph.Inputs {
		_, given := n.given[v.Name]
		if given || n.weights[v.Name] != nil || len(v.Shape) == 0 || v.Shape[0].Size >= 0 {
			continue
		}
		name := cmp.Or(v.Shape[0].Symbol, axisName(v, 0))
		if _, sized := sizes[axisName(v, 0)]; !sized && sizes[name] == 0 {
			sizes[name] = o.Batch
		}
	}
	return sizes
}

// bind gives the inputs their sizes.
func (n *Net) bind(sizes map[string]int) error {
	used := map[string]bool{}
	var open []string
	size := func(v *onnx.Value, axis int) int {
		d := v.Shape[axis]
		if d.Size >= 0 {
			return int(d.Size)
		}
		for _, name := range []string{axisName(v, axis), d.Symbol} {
			if s, ok := sizes[name]; ok && name != "" {
				used[name] = true
				return s
			}
		}
		name := d.Symbol
		if name == "" {
			name = axisName(v, axis)
		}
		if !slices.Contains(open, name) {
			open = append(open, name)
		}
		return 1
	}
	for _, v := range n.file.Graph.Inputs {
		if given, ok := n.given[v.Name]; ok {
			if d, err := v.Type.DType(); err != nil || v.Kind == "tensor" && d != given.Type.DType {
				return fmt.Errorf("input %q is %s, and %s is given", v.Name, v.Type, given.Type)
			}
			continue
		}
		if n.weights[v.Name] != nil {
			continue // the default of an input, which old files list
		}
		if v.Kind != "tensor" || !v.Ranked {
			return fmt.Errorf("input %q is a %s, of no known rank: only tensors are fed", v.Name,
				v.Kind)
		}
		d, err := v.Type.DType()
		if err != nil {
			return fmt.Errorf("input %q: %w", v.Name, err)
		}
		kind := graph.Type{DType: d}
		for i := range v.Shape {
			kind.Shape = append(kind.Shape, graph.Dim{Size: size(v, i)})
		}
		n.nameAxes(kind.Shape, v.Shape)
		if err := kind.Check(); err != nil {
			return fmt.Errorf("input %q: %w", v.Name, err)
		}
		n.inputs = append(n.inputs, input{v.Name, kind})
	}
	for _, name := range slices.Sorted(maps.Keys(n.given)) {
		if !slices.ContainsFunc(n.file.Graph.Inputs, func(v *onnx.Value) bool {
			return v.Name == name
		}) {
			return fmt.Errorf("there is no input %q to be given: %s", name, n.describe())
		}
	}
	if len(open) > 0 {
		return &UnboundError{open}
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if !used[name] {
			return fmt.Errorf("no axis of its inputs is called %q, or it has a size: %s", name,
				n.describe())
		}
	}
	return nil
}

// nameAxes gives axes their symbols, by which layouts divide them, but for those that are no word,
// are there twice, or have been given other sizes by an axis of their own: then the name is lost.
func (n *Net) nameAxes(shape []graph.Dim, axes []onnx.Dim) {
	for i, d := range axes {
		twice := slices.IndexFunc(axes, func(e onnx.Dim) bool { return e.Symbol == d.Symbol }) < i
		if word.MatchString(d.Symbol) && !twice && n.unnameUnlike(d.Symbol, shape[i].Size) {
			shape[i].Name = d.Symbol
		}
	}
}

// unnameUnlike has no axis of inputs so far keep a name with another size, and says whether all of
// that name had this one.
func (n *Net) unnameUnlike(name string, size int) bool {
	alike := true
	for _, in := range n.inputs {
		for i, d := range in.kind.Shape {
			if d.Name == name && d.Size != size {
				in.kind.Shape[i].Name, alike = "", false
			}
		}
	}
	return alike
}

var word = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// UnboundError says which symbolic axes have no size.
type UnboundError struct{ Symbols []string }

// Error is one line.
func (e *UnboundError) Error() string {
	return "these axes of its inputs have no size, and need one: " + strings.Join(e.Symbols, ", ")
}

// describe lists the inputs with their symbols.
func (n *Net) describe() string {
	var list []string
	for _, v := range n.file.Graph.Inputs {
		if n.weights[v.Name] != nil {
			continue
		}
		var axes []string
		for _, d := range v.Shape {
			switch {
			case d.Symbol != "":
				axes = append(axes, d.Symbol)
			case d.Size < 0:
				axes = append(axes, "?")
			default:
				axes = append(axes, fmt.Sprint(d.Size))
			}
		}
		list = append(list, fmt.Sprintf("%s[%s]", v.Name, strings.Join(axes, " ")))
	}
	return "its inputs are " + strings.Join(list, ", ")
}

// Outputs are the names of what [Net.Apply] returns.
func (n *Net) Outputs() (names []string) {
	for _, v := range n.file.Graph.Outputs {
		names = append(names, v.Name)
	}
	return names
}

// Inputs adds the network's inputs to a model, in the file's order, by the file's names and types.
// One that has the name of an input that the model has, such as "seed" or "step", is NAME.input.
func (n *Net) Inputs(m *nn.Model) []graph.Value {
	taken := map[string]bool{}
	for _, in := range m.Graph.Inputs() {
		taken[in.Name] = true
	}
	var list []graph.Value
	for _, in := range n.inputs {
		name := in.name
		if taken[name] {
			name += ".input"
		}
		list = append(list, m.InputOf(name, in.kind))
	}
	return list
}

// Apply appends the network to a model's graph in a pass, of the values that [Net.Inputs] has, or
// others of their types, and returns the file's outputs. What is wrong is recorded in the graph,
// and the outputs are no values then.
func (n *Net) Apply(c *nn.Ctx, in ...graph.Value) []graph.Value {
	out, err := n.apply(c, in)
	if err != nil {
		c.Graph().Fail(fmt.Errorf("%s: %w", n.file.Path, err))
		return make([]graph.Value, len(n.file.Graph.Outputs))
	}
	return out
}

func (n *Net) apply(c *nn.Ctx, in []graph.Value) ([]graph.Value, error) {
	if len(in) != len(n.inputs) {
		return nil, fmt.Errorf("%d values for %d inputs", len(in), len(n.inputs))
	}
	defer c.Enter()()
	b := &builder{net: n, ctx: c, g: c.Graph(), opsets: n.file.Opsets, params: map[string]operand{},
		normed: map[*onnx.Node]bool{}}
	names := scope{names: map[string]operand{}}
	for i, v := range in {
		if !v.Valid() {
			return nil, errors.New("an input is no value")
		}
		names.names[n.inputs[i].name] = operand{value: v}
	}
	for name, v := range n.given {
		names.names[name] = operand{known: &v}
	}
	outs, err := b.graph(n.file.Graph, &names)
	if err != nil {
		return nil, err
	}
	list := make([]graph.Value, len(outs))
	for i, o := range outs {
		if o.list != nil {
			return nil, fmt.Errorf("output %q is a sequence, which no step fetches",
				n.file.Graph.Outputs[i].Name)
		}
		list[i] = b.onGraph(o)
	}
	return list, c.Graph().Err()
}

// Load gives the parameters that passes have used their values in the file, each by set, such as
// a session's. One at a time is in memory beside.
func (n *Net) Load(variables []graph.Value, set func(v graph.Value, t tensor.View) error) error {
	for _, v := range variables {
		o := operand{weight: n.loads[v.Node.Name], derived: n.derived[v.Node.Name]}
		if o.absent() {
			continue
		}
		data, err := o.elements(n.file)
		if err != nil {
			return err
		}
		if err := set(v, data.To(v.Type().DType)); err != nil {
			return fmt.Errorf("%s: %w", n.file.Path, err)
		}
	}
	return nil
}
