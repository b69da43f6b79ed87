package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// TestNobodyElseAnswers: an update that is with an aggregator is taken when its owner says so, and
// nobody else; that it is not taken, the aggregator may say, too.
func TestNobodyElseAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := memnet.New(4, memnet.Options{})
		d := Wrap(ts[0], Options{Nodes: []distrib.NodeID{0, 1, 2, 3}})
		x := id{From: 0, To: 3, Seq: 1}
		put := func() {
			q := &queued{id: x, m: &distrib.Msg{Class: distrib.Updates}, state: away, via: 2,
				timer: time.NewTimer(time.Hour)}
			d.ways.to[3] = &way{d: d, to: 3, queue: []*queued{q}}
		}
		for _, c := range []struct {
			from    distrib.NodeID
			taken   bool
			refused bool
		}{{1, true, true}, {1, false, true}, {2, true, true}, {2, false, false}, {3, true, false},
			{3, false, false}} {
			put()
			err := d.ways.answered(c.from, answer{x, c.taken})
			left := len(d.ways.to[3].queue)
			if (err != nil) != c.refused || (left == 1) != c.refused {
				t.Errorf("%+v: %v, and %d are left", c, err, left)
			}
		}
		if d.stats.Summed != 1 || d.stats.Again != 2 {
			t.Errorf("%+v, want 1 that was taken and 2 that were sent again", d.stats)
		}
		d.ways.to[3].queue = nil
		for _, t := range ts {
			t.Close()
		}
	})
}

// TestReports: an owner's word corrects what the scheduler expects, and nobody else's does.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := memnet.New(2, memnet.Options{})
		d := Wrap(ts[0], Options{Nodes: []distrib.NodeID{0, 1}})
		s := newScheduler(d, 1)
		x := id{From: 0, To: 1, Seq: 4}
		o := s.owner(x)
		o.out[x] = time.Now()
		if err := s.folded(0, fold{ID: x, Version: 9}); err == nil || len(o.out) != 1 {
			t.Errorf("who does not own says what was folded in: %v", err)
		}
		if err := s.folded(1, fold{ID: x, Version: 9}); err != nil || len(o.out) != 0 {
			t.Errorf("%v, and %d are on their way", err, len(o.out))
		}
		r := ready{ID: id{From: 0, To: 1, Seq: 5}, Delay: 5, Version: 2}
		if b := s.batch(o, []ready{r}); b.Version != 9 || b.MaxDelay != 5 {
			t.Errorf("%+v, want one after 9 with a bound of 5", b)
		}
		for _, t := range ts {
			t.Close()
		}
	})
}
