package bound

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
)

// facts are what the bounds know of a program. Positions count the operations that
// are executed on the device for certain.
type facts struct {
	account  *order.Account
	p        *program.Program
	m        machine.Model
	seq      []*graph.Node // by position
	floating []*graph.Node // executed on the host or on the device
	before   []int64       // by position: nanoseconds of all operations before it
	needs    []int64       // by position: bytes that the operation needs, and what is fixed
	across   []int64       // by position: bytes of values that others before and after it use
	values   []value
	units    []unit
	groups   []group
	fetches  int64 // nanoseconds of copies of the fetched values
}

// value is a computed value or an input that the device makes or reads.
type value struct {
	bytes   int64
	in, out int64   // nanoseconds of a copy
	made    int32   // position; -1 for an input
	uses    []int32 // positions at which it is made or read, rising
	fetched bool
}

// unit is a part of a variable or constant that the device reads and that may be on the
// host.
type unit struct {
	bytes, in  int64
	group      int32
	uses       []int32
	leaf       graph.NodeID
	begin, end int64 // of the part, or of all parts that share bytes
}

// group is the variables that one update writes. They are on the device throughout
// together, or else their gradients, or they, are copied to the host.
type group struct {
	bytes int64
	out   int64 // nanoseconds of these copies, at least
}

func newFacts(p *program.Program, m machine.Model) *facts {
	b := &facts{account: order.NewAccount(p), p: p, m: m, before: []int64{0}}
	index := make([]int32, p.Values()) // by value of the graph: one more than in values
	for _, id := range p.Order {
		n := p.Graph.Node(id)
		switch {
		case b.account.Runs[id]:
			b.append(n, index)
		case n.Executes():
			b.floating = append(b.floating, n)
		}
	}
	for _, v := range p.Fetches {
		root, _ := v.Resolve()
		if i := index[p.ValueIndex(root)]; i > 0 && !b.values[i-1].fetched {
			b.values[i-1].fetched = true
			b.fetches += b.values[i-1].out
		}
	}
	b.absences()
	b.variables(index)
	return b
}

// append puts an operation of the device at the next position.
func (b *facts) append(n *graph.Node, index []int32) {
	at := int32(len(b.seq))
	b.seq = append(b.seq, n)
	b.before = append(b.before, b.before[at]+int64(b.m.Time(n, space.Device)))
	b.needs = append(b.needs, b.account.Fixed+b.account.Least(n.ID))
	for _, operand := range n.In {
		if root, _ := operand.Resolve(); moves(root.Node) {
			b.touch(root, index, -1)
		}
	}
	for i := range n.Out {
		b.touch(n.Value(i), index, at)
	}
}

// moves reports whether a node's values have a time of their own on the device.
func moves(n *graph.Node) bool {
	return n.Kind == graph.KindCompute || n.Kind == graph.KindInput
}

// touch notes a use of a value at the latest position.
func (b *facts) touch(v graph.Value, index []int32, made int32) {
	i, at := b.p.ValueIndex(v), int32(len(b.seq)-1)
	if index[i] == 0 {
		bytes := v.Type().Bytes()
		b.values = append(b.values, value{bytes: bytes, made: made,
			in:  int64(b.m.Copy(space.Host, space.Device, bytes)),
			out: int64(b.m.Copy(space.Device, space.Host, bytes))})
		index[i] = int32(len(b.values))
	}
	u := &b.values[index[i]-1].uses
	*u = appendUse(*u, at)
}

// appendUse appends a position, once.
func appendUse(uses []int32, at int32) []int32 {
	if k := len(uses); k > 0 && uses[k-1] == at {
		return uses
	}
	return append(uses, at)
}

// absences adds up what could be elsewhere at every position.
func (b *facts) absences() {
	change := make([]int64, len(b.seq)+1)
	for i := range b.values {
		v := &b.values[i]
		for k := 1; k < len(v.uses); k++ {
			change[v.uses[k-1]+1] += v.bytes
			change[v.uses[k]] -= v.bytes
		}
	}
	b.across = change[:len(b.seq)]
	for i := 1; i < len(b.across); i++ {
		b.across[i] += b.across[i-1]
	}
}

// staged reports whether the values of a leaf are copied to the device for those that
// read them, unless they stay there.
func (b *facts) staged(n *graph.Node) bool {
	return (n.Kind == graph.KindVariable || n.Kind == graph.KindConstant) && b.p.Place != nil &&
		b.p.Place[n.ID] == space.Host
}

// held is a value, or a part of a leaf, that an operation has on the device.
type held struct {
	value     graph.Value
	off, size int64
}

// missing is what an operation reads that the one before it does not have.
func (b *facts) missing(before, n *graph.Node) int64 {
	have := map[held]bool{}
	for i := range before.Out {
		have[held{value: before.Value(i)}] = true
	}
	b.operands(before, have)
	return b.operands(n, have)
}

// operands adds what an operation reads, and returns how many bytes that are more.
func (b *facts) operands(n *graph.Node, have map[held]bool) int64 {
	var total int64
	for _, operand := range n.In {
		root, _ := operand.Resolve()
		h, bytes := held{value: root}, root.Type().Bytes()
		if b.staged(root.Node) {
			_, h.off, h.size = operand.Staged()
			bytes = h.size
		}
		if (moves(root.Node) || b.staged(root.Node)) && !have[h] {
			have[h] = true
			total += b.p.Graph.Align().Up(bytes)
		}
	}
	return total
}
