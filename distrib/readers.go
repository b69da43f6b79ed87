package distrib

import (
	"fmt"
	"slices"
)

// readers are the nodes that read rows of a server: what each has asked for, and has been sent.
type readers struct {
	server *server
	subs   []*subscriber
	waits  []getting // rows that are asked for as of a clock that is not there
	// news is how rows of each parameter have changed since they last left early, for the
	// plan's pacer to compare.
	news []store
}

// subscriber is a node that reads rows of this one.
type subscriber struct {
	node     NodeID
	wants    []bitset // rows of each parameter of the lane that it has asked for
	dirty    []bitset // that have changed since they were sent to it
	answers  []Ref    // rows that it waits for
	standing bool     // it is sent rows whenever they change
	news     bool     // rows may have changed since all that had were sent
	urgent   bool     // it has rows to get now
	sweep    bool     // its rows are on their way, as of clock
	clock    Clock
	version  Version // of the rows that it gets, when the first of them was read
	at       cursor
	told     Clock               // the last clock that it was told of
	given    map[rowOf][]Version // versions of rows that it has, where rules remember them
}

// cursor is how far a pass over rows is.
type cursor struct{ param, row int }

// getting is who waits for rows as of a clock.
type getting struct {
	from NodeID
	need Clock
	refs []Ref
}

// begin makes a subscriber of every node with workers.
func (rs *readers) begin(at Clock) {
	l := rs.server.lane
	for _, p := range l.params {
		if l.plan.Pacer != nil {
			rs.news = append(rs.news, p.newStore(len(p.folded)))
		}
	}
	for _, id := range l.e.members {
		sub := &subscriber{node: id, told: at, given: map[rowOf][]Version{}}
		for _, p := range l.params {
			sub.wants = append(sub.wants, newBitset(p.rows))
			sub.dirty = append(sub.dirty, newBitset(p.rows))
		}
		rs.subs = append(rs.subs, sub)
	}
}

// changes notes that an update has changed rows.
func (rs *readers) changes(p *param, f Frame) {
	i := rs.server.index(p)
	if rs.news != nil {
		rs.news[i].add(int(p.slot[f.Ref.Row]), int(f.Ref.N), f.U)
	}
	for _, sub := range rs.subs {
		sub.dirty[i].setRange(int(f.Ref.Row), int(f.Ref.N))
		sub.news = true
	}
}

// reached answers those who have waited for a clock.
func (rs *readers) reached(least Clock) {
	rs.waits = slices.DeleteFunc(rs.waits, func(g getting) bool {
		if g.need > least {
			return false
		}
		rs.answer(g.from, g.refs)
		return true
	})
}

func (rs *readers) sub(id NodeID) *subscriber {
	for _, sub := range rs.subs {
		if sub.node == id {
			return sub
		}
	}
	return nil
}

// asked notes that a node wants rows.
func (rs *readers) asked(from NodeID, h header, refs []Ref) error {
	sub := rs.sub(from)
	if sub == nil {
		return fmt.Errorf("node %d asks for rows and is no worker", from)
	}
	for _, r := range refs {
		if err := rs.server.owns(r); err != nil {
			return err
		}
	}
	if h.flags&asksStanding != 0 {
		for _, r := range refs {
			i := rs.server.index(rs.server.lane.e.params[r.Param])
			sub.wants[i].setRange(int(r.Row), int(r.N))
			sub.dirty[i].setRange(int(r.Row), int(r.N))
		}
		sub.urgent, sub.standing = true, true
		return nil
	}
	if h.clock <= rs.server.clocks.min() {
		rs.answer(from, refs)
	} else {
		rs.waits = append(rs.waits, getting{from, h.clock, refs})
	}
	return nil
}

func (rs *readers) answer(to NodeID, refs []Ref) {
	if sub := rs.sub(to); sub != nil {
		sub.answers = append(sub.answers, refs...)
	}
}

// next makes the next message of rows for a node: what it waits for, then what has
// changed since it was told of a clock, the last with the clock on it.
func (rs *readers) next(to NodeID) *parcel {
	sub := rs.sub(to)
	if sub == nil || rs.server.clocks.of(to) == endOfTime && to != rs.server.lane.e.self {
		return nil
	}
	if len(sub.answers) > 0 {
		return rs.answered(sub)
	}
	least := rs.server.clocks.min()
	if !sub.sweep {
		news := least > sub.told && least < endOfTime && sub.standing
		if !news && !sub.urgent {
			return rs.early(sub)
		}
		sub.sweep, sub.urgent, sub.at, sub.clock = true, false, cursor{}, min(least, endOfTime)
		sub.version = rs.server.pushes
	}
	frames := rs.collect(sub, rs.server.lane.e.cfg.Message)
	h := header{kind: kindRows, lane: rs.server.lane.index, clock: sub.clock, version: sub.version}
	if sub.at.param == len(rs.server.lane.params) {
		h.flags |= endsClock
		sub.sweep, sub.told = false, sub.clock
	}
	return rs.rows(h, frames)
}

// rows encodes frames of rows at once, since the rows may change.
func (rs *readers) rows(h header, frames []Frame) *parcel {
	size := 0
	for _, f := range frames {
		size += FrameSize(f)
	}
	b, err := encode(make([]byte, 0, size), frames)
	if err != nil {
		rs.server.lane.e.fail(err)
	}
	return &parcel{head: h, body: [][]byte{b}}
}

// answered makes a message of rows that were asked for.
func (rs *readers) answered(sub *subscriber) *parcel {
	var frames []Frame
	size := 0
	for len(sub.answers) > 0 && size < rs.server.lane.e.cfg.Message {
		r := &sub.answers[0]
		p := rs.server.lane.e.params[r.Param]
		n := min(int(r.N), p.fit(rs.server.lane.e.cfg.Message-size))
		frames = rs.frame(sub, frames, p, r.Row, int32(n))
		size += p.framed(r.Row, n)
		r.Row, r.N = r.Row+int32(n), r.N-int32(n)
		if r.N == 0 {
			sub.answers = sub.answers[1:]
		}
	}
	slices.SortStableFunc(frames, func(a, b Frame) int {
		if a.Ref.Param != b.Ref.Param {
			return int(a.Ref.Param) - int(b.Ref.Param)
		}
		return int(a.Ref.Row) - int(b.Ref.Row)
	})
	return rs.rows(header{kind: kindRows, lane: rs.server.lane.index, clock: rs.server.clocks.min(),
		version: rs.server.pushes}, frames)
}

// collect takes the next changed rows of a pass, no more than a message.
func (rs *readers) collect(sub *subscriber, most int) []Frame {
	var frames []Frame
	size := 0
	for sub.at.param < len(rs.server.lane.params) && size < most {
		i := sub.at.param
		p := rs.server.lane.params[i]
		from, to := wanted(sub, i, sub.at.row, p.rows)
		if from == p.rows {
			sub.at = cursor{i + 1, 0}
			continue
		}
		to = min(to, from+p.fit(most-size))
		frames = rs.frame(sub, frames, p, int32(from), int32(to-from))
		sub.dirty[i].clearRange(from, to-from)
		size += p.framed(int32(from), to-from)
		sub.at.row = to
	}
	return frames
}

// frame appends rows as they are, in runs that lie together, by versions if updates are
// tagged with them.
func (rs *readers) frame(sub *subscriber, frames []Frame, p *param, row, n int32) []Frame {
	l := rs.server.lane
	step := n
	if l.tagged != nil || p.kind != nil {
		step = 1
	}
	for at := row; at < row+n; at += step {
		r := Ref{p.id, at, step}
		tag := slices.Min(p.folded[p.slot[at] : p.slot[at]+step])
		if l.tagged != nil {
			tag = l.tagged.rule.Snapshot(r)
			row := rowOf{p.id, r.Row}
			sub.given[row] = append(sub.given[row], tag)
		}
		u := p.master.get(int(p.slot[at]), int(step))
		if l.plan.DownF != nil {
			u, _ = l.plan.DownF.Split(&Entry{Ref: r, U: u}, rs.server.clocks.min(), Link{})
		}
		frames = append(frames, Frame{r, 0, tag, l.e.cfg.View.Epoch, u})
	}
	return frames
}

// wanted is the next run of rows that a node wants and that have changed.
func wanted(sub *subscriber, i, row, rows int) (from, to int) {
	for row < rows {
		from, to = sub.dirty[i].run(row, rows)
		if from = sub.wants[i].next(from, to); from < to {
			end := from
			for end < to && sub.wants[i].has(end) {
				end++
			}
			return from, end
		}
		row = to
	}
	return rows, rows
}
