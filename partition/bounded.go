package partition

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/program"
)

// Bounded is [Pass], but closes a partition before an operation, too, with which the
// operations of it would read and make more bytes than the neediest operation of all does
// alone. It is for graphs of which large operations are divided into slices: all slices of
// one would else be in a partition, and need at once what the whole needs.
func Bounded(s Strategy, size int) program.Pass {
	whole := Pass(s, size)
	return program.Pass{Name: whole.Name, Run: func(p *program.Program) error {
		if err := whole.Run(p); err != nil || size == 0 {
			return err
		}
		bound(p, size)
		return nil
	}}
}

// tally adds up the bytes that operations touch, those of a value once in each count.
type tally struct {
	*program.Program
	seen []int32 // by value: the latest count that it is in
	now  int32   // the present count
}

// touched is the bytes that a node reads and makes that are not in the present count yet, to
// which it adds them.
func (t *tally) touched(n *graph.Node) (bytes int64) {
	note := func(v graph.Value) {
		if i := t.ValueIndex(v); t.seen[i] != t.now {
			t.seen[i] = t.now
			bytes += v.Type().Bytes()
		}
	}
	for _, v := range n.In {
		root, _ := v.Resolve()
		if root.Node.Leaf() {
			root = v // parts of a leaf are staged alone
		}
		note(root)
	}
	if n.Executes() {
		for i := range n.Out {
			note(n.Value(i))
		}
		bytes += n.Cost().Scratch
	}
	return bytes
}

// bound cuts the order of a program anew.
func bound(p *program.Program, size int) {
	t := tally{Program: p, seen: make([]int32, p.Values())}
	var most int64
	for _, id := range p.Order {
		t.now++
		most = max(most, t.touched(p.Graph.Node(id)))
	}
	part, count, bytes := int32(0), 0, int64(0)
	t.now++
	for i, id := range p.Order {
		n := p.Graph.Node(id)
		more := t.touched(n)
		if i > 0 && (count >= size || bytes+more > most) {
			part, count, bytes = part+1, 0, 0
			t.now++
			more = t.touched(n)
		}
		p.Part[id], count, bytes = part, count+n.Operations(), bytes+more
	}
}
