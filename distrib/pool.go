package distrib

import (
	"fmt"
	"slices"
)

// Pool is the handler of an [Engine], as transports see it that do more with messages of updates
// than carry them: hold them, discard the updates in them, add up those of several nodes.
type Pool interface {
	Handler
	// Push says what is in a message of updates; !ok if it has none, or not for their owner.
	Push(m *Msg) (p Push, ok bool)
	// Sum adds up the updates of messages for one owner, in their order, to the body of one. at is
	// how many messages of updates the owner will have folded in before, for a rule that is
	// [Weighing].
	Sum(ms []*Msg, at Version) ([][]byte, error)
	// TakeSum folds messages in whose updates came as a sum, all of them or none. It reports
	// whether it did: not if one of them has come before, is not the next from its node, or is
	// too late. The error is a sender that makes no sense.
	TakeSum(parts []Part, body [][]byte) (taken bool, err error)
	// Folded is how many messages of updates this node has folded in as their owner, by the plan
	// that a message is of.
	Folded(m *Msg) Version
	// Norm is the Euclidean norm of the updates in a message of them.
	Norm(m *Msg) float64
	// Keep adds the updates of a message, of the same form as for their owner, to the replica of
	// that one's rows, see Config.Keeps. The error is a sender that makes no sense.
	Keep(owner NodeID, body [][]byte) error
}

// Push is what a message of updates is, to one who does not look into them.
type Push struct {
	Epoch   int64
	Plan    uint16  // a number of the plan that it is by; each counts for itself
	Seq     uint64  // its number among those from its node to its owner in the epoch
	Version Version // how many such messages the values hold that it was computed from
	Delay   Version // how many others may be folded in between, see [Async]; 0: any number
	Adds    bool    // its updates may be added to others' before they are folded in
}

// Part is a message whose updates were taken out: its head, and who sent it.
type Part struct {
	From NodeID
	Head []byte
}

// Without is a message without the updates in it, of which [Pool].Push has said ok. Its clock is
// in it still.
func Without(m *Msg) *Msg {
	c := *m
	c.Body = nil // which has no clocks before the updates, so that the head fits
	return &c
}

// push is the head of a message with updates for their owner, and its lane; nil if it is another.
func (h handler) push(m *Msg) (header, *lane) {
	if m.Class != Updates || len(m.Head) != headLen || kind(m.Head[0]) != kindUpdates {
		return header{}, nil
	}
	head, err := readHeader(m.Head, nil)
	if err != nil || head.marks > 0 || int(head.lane) >= len(h.e.lanes) {
		return header{}, nil
	}
	if l := h.e.lanes[head.lane]; l.mode == served || l.mode == flow {
		return head, l
	}
	return header{}, nil
}

// Push is of [Pool].
func (h handler) Push(m *Msg) (Push, bool) {
	head, l := h.push(m)
	if l == nil || len(m.Body) == 0 {
		return Push{}, false
	}
	return Push{Epoch: head.epoch, Plan: head.lane, Seq: head.seq, Version: head.version,
		Delay: l.delay(), Adds: l.adds()}, true
}

// Folded is of [Pool].
func (h handler) Folded(m *Msg) Version {
	_, l := h.push(m)
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	if l == nil || l.server == nil {
		return 0
	}
	return l.server.pushes
}

// Sum is of [Pool]. Rows that two messages have in common, and in the same pieces, are added up as
// their owner would add them; other pieces go side by side.
func (h handler) Sum(ms []*Msg, at Version) ([][]byte, error) {
	var frames []Frame
	place := map[Ref]int{}
	for i, m := range ms {
		head, l := h.push(m)
		if l == nil || !l.adds() {
			return nil, badFrame("a message to be added up has no updates that can be")
		}
		weigh := l.weighs()
		err := Decode(joined(m), h.e.shapes, func(f Frame) error {
			if n := at + Version(i); weigh != nil {
				f.U = h.e.weighed(f, weigh.Weight(n, max(0, n-head.version)))
			}
			i, ok := place[f.Ref]
			if !ok {
				place[f.Ref] = len(frames)
				frames = append(frames, f)
				return nil
			}
			frames[i].U = AddOwned(frames[i].U, f.U)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(frames, func(a, b Frame) int {
		if a.Ref.Param != b.Ref.Param {
			return int(a.Ref.Param) - int(b.Ref.Param)
		}
		return int(a.Ref.Row) - int(b.Ref.Row)
	})
	size := 0
	for _, f := range frames {
		size += FrameSize(f)
	}
	b, err := encode(make([]byte, 0, size), frames)
	return [][]byte{b}, err
}

// TakeSum is of [Pool].
func (h handler) TakeSum(parts []Part, body [][]byte) (bool, error) {
	e := h.e
	heads := make([]header, len(parts))
	var l *lane
	for i, p := range parts {
		var of *lane
		heads[i], of = h.push(&Msg{Class: Updates, Head: p.Head})
		if of == nil || i > 0 && of != l || !of.adds() || heads[i].clock < 0 {
			return false, fmt.Errorf("a sum of what node %d sent, which is not to be added up",
				p.From)
		}
		l = of
	}
	var frames []Frame
	err := Decode(joined(&Msg{Body: body}), e.shapes, func(f Frame) error {
		frames = append(frames, f)
		return nil
	})
	if err != nil || len(parts) == 0 {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.server == nil {
		return false, fmt.Errorf("a sum for rows that node %d does not own", e.self)
	}
	for _, f := range frames {
		if err := l.server.owns(f.Ref); err != nil {
			return false, err
		}
	}
	if !l.server.mayTake(parts, heads) {
		return false, nil
	}
	return true, l.server.takeSum(parts, heads, frames)
}

// mayTake reports whether all parts of a sum are the next ones of their nodes, and in time.
func (s *server) mayTake(parts []Part, heads []header) bool {
	e := s.lane.e
	next := map[NodeID]uint64{}
	for i, p := range parts {
		h, k := heads[i], e.mail.links[p.From]
		if k == nil || e.mail.lost[p.From] != nil || h.epoch != e.cfg.View.Epoch || e.premature(h) {
			return false
		}
		if _, ok := next[p.From]; !ok {
			next[p.From] = k.last[Updates]
		}
		next[p.From]++
		late := s.pushes + Version(i) - h.version
		if most := s.lane.delay(); h.seq != next[p.From] || most > 0 && late > most {
			return false
		}
	}
	return true
}

// takeSum folds a sum in: its parts count as if each had come on its own.
func (s *server) takeSum(parts []Part, heads []header, frames []Frame) error {
	e, by := s.lane.e, when{at: s.pushes, weighed: s.lane.weighs() != nil}
	for i, p := range parts {
		k := e.mail.links[p.From]
		k.last[Updates] = heads[i].seq
		e.audit.Received++
		s.stale(heads[i], len(frames))
		if f := heads[i].flags; f&wantsAck != 0 || f&endsClock != 0 && !s.lane.answers(p.From) {
			k.owes = true
		}
	}
	for _, f := range frames {
		f.Ref.N = max(f.Ref.N, 1)
		e.params[f.Ref.Param].ledger.receive(&e.cfg, f.U)
		s.latest = max(s.latest, f.Clock)
		s.fold(f, by)
	}
	for i, p := range parts {
		s.ended(p.From, heads[i])
	}
	e.wake()
	return nil
}
