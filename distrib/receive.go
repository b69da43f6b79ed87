package distrib

import (
	"errors"
	"fmt"
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
		l.behind[from] = marks
	case kindGet:
		return l.takeGet(from, h, body)
	case kindRows:
		return l.takeRows(from, h, frames)
	case kindSums:
		return l.takeSums(h, frames, m)
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
	sub := l.server.sub(to)
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
	return l.server.asked(from, h, refs)
}

// takeRows brings the replica up to what an owner has sent, and adds what of this node's
// own the owner has not folded in.
func (l *lane) takeRows(from NodeID, h header, frames []Frame) error {
	for _, f := range frames {
		p := l.e.params[f.Ref.Param]
		u := plain(f.U)
		_, ok := u.(Dense)
		if !ok && p.kind == nil || p.lane != l || p.replica == nil || f.Ref.N == 0 {
			return fmt.Errorf("it has rows of parameter %d in a form that rows do not have",
				f.Ref.Param)
		}
		l.setRows(p, f, u, h.clock)
	}
	if h.flags&endsClock != 0 {
		l.age.advance(from, h.clock)
		l.told[from] = h.version
	}
	return nil
}

func (l *lane) setRows(p *param, f Frame, u Update, at Clock) {
	p.replica.set(int(f.Ref.Row), int(f.Ref.N), u)
	for _, it := range p.mine.over(f.Ref.Row, f.Ref.N) {
		if p.kind != nil {
			p.replica.add(int(f.Ref.Row), 1, it.U)
		} else {
			it.addTo(p.rowsOf(f.Ref), f.Ref.Row, f.Ref.N)
		}
	}
	for i := f.Ref.Row; i < f.Ref.Row+f.Ref.N; i++ {
		if l.tagged != nil {
			l.tagged.came(p, i, f.Tag)
		}
		p.versions[i] = f.Tag
		if p.ages != nil {
			p.ages[i], p.reads[i] = max(p.ages[i], at), unasked
		} else if p.reads[i] != live {
			p.reads[i] = live
			p.lacking--
		}
	}
	l.e.workers.touch(p, f.Ref)
}

// fresh reports whether rows may be read that hold what everybody wrote in clocks before
// need, and asks for those that are missing.
func (l *lane) fresh(p *param, ref Ref, need Clock) bool {
	l.missing(p, []Ref{ref}, need)
	if p.ages == nil {
		return need <= l.base && l.delay() == 0 || l.standing(p, ref) && l.reached(p, ref, need) &&
			(l.delay() == 0 || l.answered(p, ref))
	}
	for i := ref.Row; i < ref.Row+ref.N; i++ {
		if p.ages[i] < need {
			return false
		}
	}
	return true
}

// missing asks for those of some rows that are too old or have never come, and have not been asked
// for.
func (l *lane) missing(p *param, refs []Ref, need Clock) {
	switch {
	case p.ages != nil:
		l.ask(p, refs, need, func(i int32) bool {
			return p.ages[i] < need && p.reads[i] == unasked
		})
	case p.lacking > 0:
		l.ask(p, refs, 0, func(i int32) bool { return p.reads[i] == unasked })
	}
}

// standing reports whether owners send rows whenever they change.
func (l *lane) standing(p *param, ref Ref) bool {
	if p.lacking == 0 {
		return true
	}
	for _, s := range p.reads[ref.Row : ref.Row+ref.N] {
		if s != live {
			return false
		}
	}
	return true
}

// ask sends for some rows, each to its owner.
func (l *lane) ask(p *param, refs []Ref, need Clock, which func(int32) bool) {
	wanted := map[NodeID][]Ref{}
	for _, ref := range refs {
		for i := ref.Row; i < ref.Row+ref.N; i++ {
			if !which(i) {
				continue
			}
			p.reads[i] = asked
			list := wanted[p.owner[i]]
			if k := len(list) - 1; k >= 0 && list[k].Row+list[k].N == i {
				list[k].N++
			} else {
				list = append(list, Ref{p.id, i, 1})
			}
			wanted[p.owner[i]] = list
		}
	}
	for _, id := range l.owners {
		if refs := wanted[id]; refs != nil {
			h := header{kind: kindGet, lane: l.index, clock: need}
			if p.ages == nil {
				h.flags = asksStanding
			}
			l.e.mail.post(id, &parcel{head: h, body: [][]byte{appendRefs(nil, refs)}})
		}
	}
}
