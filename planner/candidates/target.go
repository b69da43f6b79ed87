package candidates

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/machine"
)

// Target is what one kind of step computes. A variable may have updates in several
// targets of a graph, but in one target no more than one.
//
// A fetch is any value. Leaves, inputs, constants and variables, and views of them are
// no matter of plans: whoever runs the target has them. A variable is what the step's
// operations read: its value from before the updates.
type Target struct {
	Name    string
	Fetches []graph.Value
	Updates []graph.NodeID
}

// CheckTargets reports a graph that is none or has an error, targets of one name,
// a fetch or an update that is no such thing of the graph, and updates that cannot be
// of one step.
func CheckTargets(g *graph.Graph, targets ...Target) error {
	if g == nil {
		return errors.New("the graph is nil")
	}
	if len(targets) == 0 {
		return errors.New("nothing to compile: no targets")
	}
	if err := g.Verify(); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, t := range targets {
		if names[t.Name] {
			return fmt.Errorf("two targets are called %q", t.Name)
		}
		names[t.Name] = true
		if err := t.check(g); err != nil {
			return fmt.Errorf("target %q: %w", t.Name, err)
		}
	}
	return nil
}

// Roots are the nodes that a target asks for.
func (t Target) Roots() []graph.NodeID {
	roots := slices.Clone(t.Updates)
	for _, v := range t.Fetches {
		roots = append(roots, v.Node.ID)
	}
	return roots
}

// check reports a fetch or an update of a target that is no such thing.
func (t Target) check(g *graph.Graph) error {
	if len(t.Fetches)+len(t.Updates) == 0 {
		return errors.New("nothing to compute: no fetches and no updates")
	}
	for i, v := range t.Fetches {
		if err := checkFetch(g, v); err != nil {
			return fmt.Errorf("fetch %d %w", i, err)
		}
	}
	for i, id := range t.Updates {
		if id < 0 || int(id) >= g.Len() {
			return fmt.Errorf("update %d is node %d, of which the graph has none", i, id)
		}
		if n := g.Node(id); n.Kind != graph.KindUpdate {
			return fmt.Errorf("update %d, %s, is of kind %s: it updates nothing", i, n.Name, n.Kind)
		}
	}
	if err := t.checkExchanges(g); err != nil {
		return err
	}
	return g.VerifyUpdates(t.Updates)
}

// checkExchanges reports two values of a step that are sent by one name. A variable that
// workers share may be on its way in any step.
func (t Target) checkExchanges(g *graph.Graph) error {
	sent := map[string]*graph.Node{}
	for id := range g.Len() {
		if n := g.Node(graph.NodeID(id)); n.Shared != nil {
			sent[n.Name] = n
		}
	}
	for id, live := range g.Ancestors(t.Roots()) {
		n := g.Node(graph.NodeID(id))
		x, gives := n.Gives()
		if !live || !gives {
			continue
		}
		if other := sent[x.Name]; other != nil {
			return &graph.Error{Node: n.Name, Op: n.OpName(), Pos: n.Pos, In: n.InTypes(),
				Err: fmt.Errorf("%q is sent by %s (%s), too: give each a name of its own",
					x.Name, other.Name, other.Pos)}
		}
		sent[x.Name] = n
	}
	return nil
}

// checkFetch reports what is wrong with a fetch, as the end of a sentence.
func checkFetch(g *graph.Graph, v graph.Value) error {
	switch {
	case !v.Valid():
		return errors.New("is no value")
	case v.Graph() != g:
		return fmt.Errorf("is %s of another graph", v)
	case v.Index < 0 || v.Index >= len(v.Node.Out):
		return fmt.Errorf("is result %d of %s, which has %d", v.Index, v.Node.Name,
			len(v.Node.Out))
	}
	if _, sent := v.Node.Sends(); sent {
		return fmt.Errorf("is %s, which is in flight: await it first", v)
	}
	return nil
}

// Computed is the target with those fetches that a plan is for: not of leaves, nor of
// views of leaves.
func (t Target) Computed() Target {
	t.Fetches = slices.DeleteFunc(slices.Clone(t.Fetches), func(v graph.Value) bool {
		root, _ := v.Resolve()
		return root.Node.Leaf()
	})
	return t
}

// Prices are a machine's for a graph, which it knows by the model's name, if it does.
// What a training step executes is what the first target with updates needs, or the
// first target if none has any.
func Prices(m machine.Machine, model string, g *graph.Graph, targets ...Target) machine.Model {
	t := targets[max(0, slices.IndexFunc(targets, func(t Target) bool {
		return len(t.Updates) > 0
	}))]
	var nodes []*graph.Node
	for id, live := range g.Ancestors(t.Roots()) {
		if live {
			nodes = append(nodes, g.Node(graph.NodeID(id)))
		}
	}
	return m.For(model, nodes)
}
