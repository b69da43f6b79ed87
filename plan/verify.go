package plan

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
)

// Verify proves the promises of the package comment for a plan of g that
// computes fetches and runs updates. g and what is asked of it must be valid;
// the plan may be anything. The error is an *[Error], the same every time.
func Verify(p *Plan, g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) error {
	v := &verifier{plan: p, graph: g, live: liveNodes(g, fetches, updates), fetches: fetches}
	for _, check := range []func() error{v.header, v.slots, v.steps, v.leaves, v.highWater, v.order,
		v.contents, v.exclusive} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// verifier is the state that the checks share.
type verifier struct {
	plan    *Plan
	graph   *graph.Graph
	live    []bool
	fetches []graph.Value
	used    []bool // by slot: something touches it
	// clock[i][s] is the number of steps of stream s that are sure to be done
	// when step i starts; ordinal[i] is step i's number within its stream.
	clock   [][]int32
	ordinal []int32
}

// fail is a broken promise of a step, or of what has the name if step is -1.
func (v *verifier) fail(step int, name, format string, args ...any) error {
	if step >= 0 {
		name = v.plan.Steps[step].Name
	}
	return &Error{Step: step, Name: name, Err: fmt.Errorf(format, args...)}
}

func liveNodes(g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) []bool {
	roots := slices.Clone(updates)
	for _, f := range fetches {
		roots = append(roots, f.Node.ID)
	}
	return g.Ancestors(roots)
}

// highWater recomputes the peak of every space. Every byte of every slot is
// touched in a run, so this is the peak of the run too.
func (v *verifier) highWater() error {
	peak := make([]int64, len(v.plan.Spaces))
	for _, s := range v.plan.Slots {
		peak[s.Space] = max(peak[s.Space], s.Off+s.Bytes)
	}
	for i, s := range v.plan.Spaces {
		if peak[i] != s.Bytes {
			return v.fail(-1, s.Name, "the slots reach %d bytes, the header says %d", peak[i],
				s.Bytes)
		}
		if s.Bytes > s.Budget {
			return v.fail(-1, s.Name, "needs %d bytes of a budget of %d", s.Bytes, s.Budget)
		}
	}
	return nil
}

// order computes what is sure to be done when each step starts, and proves that
// no more partitions are in flight than the plan's window has, and that a plan that gathers
// awaits nothing before what is sent before it.
func (v *verifier) order() error {
	steps, streams := v.plan.Steps, len(v.plan.Streams)
	v.clock = make([][]int32, len(steps))
	v.ordinal = make([]int32, len(steps))
	all := make([]int32, len(steps)*streams)
	last := make([]int, streams)   // last step seen on each stream, plus one
	past := make([]int32, streams) // by stream: steps of partitions that must be done
	first := 0                     // the first step that is not among these
	sent := -1                     // the last send, whose stream keeps them in order
	for i := range steps {
		s := &steps[i]
		clock := all[i*streams : (i+1)*streams : (i+1)*streams]
		if prev := last[s.Stream]; prev > 0 {
			v.after(clock, prev-1)
			v.ordinal[i] = v.ordinal[prev-1] + 1
		}
		for _, before := range s.Wait {
			v.after(clock, before)
		}
		v.clock[i] = clock
		last[s.Stream] = i + 1
		for ; v.plan.Window > 0 && steps[first].Part <= s.Part-v.plan.Window; first++ {
			past[steps[first].Stream]++
		}
		for t, need := range past {
			if clock[t] < need {
				return v.fail(i, "", "of partition %d may start before partition %d is done on "+
					"stream %s", s.Part, s.Part-v.plan.Window, v.plan.Streams[t].Name)
			}
		}
		switch s.Do.(type) {
		case Send:
			sent = i
		case Await:
			if v.plan.Gathers && sent >= 0 && !v.before(sent, i) {
				return v.fail(i, "", "may be awaited before step %d is sent", sent)
			}
		}
	}
	return nil
}

// after raises a clock to what is done when a step is.
func (v *verifier) after(clock []int32, step int) {
	for t, c := range v.clock[step] {
		clock[t] = max(clock[t], c)
	}
	s := v.plan.Steps[step].Stream
	clock[s] = max(clock[s], v.ordinal[step]+1)
}

// before reports whether step a is sure to be done when step b starts.
func (v *verifier) before(a, b int) bool {
	return v.clock[b][v.plan.Steps[a].Stream] > v.ordinal[a]
}
