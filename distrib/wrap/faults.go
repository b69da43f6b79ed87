package wrap

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/gomem/gomem/distrib"
)

// ErrDropped is what a message is refused with that [Faults] dropped.
var ErrDropped = errors.New("wrap: dropped")

// Faults is how likely it is that a message meets with an accident. Each is drawn for each
// message that goes to another node.
type Faults struct {
	Seed      uint64
	Classes   []distrib.Class // that are hit; nil: all
	Drop      float64         // refused with [ErrDropped]
	Swallow   float64         // Done says that it arrived, and it did not
	Duplicate float64         // comes twice
	Corrupt   float64         // one bit is another
	Delay     float64         // held, for up to MaxDelay, and what follows in its stream too
	MaxDelay  time.Duration
}

// Wrap is a [distrib.Wrap].
func (f Faults) Wrap(t distrib.Transport) distrib.Transport {
	return &faulty{held: held{Transport: t}, f: f, ways: map[way]*faultyWay{}}
}

type way struct {
	to    distrib.NodeID
	class distrib.Class
}

type faultyWay struct {
	line
	draws *rand.Rand
}

type faulty struct {
	held
	f    Faults
	ways map[way]*faultyWay
}

// Send lets a message meet its fate.
func (t *faulty) Send(to distrib.NodeID, m *distrib.Msg) {
	if to == t.Self() || !t.f.hits(m.Class) {
		t.Transport.Send(to, m)
		return
	}
	w := t.way(way{to, m.Class})
	fate := t.draw(w)
	switch {
	case fate.drop:
		end(m, ErrDropped)
		return
	case fate.swallow:
		end(m, nil)
		return
	}
	sent := m
	if fate.corrupt >= 0 {
		sent = corrupted(m, fate.corrupt)
	}
	it := item{to: to, m: sent, at: time.Now().Add(fate.delay)}
	if fate.twice {
		again := clone(sent)
		again.Done = nil
		t.enter(&w.line, item{to: to, m: again, at: it.at}, w.next)
	}
	t.enter(&w.line, it, w.next)
}

func (f *Faults) hits(c distrib.Class) bool {
	for _, class := range f.Classes {
		if class == c {
			return true
		}
	}
	return f.Classes == nil
}

func (t *faulty) way(key way) *faultyWay {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.ways[key]
	if w == nil {
		id := uint64(t.Self())<<32 | uint64(key.to)<<8 | uint64(key.class)
		w = &faultyWay{draws: rand.New(rand.NewPCG(t.f.Seed, id))}
		t.ways[key] = w
	}
	return w
}

// next is called with the lock held.
func (w *faultyWay) next() (item, bool) {
	if len(w.items) == 0 {
		return item{}, false
	}
	it := w.items[0]
	w.items[0] = item{}
	w.items = w.items[1:]
	return it, true
}

type fate struct {
	drop, swallow, twice bool
	corrupt              int // the place of the bit, -1: none
	delay                time.Duration
}

// draw takes as many numbers for each message, whatever they come to, so that what is
// likely may be changed without changing everything else.
func (t *faulty) draw(w *faultyWay) fate {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := w.draws
	f := fate{drop: r.Float64() < t.f.Drop, swallow: r.Float64() < t.f.Swallow,
		twice: r.Float64() < t.f.Duplicate, corrupt: -1}
	if bit := int(r.Int32()); r.Float64() < t.f.Corrupt {
		f.corrupt = bit
	}
	if share := r.Float64(); r.Float64() < t.f.Delay {
		f.delay = time.Duration(share * float64(t.f.MaxDelay))
	}
	return f
}

func end(m *distrib.Msg, err error) {
	if m.Done != nil {
		go m.Done(err)
	}
}

// clone is a message with bytes of its own.
func clone(m *distrib.Msg) *distrib.Msg {
	c := *m
	c.Head, c.Body = bytes.Clone(m.Head), nil
	for _, b := range m.Body {
		c.Body = append(c.Body, bytes.Clone(b))
	}
	return &c
}

// corrupted is a message with one other bit, whose place is taken modulo its length.
func corrupted(m *distrib.Msg, bit int) *distrib.Msg {
	c := clone(m)
	n := size(c)
	if n == 0 {
		return c
	}
	bit %= 8 * n
	for _, b := range append([][]byte{c.Head}, c.Body...) {
		if bit < 8*len(b) {
			b[bit/8] ^= 1 << (bit % 8)
			break
		}
		bit -= 8 * len(b)
	}
	return c
}
