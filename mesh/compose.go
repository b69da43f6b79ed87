package mesh

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// composed is a graph in which some updates are composed of operations that divide, and
// where the nodes of the first graph went.
type composed struct {
	graph   *graph.Graph
	scopes  graph.Names   // of the first graph
	nodes   []*graph.Node // by ID in the first graph; nil of an update that was composed
	updates map[graph.NodeID][]graph.NodeID
}

// composable are the updates that keep variables whole which the layout divides, and could
// be composed of operations that do not.
func (p *Propagation) composable() map[graph.NodeID]bool {
	list := map[graph.NodeID]bool{}
	for id := range p.pins {
		if _, ok := p.graph.Node(id).Op.(graph.Composer); ok {
			list[id] = true
		}
	}
	return list
}

// compose copies a graph, with some updates composed.
func compose(g *graph.Graph, which map[graph.NodeID]bool) (*composed, error) {
	c := &composed{graph: graph.New(), nodes: make([]*graph.Node, g.Len()),
		scopes: graph.Names{}, updates: map[graph.NodeID][]graph.NodeID{}}
	for _, n := range g.Nodes() {
		for i, r := range n.Name {
			if r == '/' {
				c.scopes.Add(n.Name[:i])
			}
		}
	}
	for _, n := range g.Nodes() {
		in := make([]graph.Value, len(n.In))
		for i, v := range n.In {
			in[i] = c.value(v)
		}
		if which[n.ID] && c.update(n, in) {
			continue
		}
		m, err := c.graph.Copy(n, n.Op, in...)
		if err != nil {
			return nil, fmt.Errorf("mesh: %w", err)
		}
		c.nodes[n.ID], c.updates[n.ID] = m, []graph.NodeID{m.ID}
	}
	return c, c.graph.Err()
}

// update composes an update, and reports whether it can be. What it is composed of has a scope of
// its own: names in that of the update may be those of nodes after it.
func (c *composed) update(n *graph.Node, in []graph.Value) (ok bool) {
	scope := c.scopes.Free(n.Name) + "/"
	c.graph.On(n, func() {
		defer c.graph.Within(scope)()
		for _, m := range n.Op.(graph.Composer).Compose(in) {
			if ok = true; m != nil {
				c.updates[n.ID] = append(c.updates[n.ID], m.ID)
			}
		}
	})
	return ok
}

// value stands for a value of the first graph.
func (c *composed) value(v graph.Value) graph.Value {
	if !v.Valid() || c.nodes[v.Node.ID] == nil {
		return graph.Value{}
	}
	return c.nodes[v.Node.ID].Value(v.Index)
}

// roots are the fetches and updates that stand for some of the first graph.
func (c *composed) roots(fetches []graph.Value, updates []graph.NodeID) (of []graph.Value,
	all []graph.NodeID) {
	for _, v := range fetches {
		of = append(of, c.value(v))
	}
	for _, id := range updates {
		all = append(all, c.updates[id]...)
	}
	return of, all
}

// lower is [Lower] of the composed graph, told of the first one's nodes.
func (c *composed) lower(s Spec, rank int, fetches []graph.Value,
	updates []graph.NodeID) (*Result, error) {
	of, all := c.roots(fetches, updates)
	p, err := Propagate(c.graph, s, of, all)
	if err != nil {
		return nil, err
	}
	r, err := p.Lower(rank, of)
	if err != nil {
		return nil, err
	}
	r.composed = c
	nodes, made, fetched := r.nodes, r.updates, r.fetched
	r.nodes = make([]*graph.Node, len(c.nodes))
	r.updates, r.fetched = map[graph.NodeID][]*graph.Node{}, map[graph.Value]graph.Value{}
	for id, m := range c.nodes {
		if m != nil {
			r.nodes[id] = nodes[m.ID]
		}
	}
	for _, id := range updates {
		for _, m := range c.updates[id] {
			r.updates[id] = append(r.updates[id], made[m]...)
		}
	}
	for i, v := range fetches {
		r.fetched[v] = fetched[of[i]]
	}
	return r, nil
}
