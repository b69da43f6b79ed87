package program

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// check proves that a schedule is one of the program: what events touch is there,
// is what the graph says, and has been written. That all of it together computes
// what the graph says is for the plan's verifier.
func (s *Schedule) check(p *Program) error {
	for id := range s.Stays {
		if err := s.checkStay(StayID(id)); err != nil {
			return fmt.Errorf("stay %d of %s: %w", id, s.Stays[id].Value, err)
		}
	}
	written := make([]bool, len(s.Stays))
	for id := range s.Stays {
		written[id] = s.Stays[id].Origin == Bound
	}
	for i := range s.Events {
		if err := s.checkEvent(p, int32(i), written); err != nil {
			return fmt.Errorf("event %d for %s: %w", i, p.Graph.Node(s.Events[i].Node).Name, err)
		}
	}
	for _, id := range s.Fetches {
		if int(id) >= len(s.Stays) || id < 0 || !written[id] {
			return fmt.Errorf("stay %d of a fetched value is never written", id)
		}
	}
	return nil
}

// checkStay proves what can be said of a stay alone.
func (s *Schedule) checkStay(id StayID) error {
	st := s.Stays[id]
	switch {
	case st.From < 0 || st.To < st.From || int(st.To) >= max(1, len(s.Events)):
		return fmt.Errorf("from event %d to %d of %d", st.From, st.To, len(s.Events))
	case st.Over >= id:
		return fmt.Errorf("takes over stay %d, which comes after it", st.Over)
	case st.Over != NoStay && s.Stays[st.Over].Bytes < st.Bytes:
		return fmt.Errorf("of %d bytes takes over stay %d of %d", st.Bytes, st.Over,
			s.Stays[st.Over].Bytes)
	}
	if root, _ := st.Value.Resolve(); root != st.Value {
		return fmt.Errorf("is of a view of %s", root)
	}
	if size := st.Value.Type().Bytes(); st.Origin != Workspace && st.Off+st.Bytes > size {
		return fmt.Errorf("has bytes %d to %d of %d", st.Off, st.Off+st.Bytes, size)
	}
	return nil
}

// checkEvent proves that what an event touches is there, and notes what it writes.
func (s *Schedule) checkEvent(p *Program, i int32, written []bool) error {
	e := &s.Events[i]
	if int(e.Stream) >= len(s.Streams) || int(e.Part) >= s.Parts || e.Part < 0 {
		return fmt.Errorf("stream %d of %d, partition %d of %d", e.Stream, len(s.Streams), e.Part,
			s.Parts)
	}
	var err error
	e.Each(func(id StayID) {
		if err != nil {
			return
		}
		if id < 0 || int(id) >= len(s.Stays) {
			err = fmt.Errorf("stay %d of %d", id, len(s.Stays))
		} else if st := s.Stays[id]; i < st.From || i > st.To {
			err = fmt.Errorf("stay %d of %s is there from %d to %d", id, st.Value, st.From, st.To)
		}
	})
	if err != nil {
		return err
	}
	if e.Copies() {
		return s.checkCopy(e, written)
	}
	return s.checkExecution(e, p.Graph.Node(e.Node), written)
}

// checkCopy proves that a copy is between two stays of one value.
func (s *Schedule) checkCopy(e *Event, written []bool) error {
	src, dst := s.Stays[e.Src], s.Stays[e.Dst]
	switch {
	case !written[e.Src]:
		return fmt.Errorf("copies stay %d before it is written", e.Src)
	case src.Value != dst.Value || src.Space == dst.Space:
		return fmt.Errorf("copies %s on the %s to %s on the %s", src.Value, src.Space, dst.Value,
			dst.Space)
	case dst.Off < src.Off || dst.Off+dst.Bytes > src.Off+src.Bytes:
		return fmt.Errorf("copies more of %s than is there", src.Value)
	}
	written[e.Dst] = true
	return nil
}

// checkExecution proves that an execution finds its operands.
func (s *Schedule) checkExecution(e *Event, n *graph.Node, written []bool) error {
	if n.Shared != nil {
		if len(e.Out) != 1 || s.Stays[e.Out[0]].Value != n.Value(0) || !s.Stays[e.Out[0]].Fixed {
			return fmt.Errorf("is an exchange of stays %v", e.Out)
		}
		return nil
	}
	if len(e.In) != len(n.In) || len(e.Out) != len(n.Out) {
		return fmt.Errorf("%d operands and %d results: want %d and %d", len(e.In), len(e.Out),
			len(n.In), len(n.Out))
	}
	for k, id := range e.In {
		root, off := n.In[k].Resolve()
		st := s.Stays[id]
		if !written[id] || st.Value != root || off < st.Off ||
			off+n.In[k].Type().Bytes() > st.Off+st.Bytes {
			return fmt.Errorf("operand %d, %s, is not in stay %d of %s", k, root, id, st.Value)
		}
	}
	for k, id := range e.Out {
		if s.Stays[id].Value != n.Value(k) {
			return fmt.Errorf("result %d goes to stay %d of %s", k, id, s.Stays[id].Value)
		}
		written[id] = true
	}
	return nil
}
