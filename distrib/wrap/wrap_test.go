package wrap_test

import (
	"bytes"
	"errors"
	"math/bits"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/wrap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type inbox struct {
	mu    sync.Mutex
	start time.Time
	got   []*distrib.Msg
	at    []time.Duration
}

func (in *inbox) Receive(_ distrib.NodeID, m *distrib.Msg) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got = append(in.got, m)
	in.at = append(in.at, time.Since(in.start))
}

func (in *inbox) Down(distrib.NodeID, error) {}

// pair is a wrapped transport to a peer with an inbox.
func pair(w distrib.Wrap) (distrib.Transport, *inbox, func()) {
	ts := memnet.New(2, memnet.Options{})
	in := &inbox{start: time.Now()}
	a, b := w(ts[0]), w(ts[1])
	b.Serve(in)
	return a, in, func() {
		a.Close()
		synctest.Wait()
		b.Close()
	}
}

func send(t distrib.Transport, c distrib.Class, tag uint64, n int, done func(error)) {
	t.Send(1, &distrib.Msg{Class: c, Tag: tag, Body: [][]byte{make([]byte, n)}, Done: done})
}

// TestLimit: bytes leave at the rate, a burst first, and control before the rest.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, in, end := pair(wrap.Limit(8e3, 500)) // 1000 bytes a second
		time.Sleep(time.Minute)
		start := time.Now()
		in.start = start
		for tag := range uint64(4) {
			send(a, distrib.Updates, tag, 500, nil)
		}
		synctest.Wait()
		send(a, distrib.Control, 9, 100, nil)
		end()
		want := []time.Duration{0, 500, 600, 1100, 1600}
		tags := []uint64{0, 1, 9, 2, 3}
		for i, m := range in.got {
			if m.Tag != tags[i] || in.at[i] != want[i]*time.Millisecond {
				t.Errorf("message %d is %d at %v, want %d at %d ms", i, m.Tag, in.at[i],
					tags[i], want[i])
			}
		}
		if len(in.got) != 5 {
			t.Errorf("%d messages, want 5", len(in.got))
		}
		var err error
		send(a, distrib.Updates, 0, 1, func(e error) { err = e })
		synctest.Wait()
		if !errors.Is(err, wrap.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m wrap.Meter
		a, _, end := pair(m.Wrap)
		send(a, distrib.Updates, 0, 100, nil)
		send(a, distrib.Updates, 0, 50, func(error) {})
		a.Send(0, &distrib.Msg{Class: distrib.Updates, Head: []byte("to itself")})
		end()
		send(a, distrib.Updates, 0, 7, nil)
		synctest.Wait()
		for _, c := range []struct {
			what       string
			have, want wrap.Count
		}{
			{"sent", m.Sent(distrib.Updates), wrap.Count{Messages: 3, Bytes: 157}},
			{"received", m.Received(distrib.Updates), wrap.Count{Messages: 2, Bytes: 150}},
			{"refused", m.Refused(distrib.Updates), wrap.Count{Messages: 1, Bytes: 7}},
			{"others", m.Sent(distrib.Control), wrap.Count{}},
		} {
			if c.have != c.want {
				t.Errorf("%s: %+v, want %+v", c.what, c.have, c.want)
			}
		}
	})
}

// TestFaults: what is drawn happens, about as often as asked for, and the same again.
func TestFaults(t *testing.T) {
	f := wrap.Faults{Seed: 5, Classes: []distrib.Class{distrib.Updates}, Drop: .1, Swallow: .1,
		Duplicate: .1, Corrupt: .1, Delay: .5, MaxDelay: time.Second}
	synctest.Test(t, func(t *testing.T) {
		one, two := accidents(t, f), accidents(t, f)
		if one != two {
			t.Errorf("%+v, and again %+v", one, two)
		}
		if one.dropped < 70 || one.dropped > 130 || one.swallowed < 60 || one.swallowed > 120 ||
			one.twice < 50 || one.twice > 110 || one.corrupt < 50 || one.corrupt > 110 {
			t.Errorf("%+v of 1000", one)
		}
		f.Classes = []distrib.Class{distrib.Control}
		if none := accidents(t, f); none != (tally{}) {
			t.Errorf("another class: %+v", none)
		}
	})
}

type tally struct{ dropped, swallowed, twice, corrupt int }

// accidents sends 1000 messages and counts what happened; those that came must be in
// order.
func accidents(t *testing.T, f wrap.Faults) tally {
	a, in, end := pair(f.Wrap)
	var mu sync.Mutex
	done := 0
	var n tally
	for tag := range uint64(1000) {
		send(a, distrib.Updates, tag, 3, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			done++
			if errors.Is(err, wrap.ErrDropped) {
				n.dropped++
			}
		})
	}
	time.Sleep(time.Hour)
	end()
	seen, last := map[uint64]bool{}, uint64(0)
	for _, m := range in.got {
		if seen[m.Tag] {
			n.twice++
			continue
		}
		if m.Tag < last {
			t.Errorf("%d comes after %d", m.Tag, last)
		}
		seen[m.Tag], last = true, m.Tag
		if !bytes.Equal(m.Body[0], make([]byte, 3)) {
			n.corrupt++
			if ones := bits.OnesCount8(m.Body[0][0]) + bits.OnesCount8(m.Body[0][1]) +
				bits.OnesCount8(m.Body[0][2]); ones != 1 {
				t.Errorf("%d bits are others, want 1", ones)
			}
		}
	}
	n.swallowed = 1000 - len(seen) - n.dropped
	if done != 1000 {
		t.Errorf("%d messages are done, want 1000", done)
	}
	return n
}
