package partition

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/pass"
)

// Bounded is [Pass], but closes a partition before an operation, too, with which the
// operations of it would read and make more bytes than the neediest operation of all does
// alone. It is for graphs of which large operations are divided into slices: all slices of
// one would else be in a partition, and need at once what the whole needs.
func Bounded(s Strategy, size int) pass.Pass {
	whole := Pass(s, size)
	return pass.Pass{Name: whole.Name, Run: func(p *pass.Program) error {
		if err := whole.Run(p); err != nil || size == 0 {
			return err
		}
		bound(p, size)
		return nil
	}}
}

// touched is the bytes that a node reads and makes that are in none of the values seen, to
// which it adds them.
func touched(n *graph.Node, seen map[graph.Value]bool) (bytes int64) {
	note := func(key graph.Value, size int64) {
		if !seen[key] {
			seen[key] = true
			bytes += size
		}
	}
	for _, v := range n.In {
		if root, _ := v.Resolve(); root.Node.Leaf() {
			note(v, v.Type().Bytes())
		} else {
			note(root, root.Type().Bytes())
		}
	}
	if n.Executes() {
		for i, t := range n.Out {
			note(n.Value(i), t.Bytes())
		}
		bytes += n.Cost().Scratch
	}
	return bytes
}

// bound cuts the order of a program anew.
func bound(p *pass.Program, size int) {
	var most int64
	for _, id := range p.Order {
		most = max(most, touched(p.Graph.Node(id), map[graph.Value]bool{}))
	}
	part, count, bytes := int32(0), 0, int64(0)
	seen := map[graph.Value]bool{}
	for i, id := range p.Order {
		n := p.Graph.Node(id)
		more := touched(n, seen)
		if i > 0 && (count >= size || bytes+more > most) {
			part, count, bytes = part+1, 0, 0
			clear(seen)
			more = touched(n, seen)
		}
		p.Part[id], count, bytes = part, count+n.Operations(), bytes+more
	}
}
