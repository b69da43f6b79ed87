package daemon_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric/daemon"
	"github.com/gomem/gomem/distrib/memnet"
)

// pool takes pushes that are numbers: the head is one, and a sum's body are those of its parts.
type pool struct {
	mu   sync.Mutex
	last map[distrib.NodeID]uint64
	took map[distrib.NodeID][]time.Time // when a node's pushes came
	sums int
	bad  []string
}

func newPool() *pool {
	return &pool{last: map[distrib.NodeID]uint64{}, took: map[distrib.NodeID][]time.Time{}}
}

func (p *pool) Push(m *distrib.Msg) (distrib.Push, bool) {
	if len(m.Head) != 8 {
		return distrib.Push{}, false
	}
	return distrib.Push{Seq: binary.LittleEndian.Uint64(m.Head), Adds: true}, true
}

// Receive takes a push if it is the next, as an engine does.
func (p *pool) Receive(from distrib.NodeID, m *distrib.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x, ok := p.Push(m); ok {
		p.take(from, x.Seq)
	}
}

func (p *pool) take(from distrib.NodeID, seq uint64) {
	switch p.last[from] + 1 {
	case seq:
		p.last[from] = seq
		p.took[from] = append(p.took[from], time.Now())
	default:
		if seq > p.last[from] {
			p.bad = append(p.bad, fmt.Sprintf("%d of node %d after %d", seq, from, p.last[from]))
		}
	}
}

func (p *pool) Down(distrib.NodeID, error) {}

func (p *pool) Sum(ms []*distrib.Msg, _ distrib.Version) ([][]byte, error) {
	var b []byte
	for _, m := range ms {
		b = append(b, m.Head...)
	}
	return [][]byte{b}, nil
}

func (p *pool) TakeSum(parts []distrib.Part, body [][]byte) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Concat(body...)
	for i, x := range parts {
		if len(all) != 8*len(parts) || !slices.Equal(all[8*i:8*i+8], x.Head) {
			return false, errors.New("a sum of others")
		}
		if binary.LittleEndian.Uint64(x.Head) != p.last[x.From]+1 {
			return false, nil
		}
	}
	for _, x := range parts {
		p.take(x.From, binary.LittleEndian.Uint64(x.Head))
	}
	p.sums++
	return true, nil
}

func (p *pool) Norm(*distrib.Msg) float64           { return 1 }
func (p *pool) Keep(distrib.NodeID, [][]byte) error { return nil }
func (p *pool) Folded(*distrib.Msg) distrib.Version { return 0 }

// ring is nodes with pools and daemons, the last of which all push to.
type ring struct {
	net     *memnet.Network
	daemons []*daemon.Daemon
	pools   []*pool
	mu      sync.Mutex
	logged  []string
	sent    []uint64
	errs    []error
}

func newRing(n int, o daemon.Options, elect func(i int) daemon.Elector) *ring {
	r := &ring{net: memnet.NewNetwork(n, memnet.Options{Latency: time.Millisecond, Bps: 8e6}),
		sent: make([]uint64, n)}
	o.Log = func(s string) {
		r.mu.Lock()
		r.logged = append(r.logged, s)
		r.mu.Unlock()
	}
	for i := range n {
		o.Nodes = append(o.Nodes, distrib.NodeID(i))
	}
	for i := range n {
		if elect != nil {
			o.Elect = elect(i)
		}
		d, p := daemon.Wrap(r.net.Node(distrib.NodeID(i)), o), newPool()
		d.Serve(p)
		r.daemons, r.pools = append(r.daemons, d), append(r.pools, p)
	}
	time.Sleep(10 * time.Millisecond)
	return r
}

// push sends the next number of a node, of so many bytes.
func (r *ring) push(from int, bytes int) {
	r.sent[from]++
	r.daemons[from].Send(distrib.NodeID(len(r.daemons)-1), &distrib.Msg{Class: distrib.Updates,
		Head: binary.LittleEndian.AppendUint64(nil, r.sent[from]),
		Body: [][]byte{make([]byte, bytes)},
		Done: func(err error) {
			r.mu.Lock()
			r.errs = append(r.errs, err)
			r.mu.Unlock()
		}})
}

// end checks that all came once, but of nodes that are gone.
func (r *ring) end(t *testing.T, gone ...int) {
	t.Helper()
	time.Sleep(10 * time.Second)
	owner := r.pools[len(r.pools)-1]
	owner.mu.Lock()
	for i, n := range r.sent {
		if got := owner.last[distrib.NodeID(i)]; got != n && !slices.Contains(gone, i) {
			t.Errorf("%d of %d of node %d came", got, n, i)
		}
	}
	if owner.bad != nil {
		t.Error(owner.bad)
	}
	owner.mu.Unlock()
	for _, d := range r.daemons {
		d.Close()
	}
}

// TestSilentScheduler: a scheduler that stops costs the first update 300 ms, and those that come
// before there is another one nothing.
func TestSilentScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(4, daemon.Options{}, nil)
		r.push(2, 100)
		time.Sleep(time.Second)
		r.net.Pause(0, 5*time.Second)
		for i := range 3 {
			begun := time.Now()
			r.push(2, 100)
			time.Sleep(time.Second)
			r.pools[3].mu.Lock()
			times := r.pools[3].took[2]
			r.pools[3].mu.Unlock()
			most := 4 * time.Millisecond
			if i == 0 {
				most += 300 * time.Millisecond
			}
			if took := times[len(times)-1].Sub(begun); took > most || took < 0 {
				t.Errorf("an update took %v without a scheduler", took)
			}
		}
		time.Sleep(5 * time.Second)
		r.push(2, 100)
		time.Sleep(time.Second)
		if s := r.daemons[2].Stats(); s.Alone != 2 || s.Scheduled != 3 {
			t.Errorf("%+v, want 2 that went alone, and 3 when a scheduler said", s)
		}
		r.end(t)
	})
}

// TestAnotherSchedules: within two seconds of the end of a scheduler, or of its silence, another
// one schedules, also where those who elect do not know yet; and one that is back does not.
func TestAnotherSchedules(t *testing.T) {
	for _, first := range []bool{true, false} { // who is there schedules, or who is elected
		for name, harm := range map[string]func(*ring){
			"kill": func(r *ring) { r.net.Kill(0) },
			"stop": func(r *ring) { r.net.Pause(0, 20*time.Second) }} {
			synctest.Test(t, func(t *testing.T) {
				v := &vote{after: time.Hour}
				elect := func(i int) daemon.Elector {
					if i == 0 {
						return v
					}
					return never{}
				}
				if first {
					elect = nil
				}
				r := newRing(5, daemon.Options{}, elect)
				for range 10 {
					r.push(2, 100)
					time.Sleep(100 * time.Millisecond)
				}
				if r.daemons[0].Stats().Batches == 0 {
					t.Fatal("node 0 does not schedule")
				}
				harm(r)
				begun, others := time.Now(), int64(0)
				for others == 0 && time.Since(begun) < 10*time.Second {
					r.push(2, 100)
					time.Sleep(50 * time.Millisecond)
					for _, d := range r.daemons[1:] {
						others += d.Stats().Batches
					}
				}
				took := time.Since(begun)
				t.Logf("%s, %v: another one has scheduled after %v", name, first, took)
				if took > 2*time.Second {
					t.Errorf("%s: another one has scheduled after %v", name, took)
				}
				time.Sleep(30 * time.Second)
				before := r.daemons[0].Stats().Batches
				for range 10 {
					r.push(2, 100)
					time.Sleep(100 * time.Millisecond)
				}
				if n := r.daemons[0].Stats().Batches; n != before {
					t.Errorf("%s: two schedule: %d batches", name, n-before)
				}
				r.end(t, 0)
			})
		}
	}
}

// never is an election that is not over.
type never struct{}

func (never) Lead(ctx context.Context, _ string) (context.Context, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// vote is an election: the first node that asks leads until it is deposed, and the next does after
// a while.
type vote struct {
	mu     sync.Mutex
	after  time.Duration
	leader context.CancelFunc
}

func (v *vote) of(int) daemon.Elector { return v }

func (v *vote) Lead(ctx context.Context, role string) (context.Context, error) {
	for {
		v.mu.Lock()
		if v.leader == nil && role == daemon.Role {
			term, end := context.WithCancel(ctx)
			v.leader = end
			v.mu.Unlock()
			return term, nil
		}
		v.mu.Unlock()
		select {
		case <-time.After(v.after):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (v *vote) depose() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leader()
	time.AfterFunc(v.after, func() {
		v.mu.Lock()
		v.leader = nil
		v.mu.Unlock()
	})
}

// TestElected: updates go by the schedule of whoever is elected, and directly while nobody is.
func TestElected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &vote{after: 700 * time.Millisecond}
		r := newRing(4, daemon.Options{}, v.of)
		time.Sleep(time.Second)
		for range 4 {
			r.push(2, 100)
			time.Sleep(100 * time.Millisecond)
		}
		v.depose()
		time.Sleep(10 * time.Millisecond)
		r.push(2, 100) // which nobody schedules
		time.Sleep(2 * time.Second)
		for range 5 {
			r.push(2, 100)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if s := r.daemons[2].Stats(); s.Scheduled != 9 || s.Alone != 1 {
			t.Errorf("%+v, want 9 by schedule and 1 alone", s)
		}
		r.end(t)
	})
}

// crowd has all nodes from one on push, again and again: there is something to add up.
func (r *ring) crowd(from, times int) {
	for range times {
		for i := from; i < len(r.daemons)-1; i++ {
			r.push(i, 50_000)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// TestAggregatorDies: at whatever time, all updates come once.
func TestAggregatorDies(t *testing.T) {
	for after := time.Duration(0); after < time.Second; after += 31 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			r := newRing(9, daemon.Options{Aggregators: 2, Batch: 10 * time.Millisecond}, nil)
			var wait sync.WaitGroup
			wait.Go(func() {
				time.Sleep(after)
				r.net.Kill(1)
			})
			r.crowd(2, 4)
			wait.Wait()
			r.end(t, 1)
		})
	}
}

// TestAggregatorStops: who has parts and says nothing is not waited for.
func TestAggregatorStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(9, daemon.Options{Aggregators: 2, Batch: 10 * time.Millisecond}, nil)
		r.crowd(2, 4)
		r.net.Pause(0, time.Hour)
		r.net.Pause(1, time.Hour)
		r.crowd(2, 1)
		time.Sleep(3 * time.Second)
		var s daemon.Stats
		for _, d := range r.daemons {
			x := d.Stats()
			s.Again, s.Alone, s.Summed = s.Again+x.Again, s.Alone+x.Alone, s.Summed+x.Summed
		}
		if s.Summed == 0 || s.Again+s.Alone == 0 || r.pools[8].sums == 0 {
			t.Errorf("%+v, and %d sums", s, r.pools[8].sums)
		}
		r.net.Kill(0)
		r.net.Kill(1)
		r.end(t, 0, 1)
	})
}

// TestHostile: what is damaged, or comes from who has no say in it, is refused by name, and changes
// nothing.
func TestHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(5, daemon.Options{Aggregators: 2}, nil)
		// What a daemon has sent of each kind, as it was and damaged, from another node.
		spied := spy(t)
		if len(spied) < 7 {
			t.Errorf("only %d kinds of messages were seen", len(spied))
		}
		sent := 0
		for _, m := range spied {
			for _, damage := range []func(*distrib.Msg){
				func(m *distrib.Msg) { m.Head = m.Head[1:] },
				func(m *distrib.Msg) { m.Head[0] ^= 0x40 },
				func(m *distrib.Msg) { m.Head[3] = 0xff },
				func(m *distrib.Msg) { m.Body[0][0] ^= 1 },
				func(m *distrib.Msg) { m.Body = nil },
				func(m *distrib.Msg) { m.Class ^= 1 },
			} {
				c := &distrib.Msg{Class: m.Class, Tag: m.Tag, Head: slices.Clone(m.Head),
					Body: [][]byte{slices.Concat(m.Body...)}}
				damage(c)
				r.net.Node(1).Send(3, c)
				sent++
			}
		}
		time.Sleep(time.Second)
		if s := r.daemons[3].Stats(); s.Refused != int64(sent) {
			t.Errorf("%d messages were refused, %d were damaged", s.Refused, sent)
		}
		r.mu.Lock()
		for _, line := range r.logged {
			if !strings.Contains(line, "node 1 sent what cannot be used: ") {
				t.Errorf("what was refused is called %q", line)
			}
		}
		r.mu.Unlock()
		// What is whole, but not this node's to say, or about other updates.
		before := r.daemons[3].Stats().Refused
		delete(spied, 1) // any node may be elected
		for _, m := range spied {
			r.net.Node(1).Send(3, m)
		}
		time.Sleep(time.Second)
		if s := r.daemons[3].Stats(); s.Refused-before < 4 {
			t.Errorf("%d of %d messages of others were refused", s.Refused-before, len(spied))
		}
		r.crowd(2, 3)
		r.end(t)
	})
}

// spy is a message of each kind, as daemons send them, by kind.
func spy(t *testing.T) map[byte]*distrib.Msg {
	t.Helper()
	found := map[byte]*distrib.Msg{}
	var mu sync.Mutex
	net := memnet.NewNetwork(6, memnet.Options{Latency: time.Millisecond, Bps: 8e6})
	r := &ring{net: net, sent: make([]uint64, 6)}
	var all []distrib.NodeID
	for i := range 6 {
		all = append(all, distrib.NodeID(i))
	}
	for i := range 6 {
		d := daemon.Wrap(&tapped{net.Node(distrib.NodeID(i)), &mu, found},
			daemon.Options{Nodes: all, Aggregators: 2})
		p := newPool()
		d.Serve(p)
		r.daemons, r.pools = append(r.daemons, d), append(r.pools, p)
	}
	time.Sleep(10 * time.Millisecond)
	r.crowd(1, 5)
	r.end(t)
	return found
}

// tapped notes a message of each kind of the fabric's.
type tapped struct {
	distrib.Transport
	mu    *sync.Mutex
	found map[byte]*distrib.Msg
}

func (s *tapped) Send(to distrib.NodeID, m *distrib.Msg) {
	s.mu.Lock()
	if m.Tag != 0 && len(m.Head) > 0 {
		s.found[m.Head[0]] = &distrib.Msg{Class: m.Class, Tag: m.Tag, Head: slices.Clone(m.Head),
			Body: [][]byte{slices.Concat(m.Body...)}}
	}
	s.mu.Unlock()
	s.Transport.Send(to, m)
}
