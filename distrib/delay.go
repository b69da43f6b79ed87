package distrib

import (
	"errors"
	"maps"
)

// ErrStale is what Done of a message of updates says of which everything has arrived but the
// updates: its transport has discarded them, for they would have come too late. They are counted
// in Audit.Stale, and as dropped.
var ErrStale = errors.New("distrib: updates were discarded: they would have come too late")

// when is when an update comes to its owner: after how many others, of how many of which it knows
// nothing. One that is weighed has been multiplied by what follows from that.
type when struct {
	at, delay Version
	weighed   bool
}

// when is that of a message's updates that comes now.
func (s *server) when(h header) when {
	return when{at: s.pushes, delay: max(0, s.pushes-h.version)}
}

// delays is how many delays are counted apart.
const delays = 1 << 10

// stale reports whether a message of so many frames has come too late, and counts it if not.
func (s *server) stale(h header, frames int) bool {
	if frames == 0 {
		return false
	}
	if most := s.lane.delay(); most > 0 {
		by := max(0, s.pushes-h.version)
		if by > most {
			return true
		}
		a := &s.lane.e.audit
		if a.Delays == nil {
			a.Delays = make([]int64, min(int64(most)+1, delays))
		}
		a.Delays[min(int64(by), int64(len(a.Delays)-1))]++
	}
	s.pushes++
	return false
}

// discard counts updates that are not folded in.
func (s *server) discard(frames []Frame) {
	e := s.lane.e
	e.audit.Stale++
	for _, f := range frames {
		l := &e.params[f.Ref.Param].ledger
		l.receive(&e.cfg, f.U)
		if e.cfg.Audited {
			l.Late += mass(f.U)
		}
	}
}

// begins notes what a worker computes from that reads for the first time in its clock.
func (w *worker) begins() {
	if !w.fresh {
		return
	}
	w.fresh, w.from = false, w.from[:0]
	for _, l := range w.e.lanes {
		w.from = append(w.from, maps.Clone(l.client.told))
	}
}
