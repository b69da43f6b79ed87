package search

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// groupLeaves enters the variables and constants of the graph and the inputs of
// the program, and puts those variables into one group that one operation writes,
// or writes and reads. That holds for updates of other programs too, so that the
// programs of a graph agree on the groups wherever they can. A variable that several
// operations write, each in a program of its own, joins the groups of all.
func (x *extraction) groupLeaves() {
	g, p := x.program.Graph, x.program
	x.leafOf, x.valueOf = make([]int32, g.Len()), make([]int32, p.Values())
	for i := range x.leafOf {
		x.leafOf[i] = -1
	}
	for i := range x.valueOf {
		x.valueOf[i] = -1
	}
	for _, n := range g.Nodes() {
		switch {
		case n.Kind == graph.KindVariable || n.Kind == graph.KindConstant:
			x.leaf(n)
		case n.Kind == graph.KindInput && p.Live[n.ID]:
			v := x.value(value{of: n.Value(0), raw: n.Out[0].Bytes(), producer: -1, leaf: -1})
			x.valueOf[p.ValueIndex(n.Value(0))] = v
			x.inputs = append(x.inputs, v)
			x.feeds += x.values[v].bytes
		}
	}
	x.makeGroups(x.union())
}

func (x *extraction) leaf(n *graph.Node) {
	bytes := n.Out[0].Bytes()
	x.leafOf[n.ID] = int32(len(x.leaves))
	x.leaves = append(x.leaves, leaf{node: n, bytes: x.rounded(bytes), whole: -1,
		in:  x.copyTime(space.Host, space.Device, bytes),
		out: x.copyTime(space.Device, space.Host, bytes)})
}

// union finds which leaves belong together: by leaf, another of the same group,
// or itself if it is the one that stands for all.
func (x *extraction) union() []int32 {
	parent := make([]int32, len(x.leaves))
	for i := range parent {
		parent[i] = int32(i)
	}
	for _, n := range x.program.Graph.Updates() {
		if n.Mutates == 0 {
			continue
		}
		first := x.leafOf[n.In[0].Node.ID]
		for k, v := range n.In {
			root, _ := v.Resolve()
			if k >= n.Mutates && !x.written(root.Node) {
				continue
			}
			a, b := find(parent, first), find(parent, x.leafOf[root.Node.ID])
			parent[max(a, b)] = min(a, b)
		}
	}
	return parent
}

// written reports whether a node is a variable that something writes.
func (x *extraction) written(n *graph.Node) bool {
	return n.Kind == graph.KindVariable && len(x.program.Graph.Writers(n.ID)) > 0
}

// find is the one that stands for a leaf.
func find(parent []int32, i int32) int32 {
	for parent[i] != i {
		parent[i] = parent[parent[i]]
		i = parent[i]
	}
	return i
}

func (x *extraction) makeGroups(parent []int32) {
	of := make([]int32, len(x.leaves))
	for i := range x.leaves {
		l := &x.leaves[i]
		r := find(parent, int32(i))
		if r == int32(i) {
			of[i] = int32(len(x.groups))
			x.groups = append(x.groups, group{dead: true})
		}
		l.group = of[r]
		g := &x.groups[l.group]
		g.leaves = append(g.leaves, int32(i))
		g.bytes += l.bytes
		if !l.node.State {
			g.weights += l.bytes
			g.in += l.in
		}
	}
}

// placeOps finds what runs where a group's updates run: the updates, and the
// operations of the update phase that only they depend on, so that a gradient
// moves once. What reads another group's variables stays on the device.
func (x *extraction) placeOps() {
	x.runs = make([]int32, x.program.Graph.Len())
	const unread, device = -2, -1
	for i := range x.runs {
		x.runs[i] = unread // until a reader is seen, the group of all readers
	}
	for _, f := range x.program.Fetches {
		root, _ := f.Resolve()
		x.runs[root.Node.ID] = device
	}
	network := x.keepHosted()
	order := x.program.Order
	for i := len(order) - 1; i >= 0; i-- {
		n := x.program.Graph.Node(order[i])
		if !n.Executes() {
			continue
		}
		x.runs[n.ID] = max(x.home(n), device)
		if hosted := x.hosted != nil && x.hosted[n.ID]; hosted && n.Mutates == 0 {
			x.runs[n.ID] = network
		} else if !hosted && x.runs[n.ID] == network {
			x.runs[n.ID] = device // as its variables may be
		}
		for _, v := range n.In {
			root, _ := v.Resolve()
			switch r := &x.runs[root.Node.ID]; {
			case *r == unread:
				*r = x.runs[n.ID]
			case *r != x.runs[n.ID]:
				*r = device
			}
		}
	}
	x.readers()
}

// keepHosted marks the groups that every plan has on the host, and returns one without leaves,
// by which the others run that are there; -1 if there are none.
func (x *extraction) keepHosted() int32 {
	if x.hosted == nil {
		return -1
	}
	for i := range x.leaves {
		if l := &x.leaves[i]; x.hosted[l.node.ID] {
			x.groups[l.group].hosted = true
		}
	}
	x.groups = append(x.groups, group{hosted: true, dead: true})
	return int32(len(x.groups) - 1)
}

// home is the group by which a node runs, whose readers' group is known.
func (x *extraction) home(n *graph.Node) int32 {
	if n.Mutates > 0 {
		return x.leaves[x.leafOf[n.In[0].Node.ID]].group
	}
	own := x.runs[n.ID]
	if n.Phase != graph.Update || own < 0 {
		return -1
	}
	for _, v := range n.In {
		root, _ := v.Resolve()
		if x.written(root.Node) && x.leaves[x.leafOf[root.Node.ID]].group != own {
			return -1
		}
	}
	return own
}

// readers notes which groups' operations read other groups.
func (x *extraction) readers() {
	for _, id := range x.program.Order {
		n := x.program.Graph.Node(id)
		own := x.runs[id]
		if !n.Executes() || own < 0 {
			continue
		}
		for _, v := range n.In {
			root, _ := v.Resolve()
			if l := x.leafOf[root.Node.ID]; l >= 0 && x.leaves[l].group != own {
				g := &x.groups[x.leaves[l].group]
				g.readers = appendNew(g.readers, own)
			}
		}
	}
}
