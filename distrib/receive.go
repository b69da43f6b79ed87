package distrib

import (
	"errors"
	"fmt"
	"slices"
)

// handler takes what the transport delivers.
type handler struct{ e *Engine }

// Receive folds a message in.
func (h handler) Receive(from NodeID, m *Msg) {
	e := h.e
	body := joined(m)
	head, err := readHeader(m.Head, body)
	if err != nil {
		h.broken(from, err)
		return
	}
	marks, rest, err := cutMarks(body, head.marks)
	if err != nil {
		h.broken(from, err)
		return
	}
	var frames []Frame
	if head.kind == kindUpdates || head.kind == kindRows || head.kind == kindSums {
		err = decode(rest, e.shapes, e.kindOfParam, func(f Frame) error {
			frames = append(frames, f)
			return nil
		})
	}
	if err == nil {
		err = h.take(from, head, marks, frames, m, rest)
	}
	if err != nil {
		h.broken(from, err)
	}
}

// Down takes note that a node is gone.
func (h handler) Down(from NodeID, err error) {
	e := h.e
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mail.lose(from, err)
}

// broken takes a node whose messages make no sense for lost.
func (h handler) broken(from NodeID, err error) {
	why := &NonsenseError{from, err}
	h.e.mu.Lock()
	h.e.mail.lose(from, why)
	h.e.mu.Unlock()
	if !errors.Is(err, errOthers) { // who is only another's is to hear so from this node's hello
		Drop(h.e.t, from, why)
	}
}

// errOthers is a node that has attached other parameters.
var errOthers = errors.New("its parameters are others")

// take folds a decoded message in, in its turn.
func (h handler) take(from NodeID, head header, marks []mark, frames []Frame, m *Msg,
	body []byte) error {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	ok, err := h.inTurn(from, head)
	if !ok || err != nil {
		return err
	}
	if int(head.lane) >= len(h.e.lanes) {
		return fmt.Errorf("it is for plan %d of %d", head.lane, len(h.e.lanes))
	}
	h.e.audit.Received++
	if head.kind == kindRows || head.kind == kindSums || head.kind == kindAck {
		h.e.mail.acked(from, head.ack, marks)
	}
	if err := h.e.lanes[head.lane].take(from, head, marks, frames, m, body); err != nil {
		return err
	}
	h.e.wake()
	return nil
}

// inTurn reports whether a message is to be taken now: of this epoch, and the next of its
// stream. One of a coming epoch waits for it, and its stream with it. One that came
// before is dropped, and one before which some are missing ends the connection.
func (h handler) inTurn(from NodeID, head header) (bool, error) {
	for h.e.premature(head) && h.e.err == nil && !h.e.closing {
		changed := h.e.next()
		h.e.mu.Unlock()
		<-changed
		h.e.mu.Lock()
	}
	k := h.e.mail.links[from]
	if h.e.premature(head) || head.epoch != h.e.cfg.View.Epoch || k == nil ||
		h.e.mail.lost[from] != nil {
		h.e.audit.Foreign++
		return false, nil
	}
	c := head.kind.class()
	if head.seq <= k.last[c] {
		h.e.audit.Repeated++
		return false, nil
	}
	if head.seq != k.last[c]+1 {
		return false, fmt.Errorf("message %d of a stream came after %d", head.seq, k.last[c])
	}
	k.last[c] = head.seq
	return true, nil
}

// take is what the kinds of messages do.
func (l *lane) take(from NodeID, h header, marks []mark, frames []Frame, m *Msg,
	body []byte) error {
	e := l.e
	switch h.kind {
	case kindHello:
		if h.ack != e.hash {
			return fmt.Errorf("%w than those of node %d: their names, shapes, kinds or plans",
				errOthers, e.self)
		}
	case kindBye:
		e.mail.gone[from] = true
	case kindUpdates:
		return l.takeUpdates(from, h, marks, frames)
	case kindWho:
		return l.tellBehind(from, h)
	case kindBehind:
		l.client.behind[from] = marks
	case kindGet:
		return l.takeGet(from, h, body)
	case kindRows:
		return l.client.takeRows(from, h, frames)
	case kindSums:
		return l.client.takeSums(h, frames, m)
	case kindGiven:
		return l.takeGiven(from, body)
	case kindAck:
	default:
		return e.views.takeMove(from, h, marks, body)
	}
	return nil
}

func (l *lane) takeUpdates(from NodeID, h header, marks []mark, frames []Frame) error {
	k := l.e.mail.links[from]
	if h.flags&wantsAck != 0 || h.flags&endsClock != 0 && !l.answers(from) {
		k.owes = true
	}
	if l.mode == graph || l.mode == carry {
		return l.takeReplica(from, h, marks, frames)
	}
	if l.server == nil {
		return fmt.Errorf("it has updates for rows that node %d does not own", l.e.self)
	}
	return l.server.take(from, h, frames)
}

// answers reports whether a node gets rows as soon as a clock has ended, and with them
// an acknowledgement.
func (l *lane) answers(to NodeID) bool {
	if l.server == nil {
		return false
	}
	sub := l.server.readers.sub(to)
	return sub != nil && sub.standing
}

func (l *lane) takeGet(from NodeID, h header, body []byte) error {
	if l.server == nil || l.mode != served {
		return fmt.Errorf("it asks for rows that node %d does not own", l.e.self)
	}
	refs, err := readRefs(body, l.e.shapes)
	if err != nil {
		return err
	}
	return l.server.readers.asked(from, h, refs)
}

// tellBehind answers a probe. An owner that itself keeps the rows back names nobody.
func (l *lane) tellBehind(to NodeID, h header) error {
	if l.server == nil {
		return badFrame("node %d is asked about rows that it does not own", l.e.self)
	}
	var marks []mark
	for _, id := range l.server.clocks.behind(nil, h.clock) {
		marks = append(marks, mark{id, l.server.clocks.of(id)})
	}
	l.e.mail.post(to, &parcel{head: header{kind: kindBehind, lane: l.index}, marks: marks})
	return nil
}

// takeGiven lets the rule forget versions that a node has given back.
func (l *lane) takeGiven(from NodeID, body []byte) error {
	given, err := readGiven(body, l.e.shapes)
	if err != nil {
		return err
	}
	if l.server == nil || l.tagged == nil || l.server.readers.sub(from) == nil {
		return badFrame("versions are given back to node %d, which gives none", l.e.self)
	}
	sub := l.server.readers.sub(from)
	for _, f := range given {
		at := rowOf{f.Ref.Param, f.Ref.Row}
		i := slices.Index(sub.given[at], f.Tag)
		if i < 0 {
			return badFrame("version %d of rows %+v is given back twice", f.Tag, f.Ref)
		}
		if sub.given[at] = slices.Delete(sub.given[at], i, i+1); len(sub.given[at]) == 0 {
			delete(sub.given, at)
		}
		l.tagged.rule.Release(f.Ref, f.Tag)
	}
	return nil
}
