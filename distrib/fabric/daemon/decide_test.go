package daemon

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
)

// wire is a transport that notes what is sent, and to whom.
type wire struct {
	distrib.Transport
	mu   sync.Mutex
	sent []posted
}

type posted struct {
	to distrib.NodeID
	m  *distrib.Msg
	at time.Time
}

func (w *wire) Self() distrib.NodeID    { return 0 }
func (w *wire) Serve(h distrib.Handler) {}
func (w *wire) Close() error            { return nil }
func (w *wire) Send(to distrib.NodeID, m *distrib.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, posted{to, m, time.Now()})
}

// of is what was sent of a kind of the fabric's messages; 0: pushes.
func (w *wire) of(k kind) (some []posted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.sent {
		if k == 0 && p.m.Tag != tag || k > 0 && p.m.Tag == tag && kind(p.m.Head[0]) == k {
			some = append(some, p)
		}
	}
	return some
}

// numbers is a pool whose pushes have a number as their head.
type numbers struct {
	distrib.Pool
	delay  distrib.Version
	takes  bool
	folded map[distrib.NodeID]uint64 // the last of each node
	kept   int
}

func (n *numbers) Push(m *distrib.Msg) (distrib.Push, bool) {
	if len(m.Head) != 8 {
		return distrib.Push{}, false
	}
	return distrib.Push{Seq: binary.LittleEndian.Uint64(m.Head), Adds: true, Delay: n.delay}, true
}

func (n *numbers) Down(distrib.NodeID, error) {}
func (n *numbers) Receive(from distrib.NodeID, m *distrib.Msg) {
	if p, ok := n.Push(m); ok {
		n.folded[from] = max(n.folded[from], p.Seq)
	}
}

// Folded is how many there are, since each node's come one after the other.
func (n *numbers) Folded(*distrib.Msg) (all distrib.Version) {
	for _, seq := range n.folded {
		all += distrib.Version(seq)
	}
	return all
}
func (n *numbers) Sum(ms []*distrib.Msg, _ distrib.Version) ([][]byte, error) {
	return [][]byte{make([]byte, 8*len(ms))}, nil
}

func (n *numbers) Norm(m *distrib.Msg) float64 { return 1 }
func (n *numbers) Keep(distrib.NodeID, [][]byte) error {
	n.kept++
	return nil
}

func (n *numbers) TakeSum([]distrib.Part, [][]byte) (bool, error) { return n.takes, nil }

// decides is node 0 of five, with a daemon, as a test sees it. Node 4 schedules.
type decides struct {
	*Daemon
	wire *wire
	pool *numbers
}

func newDecides() *decides {
	d := &decides{wire: &wire{}, pool: &numbers{folded: map[distrib.NodeID]uint64{}}}
	d.Daemon = Wrap(d.wire, Options{Nodes: []distrib.NodeID{0, 1, 2, 3, 4},
		Elect: nobody{}})
	d.Daemon.pool, d.handler = d.pool, d.pool
	d.election.claimed(4, 1)
	d.election.heard = time.Now()
	return d
}

// nobody is never elected.
type nobody struct{ Elector }

// pushed has node 0 push its next number to node 3, and is its id.
func (d *decides) pushed(seq uint64) id {
	d.Send(3, &distrib.Msg{Class: distrib.Updates, Head: binary.LittleEndian.AppendUint64(nil, seq),
		Body: [][]byte{make([]byte, 100)}})
	return id{From: 0, To: 3, Seq: seq}
}

// hears has a message arrive, and is what is wrong with it.
func (d *decides) hears(from distrib.NodeID, m *distrib.Msg) error { return d.read(from, m) }

// slots has the scheduler, or whoever, say what becomes of an update.
func (d *decides) slots(from distrib.NodeID, s slot) error {
	return d.hears(from, message(aSlot, nil, s))
}

// parts has a part of a group arrive.
func (d *decides) parts(from distrib.NodeID, x id, group uint64) error {
	head := binary.LittleEndian.AppendUint64(nil, x.Seq)
	return d.hears(from, message(aPart, make([]byte, 100), part{piece: piece{ID: x},
		Group: group, Dest: x.To, Head: uint16(len(head))}, head))
}

// summed1 is a sum of one update.
func summed1(x id) *distrib.Msg {
	return sumOf([]gathered{{piece{ID: x}, &distrib.Msg{Head: make([]byte, 8)}}},
		[][]byte{make([]byte, 8)})
}

// rest waits, and then for all that happens at that time.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func decide(t *testing.T, what string, f func(t *testing.T, d *decides)) {
	t.Helper()
	t.Run(what, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, newDecides()) })
	})
}

// TestForged: nobody speaks for another one.
func TestForged(t *testing.T) {
	decide(t, "a part", func(t *testing.T, d *decides) {
		if err := d.parts(2, id{From: 1, To: 3, Seq: 1}, 7); err == nil || len(d.sums.groups) > 0 {
			t.Errorf("node 2 gives a part of node 1: %v", err)
		}
		if err := d.parts(1, id{From: 1, To: 3, Seq: 1}, 7); err != nil {
			t.Error(err)
		}
	})
	decide(t, "an announcement", func(t *testing.T, d *decides) {
		d.mu.Lock()
		d.election.lead()
		own := d.election.own
		d.mu.Unlock()
		r := ready{ID: id{From: 1, To: 3, Seq: 1}}
		if err := d.hears(2, message(aReady, nil, r)); err == nil || len(own.owners) > 0 {
			t.Errorf("node 2 announces an update of node 1: %v", err)
		}
		if err := d.hears(1, message(aReady, nil, r)); err != nil || len(own.owners) != 1 {
			t.Errorf("its own: %v", err)
		}
		d.mu.Lock()
		d.election.resign()
		d.mu.Unlock()
	})
	decide(t, "a slot", func(t *testing.T, d *decides) {
		x := d.pushed(1)
		err := d.slots(2, slot{ID: x})
		rest(time.Millisecond)
		if err == nil || len(d.wire.of(0)) > 0 {
			t.Errorf("node 2 says when updates go: %v, and %d went", err, len(d.wire.of(0)))
		}
		if err := d.slots(4, slot{ID: x}); err != nil {
			t.Error(err)
		}
		rest(time.Millisecond)
		if len(d.wire.of(0)) != 1 {
			t.Error("it has not gone when the scheduler said")
		}
	})
	decide(t, "an older term", func(t *testing.T, d *decides) {
		d.election.claimed(2, 9)
		d.election.claimed(1, 5)
		if d.election.chief != 2 || d.election.term != 9 {
			t.Errorf("node %d schedules in term %d", d.election.chief, d.election.term)
		}
	})
	decide(t, "a sum for another", func(t *testing.T, d *decides) {
		d.pool.takes = true
		for to, wrong := range map[distrib.NodeID]bool{0: false, 3: true} {
			x := id{From: 1, To: to, Seq: 1}
			m := summed1(x)
			if err := d.hears(2, m); (err != nil) != wrong {
				t.Errorf("a sum for node %d: %v", to, err)
			}
		}
	})
}

// TestAbsurdSlots: what an update cannot have is refused, and the update goes by itself.
func TestAbsurdSlots(t *testing.T) {
	for what, s := range map[string]slot{"a drop without a bound": {Verdict: dropped},
		"a way through nobody": {Verdict: summed, Via: 9}, "a wait of a day": {Wait: int64(24 *
			time.Hour)}, "a verdict that is none": {Verdict: verdicts}} {
		decide(t, what, func(t *testing.T, d *decides) {
			s.ID = d.pushed(1)
			if err := d.slots(4, s); err == nil || len(d.wire.of(0)) != 1 || d.stats.Alone != 1 {
				t.Errorf("%v, and %d went", err, len(d.wire.of(0)))
			}
		})
	}
}

// TestNotWaitedFor: who is gone is not waited for, and who is silent not for long.
func TestNotWaitedFor(t *testing.T) {
	late := func(t *testing.T, d *decides, begun time.Time, want time.Duration) {
		t.Helper()
		rest(time.Hour)
		if all := d.wire.of(0); len(all) != 1 || all[0].at.Sub(begun) != want {
			t.Errorf("%d went, want one after %v: %+v", len(all), want, all)
		}
	}
	begun := func(d *decides) (id, time.Time) {
		return d.pushed(1), time.Now()
	}
	gone := func(d *decides, n distrib.NodeID) { receiver{d.Daemon}.Down(n, nil) }
	decide(t, "a scheduler that is gone", func(t *testing.T, d *decides) {
		_, at := begun(d)
		gone(d, 4)
		late(t, d, at, 0)
	})
	decide(t, "one that says later, and then nothing", func(t *testing.T, d *decides) {
		x, at := begun(d)
		if err := d.slots(4, slot{ID: x, Verdict: held}); err != nil {
			t.Error(err)
		}
		late(t, d, at, 300*time.Millisecond)
	})
	decide(t, "one whose word was not heard", func(t *testing.T, d *decides) {
		x, at := begun(d)
		_ = d.slots(4, slot{ID: x, Verdict: held})
		d.Send(2, &distrib.Msg{Class: distrib.Updates, Head: make([]byte, 8)})
		d.election.claimed(4, 2) // it begins anew, and knows nothing
		for range 20 {
			rest(beat)
			d.mu.Lock()
			d.election.heard = time.Now()
			d.mu.Unlock()
		}
		if all := d.wire.of(0); len(all) != 2 || all[0].at.Sub(at) != 300*time.Millisecond {
			t.Errorf("%d went: %+v", len(all), all)
		}
	})
	decide(t, "an aggregator that is gone already", func(t *testing.T, d *decides) {
		x, at := begun(d)
		gone(d, 2)
		_ = d.slots(4, slot{ID: x, Verdict: summed, Via: 2, Wait: int64(time.Second)})
		late(t, d, at, time.Second)
		if len(d.wire.of(aPart)) > 0 {
			t.Error("a part went to who is gone")
		}
	})
	decide(t, "one that goes with a part", func(t *testing.T, d *decides) {
		x, at := begun(d)
		_ = d.slots(4, slot{ID: x, Verdict: summed, Via: 2, Ends: int64(longest)})
		rest(time.Second)
		gone(d, 2)
		late(t, d, at, time.Second)
	})
	decide(t, "one that says nothing", func(t *testing.T, d *decides) {
		x, at := begun(d)
		_ = d.slots(4, slot{ID: x, Verdict: summed, Via: 2, Ends: int64(longest)})
		late(t, d, at, longest+d.o.Lost)
	})
}

// TestGroups: a group goes whole, without those that are gone, and when it has waited for long,
// with what it has, whether or not the scheduler has said who is in it.
func TestGroups(t *testing.T) {
	a, b := id{From: 1, To: 3, Seq: 1}, id{From: 2, To: 3, Seq: 1}
	says := message(aGroup, nil, group{Group: 7, To: 3, Dest: 3,
		Ends: int64(longest), Members: 2},
		[]id{a, b})
	decide(t, "whole", func(t *testing.T, d *decides) {
		_ = d.hears(4, says)
		_ = d.parts(1, a, 7)
		if len(d.wire.of(aSum)) > 0 {
			t.Error("it went with one of two")
		}
		_ = d.parts(2, b, 7)
		if len(d.wire.of(aSum)) != 1 || d.stats.Parts != 2 {
			t.Errorf("%d went, with %d parts", len(d.wire.of(aSum)), d.stats.Parts)
		}
	})
	decide(t, "one is gone", func(t *testing.T, d *decides) {
		_ = d.hears(4, says)
		_ = d.parts(1, a, 7)
		receiver{d.Daemon}.Down(2, nil)
		if len(d.wire.of(aSum)) != 1 {
			t.Error("it waits for who is gone")
		}
	})
	decide(t, "late", func(t *testing.T, d *decides) {
		_ = d.hears(4, says)
		_ = d.parts(1, a, 7)
		rest(longest + d.o.Lost)
		if len(d.wire.of(aSum)) != 1 || d.stats.Parts != 1 {
			t.Error("it waits for ever")
		}
	})
	decide(t, "nobody says who", func(t *testing.T, d *decides) {
		_ = d.parts(1, a, 7)
		_ = d.parts(2, b, 7)
		rest(d.o.Lost)
		if len(d.wire.of(aSum)) != 1 || d.stats.Parts != 2 {
			t.Errorf("%d went, with %d parts", len(d.wire.of(aSum)), d.stats.Parts)
		}
	})
	decide(t, "its owner says which were taken", func(t *testing.T, d *decides) {
		for _, taken := range []bool{false, true} {
			d.pool.takes, d.wire.sent = taken, nil
			x := id{From: 1, To: 0, Seq: 1}
			_ = d.hears(2, summed1(x))
			all := d.wire.of(anAnswer)
			if len(all) != 1 || all[0].to != 1 {
				t.Fatalf("%d answers", len(all))
			}
			o, _ := open(all[0].m)
			var says answer
			if err := o.next(&says); err != nil || says.Taken != taken || says.ID != x {
				t.Errorf("%+v %v, want %v", says, err, taken)
			}
		}
	})
}

// TestBatches: what cannot be added up has no aggregators, and what never arrived does not count
// for ever.
func TestBatches(t *testing.T) {
	decide(t, "adds", func(t *testing.T, d *decides) {
		d.o.Aggregators = 2
		s := newScheduler(d.Daemon, 1)
		r := ready{ID: id{From: 0, To: 3}, Adds: true}
		o := s.owner(r.ID)
		if b := s.batch(o, []ready{r, r}); len(b.Aggregators) != 1 {
			t.Error("nobody adds up")
		}
		no := r
		no.Adds = false
		if b := s.batch(o, []ready{r, no}); b.Aggregators != nil {
			t.Error("what cannot be added up is")
		}
	})
	decide(t, "lost", func(t *testing.T, d *decides) {
		s := newScheduler(d.Daemon, 1)
		r := ready{ID: id{From: 1, To: 3, Seq: 1}, Bytes: 1000}
		o := s.owner(r.ID)
		o.wait = []ready{r}
		s.schedule(o)
		if len(o.out) != 1 {
			t.Fatalf("%d are on their way", len(o.out))
		}
		rest(3 * d.o.Lost)
		o.wait = []ready{{ID: id{From: 2, To: 3, Seq: 1}, Bytes: 1000}}
		s.schedule(o)
		if out := slices.Collect(maps.Keys(o.out)); len(out) != 1 || out[0].From != 2 {
			t.Errorf("%v are on their way", out)
		}
	})
}
