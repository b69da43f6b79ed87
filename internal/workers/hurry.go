package workers

import (
	"errors"
	"time"

	"github.com/gomem/gomem/distrib"
)

// How long a worker that is asked to end waits: for an answer of others, who answer also when they
// are busy; and for another group, which takes the lease of one that is lost.
const (
	answerWithin = 2 * time.Second
	groupWithin  = 6 * time.Second
)

// errSilent is what becomes of a worker that does not answer one that is asked to end, and errAsked
// of a group that is not formed in time then.
var (
	errSilent = errors.New("it does not answer")
	errAsked  = errors.New("this worker is asked to end, and the others form no group")
)

// hurry is from when this process is asked to end: there is no time then to wait until the silence
// of others is noticed, or for a group that is not formed. Who is busy is waited for, so that all
// end in order.
func (m *Member) hurry() {
	defer close(m.hurried)
	close(m.hurries)
	began := time.Now()
	for !m.over(0) {
		at := m.at()
		switch {
		case at.formed.Load():
			for _, id := range at.desk.silent(answerWithin, m.closing) {
				at.desk.Down(id, errSilent)
				at.drop(id, errSilent)
			}
		case time.Since(began) > groupWithin:
			at.desk.fail(&brokenError{errAsked})
		}
		if m.over(answerWithin / 4) {
			return
		}
	}
}

// over waits for a while, and reports whether the member is closed.
func (m *Member) over(d time.Duration) bool {
	select {
	case <-m.closing:
		return true
	case <-time.After(d):
		return false
	}
}

// silent asks all who have not ended whether they are there, and is who has not answered in time.
func (d *Desk) silent(within time.Duration, stop <-chan struct{}) (ids []distrib.NodeID) {
	d.mu.Lock()
	before := append([]int(nil), d.answers...)
	d.mu.Unlock()
	d.toAll([]byte{ask}, func(int) []byte { return nil }, nil)
	select {
	case <-time.After(within):
	case <-stop:
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for rank, id := range d.members {
		if rank != d.rank && d.ended[rank] == nil && d.answers[rank] == before[rank] {
			ids = append(ids, id)
		}
	}
	return ids
}
