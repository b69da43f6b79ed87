package outlook

import (
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
)

// Outlook is what every schedule of a decided program needs and takes at least, however
// far its copies run ahead: known in a fraction of the time that one schedule takes, so
// that dozens of partitionings can be looked at.
type Outlook struct {
	Bytes int64         // of the device
	Time  time.Duration // of a step
}

// Of is the outlook of a program for one compute stream, whose variables readers
// share within so many partitions, and whose copies to the device are issued at most so
// many partitions early. It goes through the order once, as a timeline does, but:
//
//   - a copy to the device waits for nothing but its partition's turn and those that are
//     needed before it. In a schedule others may come between; and of what is needed up to
//     some operation the last cannot be there sooner, whatever their order, since what is
//     needed earlier may start earlier;
//   - nothing waits for an address;
//   - sends and awaits take no time;
//   - a result that may be made in place is, and what is staged is gone at once.
func Of(p *lower.Prices, decided *program.Program, share, reach int) Outlook {
	f := &forecaster{Prices: p, Program: decided, share: int32(share),
		stays: make([]stayed, decided.Values()), leaves: make([]staging, decided.Values()),
		load: make([]int64, len(decided.Order)+1), ends: make([]time.Duration, decided.Parts())}
	for _, v := range decided.Fetches {
		root, _ := v.Resolve()
		f.stays[decided.ValueIndex(root)].wanted = true
	}
	f.wants()
	for pos, id := range decided.Order {
		if n := decided.Graph.Node(id); n.Executes() {
			f.execute(n, int32(pos), int32(reach))
		}
	}
	for _, s := range f.stays {
		f.hold(&s)
	}
	return Outlook{f.peak(), max(slices.Max(append(f.ends, 0)), f.work.Least(p.Model))}
}

// forecaster is the state of a forecast.
type forecaster struct {
	*lower.Prices
	*program.Program
	share             int32
	stays             []stayed
	leaves            []staging
	parts             map[piece]int32 // of leaves that are not read whole: as staging.last
	load              []int64         // by position: how many more bytes than before
	ends              []time.Duration
	in, out, dev, hst time.Duration // since when the engines are idle
	work              machine.Work
	past              int32 // partitions whose ends are known to be those of all before
}

// stayed is what is known of a value that operations compute or that is fed.
type stayed struct {
	bytes       int64
	from, until int32 // positions of the present stay; it has none if bytes is 0
	gaps        int32 // absences that are over
	wanted      bool  // the host needs a copy
	there       time.Duration
}

// staging is where a whole variable or constant was read last: its position plus one.
type staging struct{ last int32 }

// wants finds which values have a copy on the host.
func (f *forecaster) wants() {
	for v := range f.Away {
		if len(f.Away[v]) > 0 {
			f.stays[v].wanted = true
		}
	}
	for _, id := range f.Order {
		if n := f.Graph.Node(id); n.Executes() && f.Place[id] == space.Host {
			for _, v := range n.In {
				root, _ := v.Resolve()
				f.stays[f.ValueIndex(root)].wanted = true
			}
		}
	}
}

// execute notes an operation, with what it waits for and what waits for it.
func (f *forecaster) execute(n *graph.Node, pos, reach int32) {
	own := f.Part[n.ID]
	if f.Place[n.ID] == space.Host {
		f.onHost(n, own)
		return
	}
	start := f.before(own)
	for _, v := range n.In {
		start = max(start, f.operand(v, pos, f.before(own-reach)))
	}
	start = max(start, f.in)
	f.dev = max(f.dev, start) + f.took(space.Compute, f.Node(space.Device, n.ID))
	for i, t := range n.Out {
		s := &f.stays[f.ValueIndex(n.Value(i))]
		s.bytes, s.from, s.until = f.Graph.Align().Up(t.Bytes()), pos, pos
		if s.wanted {
			f.out = max(f.out, f.dev) + f.copied(space.CopyOut, t.Bytes())
			s.there = f.out
		}
	}
	f.beside(n, pos)
	f.ends[own] = max(f.ends[own], f.dev, f.in, f.out)
}

// beside counts the workspace of an operation, and not a result that may take over bytes.
func (f *forecaster) beside(n *graph.Node, pos int32) {
	bytes := f.Graph.Align().Up(n.Cost().Scratch)
	if o, ok := n.Op.(graph.InPlacer); ok && len(o.InPlace(n.InTypes(), n.Out)) > 0 {
		bytes -= f.Graph.Align().Up(n.Out[0].Bytes())
	}
	f.load[pos] += bytes
	f.load[pos+1] -= bytes
}

// onHost notes an operation of the host.
func (f *forecaster) onHost(n *graph.Node, own int32) {
	var start time.Duration
	for _, v := range n.In {
		root, _ := v.Resolve()
		start = max(start, f.stays[f.ValueIndex(root)].there)
	}
	if !n.Exchanges() {
		start = max(start, f.hst, f.before(own)) +
			f.took(space.HostCompute, f.Node(space.Host, n.ID))
		f.hst = start
	}
	for i := range n.Out {
		f.stays[f.ValueIndex(n.Value(i))].there = start
	}
	f.ends[own] = max(f.ends[own], start)
}

// before is when the partitions are done that must be before one runs.
func (f *forecaster) before(own int32) time.Duration {
	own -= inFlight
	if own < 0 {
		return 0
	}
	for ; f.past < own; f.past++ {
		f.ends[f.past+1] = max(f.ends[f.past+1], f.ends[f.past])
	}
	return f.ends[own]
}

// inFlight is how many partitions are in flight at most in a schedule.
const inFlight = 2

// operand notes an operand of an operation on the device, and is when it can be there by
// its copy to the host. A copy to the device is not issued before a time.
func (f *forecaster) operand(v graph.Value, pos int32, issued time.Duration) time.Duration {
	root, _ := v.Resolve()
	i := f.ValueIndex(root)
	if k := root.Node.Kind; k == graph.KindVariable || k == graph.KindConstant {
		if f.Place[root.Node.ID] == space.Host {
			_, off, size := v.Staged()
			f.stage(piece{root, off, size}, pos, issued)
		}
		return 0
	}
	s := &f.stays[i]
	gaps := []program.Gap(nil)
	if f.Away != nil {
		gaps = f.Away[i]
	}
	back := int(s.gaps) < len(gaps) && gaps[s.gaps].Before == pos
	if !back && s.bytes > 0 {
		s.until = pos
		return 0
	}
	if back {
		s.gaps++
	} else if !root.Node.Leaf() && f.Place[root.Node.ID] == space.Device {
		return 0 // it has no bytes
	}
	f.hold(s)
	s.bytes, s.from, s.until = f.Graph.Align().Up(root.Type().Bytes()), pos, pos
	took := f.copied(space.CopyIn, root.Type().Bytes())
	f.in = max(f.in, issued) + took
	if s.there == 0 {
		return 0
	}
	return s.there + took
}

// stage notes that a part of a leaf is read, which is copied for it unless a reader that it
// shares with has it.
func (f *forecaster) stage(read piece, pos int32, issued time.Duration) {
	last := &f.leaves[f.ValueIndex(read.leaf)].last
	before := *last
	if whole := read.size == read.leaf.Type().Bytes(); whole {
		*last = pos + 1
	} else {
		if f.parts == nil {
			f.parts = map[piece]int32{}
		}
		before = f.parts[read]
		f.parts[read] = pos + 1
	}
	if before == pos+1 {
		return
	}
	f.load[pos] += f.Graph.Align().Up(read.size)
	f.load[pos+1] -= f.Graph.Align().Up(read.size)
	if before == 0 || f.Part[f.Order[pos]]-f.Part[f.Order[before-1]] > f.share {
		f.in = max(f.in, issued) + f.copied(space.CopyIn, read.size)
	}
}

// took notes that an engine works for so long.
func (f *forecaster) took(e space.Engine, time time.Duration) time.Duration {
	f.work.Add(e, time)
	return time
}

// copied is how long a copy takes.
func (f *forecaster) copied(by space.Engine, bytes int64) time.Duration {
	return f.took(by, f.Copy(by.Reads(), by.Writes(), bytes))
}

// hold counts the bytes of a stay that is over, if it was one: where nothing is computed,
// there is no position for it.
func (f *forecaster) hold(s *stayed) {
	if s.bytes == 0 {
		return
	}
	f.load[s.from] += s.bytes
	f.load[s.until+1] -= s.bytes
}

// peak is the most bytes at once, beside the variables and constants on the device, less
// what the highest of them may be rounded up by.
func (f *forecaster) peak() int64 {
	var now, most int64
	for _, n := range f.Graph.Nodes() {
		if n.Kind == graph.KindVariable || n.Kind == graph.KindConstant {
			if f.Place[n.ID] == space.Device {
				now += f.Graph.Align().Up(n.Out[0].Bytes())
			}
		}
	}
	for _, change := range f.load {
		now += change
		most = max(most, now)
	}
	return f.Graph.Align().Less(most)
}

// piece is a part of a leaf, in bytes.
type piece struct {
	leaf      graph.Value
	off, size int64
}
