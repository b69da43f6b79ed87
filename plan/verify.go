package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
)

// Verify proves the promises of the package comment for a plan of g that
// computes fetches and runs updates. The error is a *[Error].
func Verify(p *Plan, g *graph.Graph, fetches []graph.Value, updates []graph.NodeID) error {
	if err := checkRefs(p, g); err != nil {
		return err
	}
	v := &verifier{plan: p, graph: g, live: liveNodes(g, fetches, updates)}
	for _, check := range []func() error{v.highWater, v.order, v.exclusive, v.contents, v.window} {
		if err := check(); err != nil {
			return err
		}
	}
	return v.results(fetches)
}

// verifier is the state that the checks share.
type verifier struct {
	plan  *Plan
	graph *graph.Graph
	live  []bool
	// clock[i][s] is the number of steps of stream s that are sure to be done
	// when step i starts; ordinal[i] is step i's number within its stream.
	clock   [][]int32
	ordinal []int32
	held    []content // what the slots hold at the end
}

func (v *verifier) fail(step int, format string, args ...any) error {
	name := ""
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

// checkRefs rejects indexes and ranges that point nowhere, so that the other
// checks need not look.
func checkRefs(p *Plan, g *graph.Graph) error {
	bad := func(step int, name string, err error) error { return &Error{Step: step, Name: name, Err: err} }
	for i, s := range p.Slots {
		if int(s.Space) >= len(p.Spaces) || s.Off < 0 || s.Bytes < 0 || s.From < 0 ||
			s.To < s.From || s.To >= max(1, len(p.Steps)) {
			return bad(-1, s.Value, fmt.Errorf("slot %d is out of range: %+v", i, s))
		}
	}
	for i, s := range p.Steps {
		if err := checkStep(p, g, i, s); err != nil {
			return bad(i, s.Name, err)
		}
	}
	for _, b := range slices.Concat(p.Feeds, p.Variables) {
		if b.Slot < 0 || int(b.Slot) >= len(p.Slots) || int(b.Node) >= g.Len() || b.Node < 0 ||
			!g.Node(b.Node).Leaf() ||
			p.Slots[b.Slot].Bytes < g.Node(b.Node).Out[0].Bytes() {
			return bad(-1, b.Name, errors.New("binding is out of range"))
		}
	}
	return nil
}

func checkStep(p *Plan, g *graph.Graph, i int, s Step) error {
	if s.Node < 0 || int(s.Node) >= g.Len() || int(s.Stream) >= len(p.Streams) || s.Part < 0 ||
		s.Part >= p.Parts {
		return errors.New("node, stream or partition is out of range")
	}
	for _, w := range s.Wait {
		if w < 0 || w >= i {
			return fmt.Errorf("waits for step %d, which is not earlier", w)
		}
	}
	n := g.Node(s.Node)
	switch do := s.Do.(type) {
	case Copy:
		return errors.Join(checkRef(p, do.Src, do.Bytes, i), checkRef(p, do.Dst, do.Bytes, i))
	case Launch:
		if len(do.In) != len(n.In) || len(do.Out) != len(n.Out) || do.Mutates != n.Mutates ||
			n.Leaf() {
			return errors.New("operands or results do not match the node")
		}
		var errs []error
		for k, r := range do.In {
			errs = append(errs, checkRef(p, r, n.In[k].Type().Bytes(), i))
		}
		for k, r := range do.Out {
			errs = append(errs, checkRef(p, r, n.Out[k].Bytes(), i))
		}
		if need := n.Cost().Scratch; need > 0 || do.Scratch != NoSlot {
			errs = append(errs, checkRef(p, Ref{Slot: do.Scratch}, need, i))
		}
		return errors.Join(errs...)
	}
	return errors.New("does nothing")
}

func checkRef(p *Plan, r Ref, bytes int64, step int) error {
	if r.Slot < 0 || int(r.Slot) >= len(p.Slots) {
		return fmt.Errorf("slot %d does not exist", r.Slot)
	}
	s := p.Slots[r.Slot]
	switch {
	case r.Off < 0 || r.Off+bytes > s.Bytes:
		return fmt.Errorf("%d bytes at %d are outside slot %d of %d bytes", bytes, r.Off, r.Slot,
			s.Bytes)
	case !s.Fixed && (step < s.From || step > s.To):
		return fmt.Errorf("slot %d (%s) is live from step %d to %d only", r.Slot, s.Value, s.From,
			s.To)
	}
	return nil
}

// highWater recomputes the peak of every space.
func (v *verifier) highWater() error {
	peak := make([]int64, len(v.plan.Spaces))
	for _, s := range v.plan.Slots {
		peak[s.Space] = max(peak[s.Space], s.Off+s.Bytes)
	}
	for i, s := range v.plan.Spaces {
		if peak[i] != s.Bytes {
			return v.fail(-1, "the slots of %s reach %d bytes, the header says %d", s.Name, peak[i],
				s.Bytes)
		}
		if s.Bytes > s.Budget {
			return v.fail(-1, "%s needs %d bytes of a budget of %d", s.Name, s.Bytes, s.Budget)
		}
	}
	return nil
}

// order computes what is sure to be done when each step starts.
func (v *verifier) order() error {
	steps, streams := v.plan.Steps, len(v.plan.Streams)
	v.clock = make([][]int32, len(steps))
	v.ordinal = make([]int32, len(steps))
	all := make([]int32, len(steps)*streams)
	last := make([]int, streams) // last step seen on each stream, plus one
	for i, s := range steps {
		clock := all[i*streams : (i+1)*streams : (i+1)*streams]
		after := func(w int) {
			for t, c := range v.clock[w] {
				clock[t] = max(clock[t], c)
			}
			clock[steps[w].Stream] = max(clock[steps[w].Stream], v.ordinal[w]+1)
		}
		if prev := last[s.Stream]; prev > 0 {
			after(prev - 1)
			v.ordinal[i] = v.ordinal[prev-1] + 1
		}
		for _, w := range s.Wait {
			after(w)
		}
		v.clock[i] = clock
		last[s.Stream] = i + 1
	}
	return nil
}

// before reports whether step a is sure to be done when step b starts.
func (v *verifier) before(a, b int) bool {
	return v.clock[b][v.plan.Steps[a].Stream] > v.ordinal[a]
}

// window proves that at most two partitions are in flight.
func (v *verifier) window() error {
	streams := len(v.plan.Streams)
	// done[p][s] is the number of steps of stream s in partitions 0 to p.
	done := make([][]int32, v.plan.Parts)
	now := make([]int32, streams)
	part := 0
	for i, s := range v.plan.Steps {
		if s.Part < part {
			return v.fail(i, "is of partition %d after a step of partition %d", s.Part, part)
		}
		for ; part < s.Part; part++ {
			done[part] = slices.Clone(now)
		}
		now[s.Stream]++
		if s.Part < 2 {
			continue
		}
		for t, need := range done[s.Part-2] {
			if v.clock[i][t] < need {
				return v.fail(i, "of partition %d may start before partition %d is done on stream %s", s.Part, s.Part-2, v.plan.Streams[t].Name)
			}
		}
	}
	return nil
}
