package workers

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/train"
)

// TestVitalLost: where views end with worker 0, the others say in a line that it is lost, and
// what was in it, and what to do; they say so of no other worker.
func TestVitalLost(t *testing.T) {
	const line = "worker 0, and the table in it, were out of reach for too long, and nobody goes " +
		"on without: do"
	for i, lost := range []distrib.NodeID{0, 2, 0} {
		c := &course{site: newSite(3), scheme: "ring", least: 2}
		c.vital = "the table"
		ends := func() { c.kill(lost) }
		switch {
		case i == 2: // it is stopped, and its connections stay
			ends = c.lapse
		case lost == 0:
			ends = c.fall
		}
		c.own = func(id distrib.NodeID, o *train.Options) {
			if o.Steps = 100; id == lost {
				o.Loader = gate{o.Loader, 20, sync.OnceFunc(ends)}
			}
		}
		for id, e := range c.all(t, 3) {
			_, vital := errors.AsType[*VitalError](e.err)
			switch {
			case id == int(lost):
			case lost != 0 && e.err != nil:
				t.Errorf("worker %d goes on without worker %d: %v", id, lost, e.err)
			case lost == 0 && (!vital || e.err.Error() != line):
				t.Errorf("worker %d: %v", id, e.err)
			}
		}
	}
}

// lapse ends the leases of all nodes but 0.
func (s *site) lapse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.here {
		if id != 0 {
			p.end(errors.New("its lease was not renewed in time"))
		}
	}
}

// fall kills node 0 and all views with it: a while later nobody is alive.
func (s *site) fall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.here[0].end(errKilled)
	s.nets[s.epoch].Kill(0)
	delete(s.here, 0)
	time.AfterFunc(50*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range s.here {
			p.end(errors.New("its lease was not renewed in time"))
		}
	})
}
