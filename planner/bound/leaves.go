package bound

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// nobody owns what belongs to no group, or to more than one.
const nobody = -1

// variables finds the parts of variables that the device reads, and the groups.
func (b *facts) variables(index []int32) {
	groups := make([]int32, b.p.Graph.Len()) // by leaf, and by update: one more
	groupOf := func(n *graph.Node) int32 {
		key := n.ID
		w := b.writer(n)
		if w != nil {
			key = w.ID
		}
		if groups[key] == 0 {
			b.groups = append(b.groups, group{bytes: n.Out[0].Bytes()})
			if groups[key] = int32(len(b.groups)); key != n.ID {
				b.groups[len(b.groups)-1] = b.written(w)
			}
		}
		return groups[key] - 1
	}
	for at, n := range b.seq {
		for _, operand := range n.In {
			root, off, size := operand.Staged()
			if b.staged(root.Node) {
				b.units = append(b.units, unit{leaf: root.Node.ID, begin: off,
					end: off + size, group: groupOf(root.Node),
					uses: []int32{int32(at)}})
			}
		}
	}
	b.join()
	b.gradients(index, groups)
}

// writer is the update of a variable in the program, or nil.
func (b *facts) writer(variable *graph.Node) *graph.Node {
	for _, w := range b.p.Graph.Writers(variable.ID) {
		if b.p.Live[w.ID] {
			return w
		}
	}
	return nil
}

// written is the group of what an update writes.
func (b *facts) written(update *graph.Node) group {
	var g group
	for _, v := range update.In[:update.Mutates] {
		g.bytes += v.Type().Bytes()
		g.out += int64(b.m.Copy(space.Device, space.Host, v.Type().Bytes()))
	}
	return g
}

// join makes one unit of all uses of a part. Parts of a leaf that share bytes are taken
// for the smallest of them.
func (b *facts) join() {
	slices.SortFunc(b.units, func(x, y unit) int {
		return cmp.Or(cmp.Compare(x.leaf, y.leaf), cmp.Compare(x.begin, y.begin),
			cmp.Compare(x.end, y.end), cmp.Compare(x.uses[0], y.uses[0]))
	})
	var out []unit
	for _, u := range b.units {
		u.bytes = u.end - u.begin
		if k := len(out) - 1; k >= 0 && out[k].leaf == u.leaf && u.begin < out[k].end {
			out[k].bytes = min(out[k].bytes, u.bytes)
			out[k].uses = append(out[k].uses, u.uses[0])
			out[k].end = max(out[k].end, u.end)
			continue
		}
		out = append(out, u)
	}
	for i := range out {
		slices.Sort(out[i].uses)
		out[i].uses = slices.Compact(out[i].uses)
		out[i].in = int64(b.m.Copy(space.Host, space.Device, out[i].bytes))
	}
	b.units = out
}

// gradients lowers what groups copy to the host to their gradients, where these are
// fewer bytes: the values that only the host's part of one group reads there.
func (b *facts) gradients(index, groups []int32) {
	owner := make([]int32, b.p.Graph.Len()) // by node that floats: one more than its group
	reader := make([]int32, len(b.values))  // by value: the same of who reads it
	copies := make([]int64, len(b.groups))
	for _, n := range slices.Backward(b.floating) {
		if n.Kind == graph.KindUpdate {
			owner[n.ID] = groups[n.ID]
		}
		mine := owner[n.ID]
		if mine == 0 {
			mine = nobody
		}
		for _, operand := range n.In {
			root, _ := operand.Resolve()
			claim(&owner[root.Node.ID], mine)
			if i := index[b.p.ValueIndex(root)]; i > 0 && b.values[i-1].made >= 0 {
				claim(&reader[i-1], mine)
			}
		}
	}
	for i, g := range reader {
		if g > 0 && !b.values[i].fetched {
			copies[g-1] += b.values[i].out
		}
	}
	for i := range b.groups {
		b.groups[i].out = min(b.groups[i].out, copies[i])
	}
}

// claim makes a group the owner, or nobody if there is another.
func claim(owner *int32, group int32) {
	if *owner == 0 {
		*owner = group
	} else if *owner != group {
		*owner = nobody
	}
}
