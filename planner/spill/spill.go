package spill

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/program"
)

// Options are what is decided before: for all targets of a session at once.
type Options struct {
	// Leaves are the variables and constants that are bound on the disk, by node. Those
	// that the schedule has on the device stay there.
	Leaves []bool
	// HostBytes is what the host's load should keep to; 0 is to move all that can be
	// moved. If that does not do, all is moved.
	HostBytes int64
	// Ahead is by how many events loads come early and stores are late, at most.
	Ahead int32
}

// Pass moves what Schedule has on the host to the disk, in a schedule of its own: the
// present one is not written to.
func Pass(o Options) program.Pass {
	return program.Pass{Name: "spill", Run: func(p *program.Program) error {
		p.Schedule = Spill(p.Graph, p.Schedule, o)
		return nil
	}}
}

// Spill is a schedule of g with a disk, or s if nothing is moved there. It does not write
// to s, with which it may share operand lists.
func Spill(g *graph.Graph, s *program.Schedule, o Options) *program.Schedule {
	t := newTable(g, s, o.Leaves, o.HostBytes == 0)
	t.choose(o.HostBytes)
	if t.load.peak() > o.HostBytes && o.HostBytes > 0 {
		t = newTable(g, s, o.Leaves, true)
		t.choose(o.HostBytes)
	}
	if t.load.peak() > o.HostBytes {
		t.choose(0) // a gap with room in it may have its uses need less: a part each
	}
	if t.list(); !t.moves() && !t.ends() {
		return s
	}
	t.spread(o.HostBytes, o.Ahead)
	return newWriter(t).write()
}

// Least is the most bytes of the host that a schedule takes at once if all that can be
// moved to the disk is there, with these leaves.
func Least(g *graph.Graph, s *program.Schedule, leaves []bool) int64 {
	t := newTable(g, s, leaves, true)
	t.choose(0)
	return t.load.peak()
}
