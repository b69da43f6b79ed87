package mesh

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/join"
)

// composed is a graph in which some updates, and losses, are composed of operations that divide,
// and where the nodes of the first graph went.
type composed struct {
	graph   *graph.Graph
	scopes  graph.Names   // of the first graph
	nodes   []*graph.Node // by ID in the first graph; nil of what was composed
	updates map[graph.NodeID][]graph.NodeID
	losses  map[graph.Value]graph.Value // results of the first graph's losses that were composed
}

// apart is a graph whose losses are composed of products; the graph itself if it has none.
func apart(g *graph.Graph) (*composed, error) {
	c := &composed{graph: g, nodes: g.Nodes(), updates: map[graph.NodeID][]graph.NodeID{},
		losses: map[graph.Value]graph.Value{}}
	taken, err := join.Apart(g)
	if err != nil {
		return nil, err
	}
	if taken != nil {
		c.graph, c.nodes = taken.Graph, make([]*graph.Node, g.Len())
	}
	for _, n := range g.Nodes() {
		if taken != nil {
			c.nodes[n.ID] = taken.Node(n.ID)
		}
		if m := c.nodes[n.ID]; m != nil {
			c.updates[n.ID] = []graph.NodeID{m.ID}
			continue
		}
		for i := range n.Out {
			c.losses[n.Value(i)] = taken.Value(n.Value(i))
		}
	}
	return c, nil
}

// after has the first graph be the one that another was composed of, which this one was made of.
func (c *composed) after(first *composed) {
	nodes, updates := c.nodes, c.updates
	c.losses = map[graph.Value]graph.Value{}
	for v, x := range first.losses {
		c.losses[v] = c.value(x)
	}
	c.nodes = make([]*graph.Node, len(first.nodes))
	c.updates = map[graph.NodeID][]graph.NodeID{}
	for id, m := range first.nodes {
		if m != nil {
			c.nodes[id], c.updates[graph.NodeID(id)] = nodes[m.ID], updates[m.ID]
		}
	}
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
	if x, ok := c.losses[v]; ok {
		return x
	}
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
