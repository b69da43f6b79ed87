package daemon

import (
	"slices"

	"github.com/gomem/gomem/distrib"
)

// Replicas are the nodes that keep the rows of an owner, in the order in which each hands on to the
// next what it has got: those before it in the ring of all nodes. There are fewer than are asked
// for where there are no more nodes.
func Replicas(nodes []distrib.NodeID, owner distrib.NodeID, count int) (list []distrib.NodeID) {
	at := slices.Index(nodes, owner)
	for i := 1; at >= 0 && i < len(nodes) && len(list) < count; i++ {
		list = append(list, nodes[(at-i+len(nodes))%len(nodes)])
	}
	return list
}

// Keeps are the nodes of whose rows one keeps a replica, as of [Replicas].
func Keeps(nodes []distrib.NodeID, node distrib.NodeID, count int) (owners []distrib.NodeID) {
	for _, n := range nodes {
		if slices.Contains(Replicas(nodes, n, count), node) {
			owners = append(owners, n)
		}
	}
	return owners
}

// ring is the nodes in their order, each with the count nodes before it that keep its rows, and who
// of them is gone.
type ring struct {
	nodes []distrib.NodeID
	count int
	down  map[distrib.NodeID]bool
}

// replicas are those of an owner that are there, and replicates reports whether a node is one.
func (r *ring) replicas(owner distrib.NodeID) []distrib.NodeID {
	if r.count == 0 {
		return nil
	}
	all := Replicas(r.nodes, owner, r.count)
	return slices.DeleteFunc(all, func(n distrib.NodeID) bool { return r.down[n] })
}

func (r *ring) replicates(owner, node distrib.NodeID) bool {
	return slices.Contains(Replicas(r.nodes, owner, r.count), node)
}

// goesTo reports whether a node takes updates of an owner's rows.
func (r *ring) goesTo(owner, node distrib.NodeID) bool {
	return owner == node || r.replicates(owner, node)
}
