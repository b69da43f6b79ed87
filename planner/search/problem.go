package search

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
)

// Problem is a program on a machine as the search sees it: flat tables of the
// operations in their order, of what they read and write, and of the variables.
// Times are in nanoseconds, bytes are rounded up as the arena rounds them.
type Problem struct {
	program *program.Program
	model   machine.Model // whose prices they are
	ops     []op
	values  []value
	leaves  []leaf
	groups  []group
	begins  []int64 // by op: when it starts if nothing stalls and updates take no time
	usersAt []int32 // by value: where the operations that touch it begin in users
	users   []int32 // those of all values, in order of execution
	brief   []brief // by op
	bytes   []int64 // by value: its bytes
	leafOf  []int32 // by node: its leaf, or -1
	valueOf []int32 // by value of the graph: that value here, or -1
	inputs  []int32 // the values that are fed, by creation
	fetches []int32 // the fetched values, in order
	feeds   int64   // host bytes of the inputs

	hostMost int64 // that the host needs at most, whatever is decided

	exchanges bool // the graph has values that workers exchange
	peers     bool // some of them between devices
}

// op is an execution that the program has at least once.
type op struct {
	node       *graph.Node
	time, host int64   // on the device, and on the host
	args       []int32 // by operand: the value
	in, out    []int32 // values read, without repetition, and made
	over       []int32 // values whose bytes result 0 may take over, best first
	writes     []int32 // of an update: the leaves' whole values
	scratch    int64
	group      int32 // it runs where this group's updates run; -1: on the device
	side       side  // of an exchange, if it is one
	takes      int32 // of an exchange: the value whose bytes its result takes over, or -1
	// limit is the last operation before which it may be executed again: the
	// first that writes a variable it reads. -1: it may not.
	limit int32
}

// brief is what every evaluation asks of every operation, close together in memory.
type brief struct {
	time, scratch int64
	group         int32
	replaces      bool // there are values whose bytes a result may take over
}

// side is the part that an operation has in an exchange.
type side uint8

const (
	neither side = iota
	sends
	awaits
	peers // all of it, on the device
)

// value is bytes that may be on the device for a while: a result, an input, or
// the part of a variable or constant that some operation reads.
type value struct {
	of       graph.Value // its root
	off, raw int64       // the part, and its bytes before rounding
	bytes    int64
	in, out  int64 // how long a copy to the device and one from it take
	producer int32 // the operation that makes it, or -1
	leaf     int32 // of a variable or constant, or -1
	fetched  bool
	brought  bool // its producer is an await whose readers may be on the device
}

// bound reports whether the value comes from the host: it is no result of the device.
func (v *value) bound() bool { return v.producer < 0 || v.brought }

// leaf is a variable or constant of the graph, whether or not the program reads
// it: it has its bytes on the device or on the host at all times.
type leaf struct {
	node  *graph.Node
	bytes int64
	in    int64 // how long it takes to copy all of it to the device
	out   int64
	group int32
	whole int32 // the value that is all of it, or -1
}

// group is variables that are in one place, since one operation updates them.
type group struct {
	leaves  []int32
	bytes   int64
	weights int64   // bytes of those that are no optimizer's state
	in      int64   // how long it takes to copy the weights to the device
	updates []int32 // operations that write them
	ops     []int32 // all operations that run where the updates run
	// readers are groups whose operations read it, but do not write it: where one
	// of them runs on the host, so must these leaves be.
	readers []int32
	dead    bool // the program does not read it
	// hosted: every plan has its updates on the host, so it is there too.
	hosted bool
	// light: written back, it moves hardly more bytes than updated on the host, since
	// its states are small and its weights are read whole by others too.
	light bool
}

// New extracts the problem from a program that has an order. Only Live and Order
// are read.
func New(p *program.Program, m machine.Model) *Problem {
	x := extraction{Problem: &Problem{program: p, model: m}, parts: map[part]int32{},
		hosted: p.Hosted()}
	if x.exchanges = p.Graph.Exchanges(); x.exchanges {
		x.overwrites = p.Overwrites()
	}
	x.groupLeaves()
	x.placeOps()
	for _, id := range p.Order {
		if n := p.Graph.Node(id); n.Executes() {
			x.add(n)
		}
	}
	x.finish()
	return x.Problem
}

// part is bytes of a leaf.
type part struct {
	leaf      graph.Value
	off, size int64
}

// extraction is what is needed only until a problem is extracted.
type extraction struct {
	*Problem
	parts map[part]int32
	runs  []int32 // by node: the group by which it runs, or -1

	hosted     []bool // by node: it is on the host in every plan; nil if there is none such
	overwrites []bool // by node: an exchange in the bytes of its operand
}

// rounded is what so many bytes take.
func (x *extraction) rounded(bytes int64) int64 { return x.program.Graph.Align().Up(bytes) }

// copyTime is how long a copy takes; never nothing, so that what depends on one
// starts later than it.
func (x *extraction) copyTime(from, to space.ID, bytes int64) int64 {
	return max(1, int64(x.model.Copy(from, to, bytes)))
}

// value enters a value.
func (x *extraction) value(v value) int32 {
	v.bytes = x.rounded(v.raw)
	v.in = x.copyTime(space.Host, space.Device, v.raw)
	v.out = x.copyTime(space.Device, space.Host, v.raw)
	x.values = append(x.values, v)
	return int32(len(x.values) - 1)
}

// add enters an operation.
func (x *extraction) add(n *graph.Node) {
	i := int32(len(x.ops))
	o := op{node: n, group: x.runs[n.ID], scratch: x.rounded(n.Cost().Scratch),
		time: max(1, int64(x.model.Time(n, space.Device)))}
	if o.group >= 0 {
		o.host = max(1, int64(x.model.Time(n, space.Host)))
	}
	for _, v := range n.In {
		a := x.operand(v)
		o.args = append(o.args, a)
		o.in = appendNew(o.in, a)
	}
	x.exchange(n, &o)
	o.writes = o.args[:n.Mutates:n.Mutates]
	if n.Mutates > 0 {
		g := &x.groups[o.group]
		g.updates = append(g.updates, i)
	}
	for k, t := range n.Out {
		v := n.Value(k)
		made := x.value(value{of: v, raw: t.Bytes(), producer: i, leaf: -1,
			brought: n.Awaits()})
		x.valueOf[x.program.ValueIndex(v)] = made
		o.out = append(o.out, made)
	}
	o.over = x.replaceable(n, o.args)
	x.ops = append(x.ops, o)
}

// exchange notes what an exchange is, which takes the time of a copy.
func (x *extraction) exchange(n *graph.Node, o *op) {
	o.takes = -1
	if !n.Exchanges() {
		return
	}
	bytes := n.Out[0].Bytes()
	if _, all := n.Peers(); all {
		o.side, x.peers = peers, true
		o.time = x.copyTime(space.Network, space.Device, bytes)
		return
	}
	if o.side = awaits; !n.Awaits() {
		o.side = sends
		o.host = x.copyTime(space.Host, space.Network, bytes)
	} else {
		o.host = x.copyTime(space.Network, space.Host, bytes)
	}
	if x.overwrites[n.ID] {
		o.takes = o.args[0]
	}
}

// appendNew appends what is not there yet. Operations with very many operands
// may have some twice, which is harmless.
func appendNew(list []int32, x int32) []int32 {
	const enough = 64
	for _, y := range list[max(0, len(list)-enough):] {
		if y == x {
			return list
		}
	}
	return append(list, x)
}

// operand is the value in which an operation finds an operand.
func (x *extraction) operand(v graph.Value) int32 {
	root, off, size := v.Staged()
	switch root.Node.Kind {
	case graph.KindVariable, graph.KindConstant:
		key := part{root, off, size}
		i, ok := x.parts[key]
		if !ok {
			i = x.leafPart(key)
			x.parts[key] = i
		}
		return i
	default:
		return x.valueOf[x.program.ValueIndex(root)]
	}
}

// leafPart enters a part of a variable or constant.
func (x *extraction) leafPart(key part) int32 {
	l := x.leafOf[key.leaf.Node.ID]
	i := x.value(value{of: key.leaf, off: key.off, raw: key.size, producer: -1, leaf: l})
	if key.size == key.leaf.Type().Bytes() {
		x.leaves[l].whole = i
	}
	x.groups[x.leaves[l].group].dead = false
	return i
}

// replaceable are the values whose bytes the first result may take over, if
// nobody needs them on the device after the operation.
func (x *extraction) replaceable(n *graph.Node, args []int32) []int32 {
	o, ok := n.Op.(graph.InPlacer)
	if !ok || len(n.Out) == 0 {
		return nil
	}
	var over []int32
	for _, k := range o.InPlace(n.InTypes(), n.Out) {
		if v := &x.values[args[k]]; v.leaf < 0 && v.raw == n.Out[0].Bytes() && !twice(args, k) {
			over = append(over, args[k])
		}
	}
	return over
}

// twice reports whether another operand shares bytes with operand k.
func twice(args []int32, k int) bool {
	for j, a := range args {
		if j != k && a == args[k] {
			return true
		}
	}
	return false
}

// finish fills in what depends on all operations.
func (x *extraction) finish() {
	x.begins = make([]int64, len(x.ops)+1)
	var now int64
	for i := range x.ops {
		x.begins[i] = now
		if x.ops[i].group < 0 {
			now += x.ops[i].time
		}
	}
	x.begins[len(x.ops)] = now
	for _, f := range x.program.Fetches {
		root, _ := f.Resolve()
		v := x.valueOf[x.program.ValueIndex(root)]
		x.values[v].fetched = true
		x.fetches = append(x.fetches, v)
	}
	x.limits()
	x.weigh()
	x.index()
	x.hostMost = x.mostOnHost()
}

// mostOnHost is what the host needs if all is there at the same time.
func (x *extraction) mostOnHost() int64 {
	sum, most := x.feeds, int64(0)
	for l := range x.leaves {
		sum += x.leaves[l].bytes
	}
	for i := range x.ops {
		for _, v := range x.ops[i].out {
			sum += x.values[v].bytes
		}
		most = max(most, x.ops[i].scratch)
	}
	return sum + most
}

// index fills in the tables that evaluations go through.
func (x *extraction) index() {
	x.bytes = make([]int64, len(x.values))
	for v := range x.values {
		x.bytes[v] = x.values[v].bytes
	}
	x.usersAt = make([]int32, len(x.values)+1)
	x.touches(func(_, v int32) { x.usersAt[v+1]++ })
	for v := range x.values {
		x.usersAt[v+1] += x.usersAt[v]
	}
	x.users = make([]int32, x.usersAt[len(x.values)])
	next := slices.Clone(x.usersAt)
	x.touches(func(i, v int32) {
		x.users[next[v]] = i
		next[v]++
	})
	x.brief = make([]brief, len(x.ops))
	for i := range x.ops {
		o := &x.ops[i]
		x.brief[i] = brief{o.time, o.scratch, o.group, len(o.over) > 0}
		if o.group >= 0 {
			g := &x.groups[o.group]
			g.ops = append(g.ops, int32(i))
		}
	}
}

// touches calls a function for every operation and each of the values that it reads or makes.
func (x *extraction) touches(use func(i, v int32)) {
	for i := range x.ops {
		for _, v := range x.ops[i].in {
			use(int32(i), v)
		}
		for _, v := range x.ops[i].out {
			use(int32(i), v)
		}
	}
}

// weigh finds the groups that are light.
func (x *extraction) weigh() {
	read := make([]bool, len(x.leaves))
	for i := range x.ops {
		for _, v := range x.ops[i].in {
			if l := x.values[v].leaf; l >= 0 && len(x.ops[i].writes) == 0 &&
				x.leaves[l].whole == v {
				read[l] = true
			}
		}
	}
	for i := range x.groups {
		g := &x.groups[i]
		g.light = len(g.updates) > 0 && (g.bytes-g.weights)*5 < g.weights
		for _, l := range g.leaves {
			g.light = g.light && (read[l] || x.leaves[l].node.State)
		}
	}
}

// limits works out how late each operation may be executed again. Updates,
// what runs where they run, and exchanges are executed once.
func (x *extraction) limits() {
	writer := make([]int32, len(x.leaves))
	for l := range writer {
		writer[l] = int32(len(x.ops))
	}
	for i := range x.ops {
		for _, v := range x.ops[i].writes {
			writer[x.values[v].leaf] = int32(i)
		}
	}
	for i := range x.ops {
		o := &x.ops[i]
		if o.limit = int32(len(x.ops)); o.group >= 0 || o.side == peers {
			o.limit = -1
		}
		for _, v := range o.in {
			if l := x.values[v].leaf; l >= 0 {
				o.limit = min(o.limit, writer[l])
			}
		}
	}
}
