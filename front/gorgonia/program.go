package gorgonia

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	G "gorgonia.org/gorgonia"
)

// Options say what a step does. The zero value evaluates the loss.
type Options struct {
	// Solver updates the learnables; nil leaves them. Its settings are read by New.
	Solver G.Solver
	// Gradients has steps compute those of the learnables for [Program.Gradient], as they are
	// before a solver adds penalties and clips them.
	Gradients bool
	// Fetch are nodes that hold their values after every step, beside the loss and those that
	// G.Read reads.
	Fetch G.Nodes
	Seed  int32 // of dropout and random nodes
	// Gomem has the budgets, the policy and all else of sessions.
	Gomem gomem.Options
}

// Program runs a graph of Gorgonia's by a plan. It is for one goroutine at a time.
type Program struct {
	session *gomem.Session
	target  gomem.Target
	t       *translation
	solver  *learner // nil without one
	learn   G.Nodes
	fetch   []fetched
	diffs   map[*G.Node]G.Value
	seed    int32
	step    int
}

// fetched is where a value goes after a step.
type fetched struct {
	value graph.Value
	node  *G.Node  // of the value
	into  *G.Value // what G.Read reads it into; nil: the node holds it
	diff  bool     // it is the gradient of node
}

// New plans a step of a graph: what the loss, a scalar, depends on, with learnables of which it
// depends on all, and what G.Read reads. Learnables have their values as variables from then on;
// see [Program.Push]. The error may be an [*ErrRefused], or wrap a *gomem.ErrOutOfMemory.
func New(ctx context.Context, loss *G.Node, learnables G.Nodes, o Options) (*Program, error) {
	if err := sound(loss, learnables, o.Fetch); err != nil {
		return nil, err
	}
	if !loss.IsScalar() {
		return nil, fmt.Errorf("the loss %s has shape %v, want a scalar", loss.Name(),
			loss.Shape())
	}
	reads := readers(loss.Graph())
	roots := append(G.Nodes{loss}, o.Fetch...)
	for _, r := range reads {
		roots = append(roots, operands(r)[0])
	}
	t, err := translate(roots, learnables)
	if err != nil {
		return nil, err
	}
	p := &Program{t: t, learn: learnables, diffs: map[*G.Node]G.Value{}, seed: o.Seed}
	for _, n := range roots[:1+len(o.Fetch)] {
		p.fetch = append(p.fetch, fetched{value: t.values[n], node: n})
	}
	for i, r := range reads {
		into, err := target(r)
		if err != nil {
			return nil, err
		}
		n := roots[1+len(o.Fetch)+i]
		p.fetch = append(p.fetch, fetched{value: t.values[n], node: n, into: into})
	}
	if err := p.differentiate(loss, o); err != nil {
		return nil, err
	}
	return p, p.open(ctx, o.Gomem)
}

// sound reports nodes that are none, and learnables that can be no variables.
func sound(loss *G.Node, learnables, fetch G.Nodes) error {
	if slices.Contains(slices.Concat(G.Nodes{loss}, learnables, fetch), nil) {
		return errors.New("the loss, a learnable or a node to fetch is nil")
	}
	for i, n := range learnables {
		switch {
		case n.Op() != nil:
			return fmt.Errorf("learnable %s is computed: want a node that holds a value", n.Name())
		case slices.Contains(learnables[:i], n):
			return fmt.Errorf("learnable %s is given twice", n.Name())
		}
	}
	return nil
}

// readers are the nodes of G.Read.
func readers(g *G.ExprGraph) (out G.Nodes) {
	for _, n := range g.AllNodes() {
		if is(n, "readOp") {
			out = append(out, n)
		}
	}
	return out
}

// target is where a node of G.Read puts the value.
func target(n *G.Node) (*G.Value, error) {
	f := read(n.Op())
	return (*G.Value)(f.pointer("into")), f.err
}

// differentiate adds gradients, and updates by them, as far as they are asked for.
func (p *Program) differentiate(loss *G.Node, o Options) (err error) {
	if o.Solver == nil && !o.Gradients {
		return nil
	}
	reached := map[*G.Node]bool{}
	for _, n := range order(G.Nodes{loss}) {
		reached[n] = true
	}
	var vars []graph.Value
	for _, n := range p.learn {
		if !reached[n] {
			return fmt.Errorf("the loss %s does not depend on learnable %s", loss.Name(), n.Name())
		}
		vars = append(vars, p.t.values[n])
	}
	gradients := autodiff.Grad(p.t.values[loss], vars...)
	if err := p.t.graph.Err(); err != nil {
		return err
	}
	for i, n := range p.learn {
		if o.Gradients {
			p.fetch = append(p.fetch, fetched{value: gradients[i], node: n, diff: true})
		}
	}
	if o.Solver == nil {
		return nil
	}
	if p.solver, err = p.t.learner(o.Solver); err != nil {
		return err
	}
	return errors.Join(p.solver.learn(vars, gradients), p.t.graph.Err())
}

// open plans the step and takes its memory.
func (p *Program) open(ctx context.Context, o gomem.Options) (err error) {
	var values []graph.Value
	for _, f := range p.fetch {
		values = append(values, f.value)
	}
	p.target = gomem.Evaluation(values...)
	if len(p.t.graph.Updates()) > 0 {
		p.target = gomem.Training(p.t.graph, values...)
	}
	o.NoInitialize = true // all variables are set, or zero
	if p.session, err = gomem.Compile(ctx, p.t.graph, o, p.target); err != nil {
		return err
	}
	if err = p.Push(); err != nil {
		return errors.Join(err, p.Close())
	}
	return nil
}

// Push sets the variables to the values that the learnables' nodes have, and averages of batch
// norms to those that Gorgonia's operations have: for who has changed them.
func (p *Program) Push() error {
	for _, n := range p.learn {
		v, ok := p.t.values[n]
		if !ok {
			continue // nothing depends on it
		}
		data, err := tensorOf(n, v.Type())
		if err != nil {
			return err
		}
		if err := p.session.Set(v, data); err != nil {
			return err
		}
	}
	for _, s := range p.t.stats {
		data, err := copied(s.tensor)
		if err != nil {
			return err
		}
		if err := p.session.Set(s.value, data); err != nil {
			return err
		}
	}
	return nil
}

// Step runs the graph once, with the values that its inputs' nodes have. Afterwards nodes hold what
// is fetched, and learnables their new values. An error leaves them as they were; see
// *gomem.StepError.
func (p *Program) Step(ctx context.Context) error {
	feeds := gomem.Feeds{}
	for _, n := range p.t.inputs {
		v := p.t.values[n]
		data, err := tensorOf(n, v.Type())
		if err != nil {
			return err
		}
		feeds[v] = data
	}
	if p.t.seed.Valid() {
		feeds[p.t.seed] = gomem.Pair(p.seed, int32(p.step))
	}
	if p.solver != nil {
		if err := p.solver.feed(p.step+1, feeds); err != nil {
			return err
		}
	}
	out, err := p.session.Step(ctx, p.target.Name, feeds)
	if err != nil {
		return err
	}
	p.step++
	return errors.Join(p.hand(out), p.Pull())
}

// hand gives what a step has fetched to who is to have it.
func (p *Program) hand(out []gomem.Tensor) error {
	for i, f := range p.fetch {
		switch v := valueOf(out[i], f.node.Dtype()); {
		case f.diff:
			p.diffs[f.node] = v
		case f.into != nil:
			*f.into = v
		default:
			if err := G.UnsafeLet(f.node, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// Pull copies the variables' values to the learnables' nodes, as every step does.
func (p *Program) Pull() error {
	if p.solver != nil {
		for _, n := range p.learn {
			v, err := p.session.Get(p.t.values[n])
			if err != nil {
				return err
			}
			if err := give(n, v); err != nil {
				return err
			}
		}
	}
	for _, s := range p.t.stats {
		v, err := p.session.Get(s.value)
		if err != nil {
			return err
		}
		fill(s.tensor, v)
	}
	return nil
}

// Gradient is that of a learnable in the last step; nil unless [Options.Gradients] asks for it.
func (p *Program) Gradient(learnable *G.Node) G.Value { return p.diffs[learnable] }

// Usage lists the memories that the program takes, the device first.
func (p *Program) Usage() []gomem.Usage { return p.session.Usage() }

// Close frees the memory. The nodes keep their values.
func (p *Program) Close() error { return p.session.Close() }
