package nn

import (
	"fmt"
	"path"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// Pass says what a pass over a network is for.
type Pass struct {
	Name     string // the scope of its nodes; "" for none
	Training bool   // dropout acts, and norms use the batch's statistics

	// SameNoise lets random operations draw the numbers of the pass without a name,
	// such as the training one. The two may not run in one step, and
	// [graph.Graph.Rerun] must be in force while the second is built.
	SameNoise bool
}

// pass is what the contexts of one pass share.
type pass struct {
	Pass
	used  map[string]string // the model's line that a parameter was first used at
	noise graph.Names       // of noise

	common map[string]graph.Value // what several layers use, by what it is
}

// Ctx is a place in a network where layers are made: a scope, by which parameters
// are found and nodes and noise are named, in a pass. A parameter is made by the
// first pass that uses it; later passes find it by its name.
type Ctx struct {
	model  *Model
	pass   *pass
	nodes  string // scopes: "" or with a slash at the end
	noise  string
	params string
	shared bool
}

// Training is a pass without a name, in which dropout acts and norms use the
// batch's statistics. Calling it again begins another one.
func (m *Model) Training() *Ctx { return m.Pass(Pass{Training: true}) }

// Evaluation is a pass called "eval": no dropout, and running averages.
func (m *Model) Evaluation() *Ctx { return m.Pass(Pass{Name: "eval"}) }

// Pass begins a pass over the model's network.
func (m *Model) Pass(p Pass) *Ctx {
	c := &Ctx{model: m, pass: &pass{Pass: p, used: map[string]string{}, noise: graph.Names{},
		common: map[string]graph.Value{}}}
	if p.Name != "" {
		m.check(p.Name)
		c.nodes = p.Name + "/"
	}
	if !p.SameNoise {
		c.noise = c.nodes
	}
	return c
}

// check records a name that no scope can have.
func (m *Model) check(name string) { m.Graph.Scope(name)() }

// In is a part of the place: nodes, noise and parameters of what is made there have
// its name in theirs.
func (c *Ctx) In(name string) *Ctx {
	d := c.Of(name)
	d.nodes += name + "/"
	return d
}

// Of is [Ctx.In] for parameters and noise only: nodes keep their scope. It is for a
// layer of a few nodes that need no scope of their own.
func (c *Ctx) Of(name string) *Ctx {
	c.model.check(name)
	d := *c
	d.params += name + "/"
	d.noise += name + "/"
	return &d
}

// Share has the parameters of a scope, a path from the model's root such as
// "embedding" or "critic/16x16", or "" for the root itself, and may use them any
// number of times in a pass. Nodes and noise keep their names.
func (c *Ctx) Share(scope string) *Ctx {
	d := *c
	d.params, d.shared = "", true
	if scope != "" {
		c.model.check(scope)
		d.params = scope + "/"
	}
	return &d
}

// Enter gives the nodes that are made until the returned function is called the
// place's scope: `defer c.Enter()()` in a function that makes operations of its
// own. Layers do that themselves.
func (c *Ctx) Enter() (leave func()) { return c.model.Graph.Within(c.nodes) }

// Model is the model that the pass is over.
func (c *Ctx) Model() *Model { return c.model }

// Graph is the model's graph.
func (c *Ctx) Graph() *graph.Graph { return c.model.Graph }

// Training reports whether dropout acts and norms use the batch's statistics.
func (c *Ctx) Training() bool { return c.pass.Training }

// Noise is the name of a random operation of the place, for those of package ops;
// every call with one name gives another, in the same order in every pass.
func (c *Ctx) Noise(name string) string {
	return c.pass.noise.Take(c.noise + name)
}

// Seed selects random numbers: i32[2], the run's seed and the execution's number.
func (c *Ctx) Seed() graph.Value { return c.model.Seed }

// Dim is an axis of a layer: the name is left out in a model without names.
func (c *Ctx) Dim(name string, size int) graph.Dim {
	if c.model.Unnamed {
		name = ""
	}
	return graph.Dim{Name: name, Size: size}
}

// Param is a parameter of the place, f32 of so many elements along each axis: the
// one of that name if the model has it, or else a new one that starts as init says,
// nil being zeros. To use it twice in a pass, the second use has to ask for it with
// [Ctx.Share].
func (c *Ctx) Param(name string, init Init, sizes ...int) graph.Value {
	return c.ParamOf(name, init, tensor.Of(graph.F32, sizes...))
}

// ParamOf is [Ctx.Param] of axes that have names. Of two axes of one name, the
// later one loses it.
func (c *Ctx) ParamOf(name string, init Init, t graph.Type) graph.Value {
	return c.variable(name, init, t, false)
}

// Table is [Ctx.ParamOf] of a table, f32[rows width], with a row for each id or position, that
// is looked up in, or multiplied with to get logits: no linear map, which is what [Muon] is for.
func (c *Ctx) Table(name string, init Init, t graph.Type) graph.Value {
	v := c.ParamOf(name, init, t)
	if v.Valid() {
		c.model.tables[c.model.variables[c.params+name].Node.ID] = true
	}
	return v
}

// Average is a variable like those of [Ctx.Param] that no optimizer changes, such
// as a running average; write it with [Ctx.Update].
func (c *Ctx) Average(name string, init Init, sizes ...int) graph.Value {
	return c.AverageOf(name, init, tensor.Of(graph.F32, sizes...))
}

// AverageOf is [Ctx.Average] of a type, whose axes may have names.
func (c *Ctx) AverageOf(name string, init Init, t graph.Type) graph.Value {
	return c.variable(name, init, t, true)
}

// Update lets the objective that computes what an update reads execute it too. A
// nil update, the consequence of an earlier error, is ignored.
func (c *Ctx) Update(n *graph.Node) {
	if n != nil {
		c.model.averages = append(c.model.averages, n)
	}
}

func (c *Ctx) variable(name string, init Init, t graph.Type, average bool) (got graph.Value) {
	m, full := c.model, c.params+name
	v, found := m.variables[full]
	if !c.claim(full) {
		return graph.Value{}
	}
	t = c.distinct(t)
	if !average && t.DType == graph.F32 && m.Halves != nil && m.Halves(full, t) {
		t.DType = graph.BF16
		defer func() { got = c.wide(full, got) }()
	}
	switch {
	case !found:
		defer m.Graph.Within(c.params)()
		return m.declare(name, full, t, init.of(t), average)
	case v.Valid() && (!v.Type().Equal(t) || v.Node.State != average):
		m.Graph.Fail(fmt.Errorf("parameter %s is %s since %s, and is to be %s here", full,
			describe(v.Type(), v.Node.State), v.Node.Pos, describe(t, average)))
		return graph.Value{}
	}
	return v
}

// wide is a parameter of bfloat16 as layers compute with it, f32, once in a pass.
func (c *Ctx) wide(name string, v graph.Value) graph.Value {
	if !v.Valid() {
		return v
	}
	w, ok := c.pass.common["wide "+name]
	if !ok {
		w = ops.Cast(v, graph.F32)
		c.pass.common["wide "+name] = w
	}
	return w
}

// describe is a variable's type, with what it is.
func describe(t graph.Type, average bool) string {
	if average {
		return "the average " + t.String()
	}
	return t.String()
}

// claim notes the use of a parameter, and whether it is allowed.
func (c *Ctx) claim(full string) bool {
	first, again := c.pass.used[full]
	if again && !c.shared {
		c.model.Graph.Fail(fmt.Errorf("parameter %s is used already, at %s: give the layer a "+
			"name of its own with In, or ask for the same parameters with Share", full, first))
		return false
	}
	if !again {
		c.pass.used[full] = c.model.Graph.Position()
	}
	return true
}

// declare makes a variable in the current scope of the graph.
func (m *Model) declare(name, full string, t graph.Type, init graph.Init,
	average bool) graph.Value {
	if m.variables == nil {
		m.variables = map[string]graph.Value{}
	}
	if average {
		v := m.Graph.State(name, t, init)
		m.variables[full] = v
		return v
	}
	v := m.Graph.Variable(name, t, init)
	m.variables[full] = v
	if v.Valid() {
		m.parameters = append(m.parameters, v)
	}
	return v
}

// distinct is t without names that it has twice, and without any in a model that
// has none.
func (c *Ctx) distinct(t graph.Type) graph.Type {
	out, seen := tensor.Of(t.DType, t.Sizes()...), map[string]bool{}
	for i, d := range t.Shape {
		if !c.model.Unnamed && !seen[d.Name] {
			out.Shape[i].Name = d.Name
		}
		seen[d.Name] = true
	}
	return out
}

// Declare makes the parameters of a network without its nodes: net is called with
// inputs like the given ones in a training pass over a graph that is thrown away.
// It is for models whose parameters are to come before all else, in the order in
// which the network first uses them. A mistake in the network is left for the pass
// that is kept to report.
func (m *Model) Declare(net func(c *Ctx, in ...graph.Value), in ...graph.Value) {
	scratch := NewModel()
	scratch.Unnamed, scratch.Adapters, scratch.Packing = m.Unnamed, m.Adapters, m.Packing
	scratch.Halves = m.Halves
	var like []graph.Value
	for _, v := range in {
		if !v.Valid() {
			return // the graph's error says why
		}
		like = append(like, scratch.Graph.Input(v.Node.Name, v.Type()))
	}
	net(scratch.Training(), like...)
	if scratch.Err() != nil {
		return
	}
	for _, n := range scratch.Graph.Variables() {
		m.Graph.On(n, func() {
			if _, found := m.variables[n.Name]; !found {
				m.declare(path.Base(n.Name), n.Name, n.Out[0], n.Init, n.State)
			}
		})
	}
}
