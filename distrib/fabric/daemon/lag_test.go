package daemon

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric"
)

// near has a replica of each node's rows, and so many.
func (d *decides) near(replicas, bound int) {
	d.ring.count, d.o.Bound = replicas, fabric.Bound{Updates: bound}
}

// comes has an update of a node for this one arrive.
func (d *decides) comes(from distrib.NodeID, seq uint64) {
	receiver{d.Daemon}.Receive(from, &distrib.Msg{Class: distrib.Updates,
		Head: binary.LittleEndian.AppendUint64(nil, seq), Body: [][]byte{make([]byte, 100)}})
}

// gone has a node be gone.
func (d *decides) gone(n distrib.NodeID) { receiver{d.Daemon}.Down(n, nil) }

// has says that a node has an update in its replica.
func (d *decides) has(node distrib.NodeID, x id) error {
	return d.hears(node, message(aKept, nil, kept{x}))
}

// TestOwnerWaits: an owner folds no more in than its replica may lack, in order, and asks for what
// it lacks; it waits for nobody who is gone.
func TestOwnerWaits(t *testing.T) {
	three := func(d *decides) {
		d.near(1, 2)
		d.comes(1, 1)
		d.comes(2, 1)
		d.comes(1, 2)
		d.hears(4, message(aGroup, nil)) // which changes nothing
	}
	folded := func(t *testing.T, d *decides, want distrib.Version) {
		t.Helper()
		if n := d.pool.Folded(nil); n != want {
			t.Errorf("%d are folded in, want %d", n, want)
		}
	}
	first := id{From: 1, To: 0, Seq: 1}
	decide(t, "until the replica has more", func(t *testing.T, d *decides) {
		three(d)
		folded(t, d, 2)
		if n := len(d.wire.of(anUrge)); n != 2 || d.stats.Waited != 1 {
			t.Errorf("%d nodes are asked, want 2", n)
		}
		if err := d.has(2, first); err == nil {
			t.Error("node 2 has no replica")
		}
		folded(t, d, 2)
		if err := d.has(4, first); err != nil {
			t.Error(err)
		}
		folded(t, d, 3)
		if d.stats.Lacked != 2 {
			t.Errorf("it lacked %d, want 2", d.stats.Lacked)
		}
	})
	decide(t, "in order", func(t *testing.T, d *decides) {
		three(d)
		d.comes(1, 3)
		_ = d.has(4, first)
		folded(t, d, 3)
		_ = d.has(4, id{From: 2, To: 0, Seq: 1})
		folded(t, d, 4)
		if n := len(d.wire.of(anUrge)); n < 3 {
			t.Errorf("nobody is asked for what is lacking now: %d", n)
		}
	})
	decide(t, "its sender is gone", func(t *testing.T, d *decides) {
		three(d)
		d.gone(2)
		folded(t, d, 3)
	})
	decide(t, "the replica is gone", func(t *testing.T, d *decides) {
		three(d)
		for seq := uint64(3); seq < 9; seq++ {
			d.comes(1, seq)
		}
		d.gone(4)
		folded(t, d, 9)
		d.comes(1, 9)
		folded(t, d, 10)
	})
	decide(t, "it has come before", func(t *testing.T, d *decides) {
		d.near(1, 2)
		for range 3 {
			d.comes(1, 1)
		}
		d.comes(2, 1)
		folded(t, d, 2)
		if n := len(d.wire.of(aFate)); n != 2 || len(d.lag.lack) != 2 {
			t.Errorf("%d fates, %d are lacking, want 2", n, len(d.lag.lack))
		}
	})
	decide(t, "a sum of too many", func(t *testing.T, d *decides) {
		d.near(1, 1)
		d.pool.takes = true
		parts := []gathered{{piece{ID: first}, &distrib.Msg{Head: make([]byte, 8)}},
			{piece{ID: id{From: 2, To: 0, Seq: 1}}, &distrib.Msg{Head: make([]byte, 8)}}}
		if err := d.hears(3, sumOf(parts, [][]byte{make([]byte, 8)})); err != nil {
			t.Error(err)
		}
		if len(d.lag.lack)+len(d.lag.held) > 0 || len(d.wire.of(anAnswer)) != 2 {
			t.Errorf("%d are lacking, %d wait", len(d.lag.lack), len(d.lag.held))
		}
	})
}

// TestCopyGoes: a copy goes once its owner has folded the update in, when the scheduler says; at
// once if there is none, another one, or its owner asks; and again if who had it is gone or silent.
func TestCopyGoes(t *testing.T) {
	folded := func(d *decides, x id) { _ = d.hears(3, message(aFate, nil, fate{x, true})) }
	went := func(t *testing.T, d *decides, want ...distrib.NodeID) {
		t.Helper()
		rest(0)
		all := d.wire.of(aCopy)
		for i, p := range all {
			if i < len(want) && p.to != want[i] {
				t.Errorf("a copy went to node %d, want %v", p.to, want)
			}
		}
		if len(all) != len(want) {
			t.Errorf("%d copies went, want %d", len(all), len(want))
		}
	}
	begin := func(d *decides) id {
		d.near(2, 10)
		x := d.pushed(1)
		_ = d.slots(4, slot{ID: x})
		rest(0)
		return x
	}
	decide(t, "when it is time", func(t *testing.T, d *decides) {
		x := begin(d)
		_ = d.slots(4, slot{ID: x, Verdict: copyDirect, Via: 2, Wait: int64(time.Second)})
		rest(2 * time.Second)
		went(t, d)
		if err := d.hears(2, message(aFate, nil, fate{x, true})); err == nil {
			t.Error("node 2 says what became of an update for node 3")
		}
		went(t, d)
		folded(d, x)
		went(t, d, 2)
		_ = d.has(2, x) // which is not the last
		if s := d.spares.byID[x]; s == nil || !s.copied {
			t.Error("it is not kept, though not all have it")
		}
		d.stats.Copied--
		_ = d.has(1, x)
		if len(d.spares.byID) != 0 || d.stats.Spared != 0 || d.stats.Copied != 1 {
			t.Errorf("it is kept still: %+v", d.stats)
		}
	})
	decide(t, "not yet", func(t *testing.T, d *decides) {
		x := begin(d)
		folded(d, x)
		went(t, d)
		_ = d.slots(4, slot{ID: x, Verdict: copyDirect, Via: 2, Wait: int64(time.Second)})
		went(t, d)
		rest(time.Second)
		went(t, d, 2)
	})
	decide(t, "discarded", func(t *testing.T, d *decides) {
		x := begin(d)
		_ = d.hears(3, message(aFate, nil, fate{x, false}))
		d.gone(4)
		went(t, d)
		if len(d.spares.byID) > 0 {
			t.Error("it is kept")
		}
	})
	decide(t, "its owner asks", func(t *testing.T, d *decides) {
		x := begin(d)
		folded(d, x)
		_ = d.hears(1, message(anUrge, nil))
		went(t, d)
		_ = d.hears(3, message(anUrge, nil))
		went(t, d, 2)
	})
	decide(t, "another scheduler", func(t *testing.T, d *decides) {
		folded(d, begin(d))
		d.election.claimed(1, 7)
		went(t, d, 2)
	})
	decide(t, "no scheduler", func(t *testing.T, d *decides) {
		x := begin(d)
		d.gone(4)
		went(t, d)
		folded(d, x)
		went(t, d, 2)
	})
	decide(t, "the replica is gone", func(t *testing.T, d *decides) {
		folded(d, begin(d))
		_ = d.hears(3, message(anUrge, nil))
		d.gone(2)
		went(t, d, 2, 1)
	})
	decide(t, "who adds it up is silent", func(t *testing.T, d *decides) {
		x := begin(d)
		folded(d, x)
		_ = d.slots(4, slot{ID: x, Verdict: copySummed, Via: 1, Ends: int64(time.Second)})
		went(t, d)
		rest(time.Second + d.o.Lost)
		went(t, d, 2)
		if len(d.wire.of(aPart)) != 1 {
			t.Error("it was not to be added up")
		}
	})
	decide(t, "who adds it up is gone, or has no room", func(t *testing.T, d *decides) {
		x := begin(d)
		folded(d, x)
		_ = d.slots(4, slot{ID: x, Verdict: copySummed, Via: 1, Ends: int64(time.Second)})
		_ = d.hears(1, message(anAnswer, nil, answer{x, false}))
		went(t, d, 2)
		d.gone(1)
		went(t, d, 2, 2)
	})
	decide(t, "an absurd slot", func(t *testing.T, d *decides) {
		x := begin(d)
		folded(d, x)
		if err := d.slots(4, slot{ID: x, Verdict: copyDirect, Via: 4}); err == nil {
			t.Error("node 4 has no replica of node 3")
		}
		went(t, d, 2)
	})
	decide(t, "no room", func(t *testing.T, d *decides) {
		d.o.Copies = 150
		x := begin(d)
		folded(d, x)
		y := d.pushed(2)
		if went(t, d, 2); len(d.wire.of(0)) != 1 || d.spares.byID[y] != nil {
			t.Error("the next goes where there is no room to keep it")
		}
		_ = d.has(1, x)
		rest(0)
		if d.spares.byID[y] == nil || len(d.wire.of(aReady)) != 2 {
			t.Error("it waits though there is room")
		}
	})
	decide(t, "dropped", func(t *testing.T, d *decides) {
		d.pool.delay = 3
		d.near(1, 10)
		x := d.pushed(1)
		_ = d.slots(4, slot{ID: x, Verdict: dropped})
		if len(d.spares.byID) > 0 {
			t.Error("a copy is kept of what was discarded")
		}
	})
}

// TestReplicaTakes: a replica has every update once, hands it on, and the last one says so.
func TestReplicaTakes(t *testing.T) {
	says := func(x id, floor uint64) *distrib.Msg {
		head := binary.LittleEndian.AppendUint64(nil, x.Seq)
		return message(aCopy, make([]byte, 100), copied{piece{ID: x, Floor: floor}, 8}, head)
	}
	x := id{From: 2, To: 1, Seq: 3} // node 0 has the first replica of node 1, and 4 the second
	decide(t, "once", func(t *testing.T, d *decides) {
		d.near(1, 10)
		for range 2 {
			if err := d.hears(2, says(x, 2)); err != nil {
				t.Error(err)
			}
		}
		if all := d.wire.of(aKept); d.pool.kept != 1 || len(all) != 6 {
			t.Errorf("%d were added, %d were told, want the owner, the sender and the scheduler",
				d.pool.kept, len(all))
		}
		if n := d.shelf.of(x); n.upTo != 1 || !n.has(3) || n.has(2) {
			t.Errorf("it has %+v", n)
		}
	})
	decide(t, "handed on", func(t *testing.T, d *decides) {
		d.near(2, 10)
		_ = d.hears(2, says(x, 2))
		if all := d.wire.of(aCopy); len(all) != 1 || all[0].to != 4 || len(d.wire.of(aKept)) > 0 {
			t.Errorf("%d went on", len(all))
		}
	})
	decide(t, "forged", func(t *testing.T, d *decides) {
		d.near(1, 10)
		if err := d.hears(3, says(x, 2)); err == nil || d.pool.kept > 0 {
			t.Errorf("a copy of another node: %v", err)
		}
		if err := d.hears(2, says(id{From: 2, To: 3, Seq: 1}, 1)); err == nil || d.pool.kept > 0 {
			t.Errorf("a copy for a replica that is not here: %v", err)
		}
	})
	decide(t, "a sum, whole or not at all", func(t *testing.T, d *decides) {
		d.near(1, 10)
		_ = d.hears(2, says(x, 2))
		y := id{From: 3, To: 1, Seq: 1}
		sum := func(all ...id) *distrib.Msg {
			var parts []gathered
			for _, x := range all {
				parts = append(parts, gathered{piece{ID: x}, &distrib.Msg{Head: make([]byte, 8)}})
			}
			return sumOf(parts, [][]byte{make([]byte, 8)})
		}
		_ = d.hears(3, sum(x, y))
		if len(d.wire.of(anAnswer)) != 2 || d.pool.kept != 1 {
			t.Errorf("a sum with what is there: %d were told", len(d.wire.of(anAnswer)))
		}
		_ = d.hears(3, sum(y))
		if d.pool.kept != 2 {
			t.Error("a sum of what is new is not added")
		}
	})
}

// TestRoom: what an aggregator has no room for goes back at once, and its memory is counted.
func TestRoom(t *testing.T) {
	decide(t, "parts", func(t *testing.T, d *decides) {
		d.o.Parts = 250
		for i := distrib.NodeID(1); i < 4; i++ {
			_ = d.parts(i, id{From: i, To: 3, Seq: 1}, 7)
		}
		if d.Stats().Full != 1 || d.Stats().Held != 216 || len(d.wire.of(anAnswer)) != 1 {
			t.Errorf("%+v", d.Stats())
		}
		rest(d.o.Lost) // the sum has no room
		if d.Stats().Full != 3 || d.Stats().Held != 0 || len(d.wire.of(anAnswer)) != 3 {
			t.Errorf("%+v", d.Stats())
		}
	})
	decide(t, "a sum", func(t *testing.T, d *decides) {
		d.o.Parts = 600
		for i := distrib.NodeID(1); i < 3; i++ {
			_ = d.parts(i, id{From: i, To: 3, Seq: 1}, 7)
		}
		rest(d.o.Lost)
		sums := d.wire.of(aSum)
		if len(sums) != 1 || d.Stats().Held != size(sums[0].m) || d.Stats().Most <= d.Stats().Held {
			t.Fatalf("%d sums: %+v", len(sums), d.Stats())
		}
		sums[0].m.Done(nil)
		if d.Stats().Held != 0 {
			t.Errorf("%d bytes are held for ever", d.Stats().Held)
		}
	})
}
