package distrib_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// schedule is a run of workers that count: in clock t, worker w adds one to the element
// that is its own and that clock's, so that whoever reads can tell what is in.
type schedule struct {
	seed     uint64
	nodes    int
	perNode  int
	clocks   int
	plan     func() distrib.Plan
	stale    int           // reads may miss that many clocks; -1: any
	pause    time.Duration // of computing, at most
	net      memnet.Options
	change   func(*distrib.Config)
	idle     int  // of a hundred clocks of a worker, in how many nothing is pushed
	pushOnce bool // one update of the whole parameter each clock, not one of the row
	late     bool // updates may stay behind in filters
	other    bool // values are not the counts
	foreign  bool // own updates may not be seen before others' are
	alike    func(workers int, v distrib.Version, data []float32)
	queued   func(peak, bound int64) // of each node; nil: nobody asks
	kind     distrib.Kind            // of the rows; nil: dense numbers
}

func (s *schedule) workers() int { return s.nodes * s.perNode }

// run plays the schedule and returns what every worker reads in the end.
func (s *schedule) run(t *testing.T) [][]float32 {
	t.Helper()
	ts := memnet.New(s.nodes, s.net)
	var nodes []distrib.Node
	for i := range s.nodes {
		nodes = append(nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	var engines []*distrib.Engine
	for i := range s.nodes {
		c := distrib.Config{Transport: ts[i], Plan: s.plan(), Workers: s.perNode, Audited: true,
			View: distrib.View{Epoch: 3, Self: distrib.NodeID(i), Nodes: nodes}}
		if s.change != nil {
			s.change(&c)
		}
		e, err := distrib.New(c)
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, e)
	}
	p := &play{schedule: s, t: t, at: make([]int, s.workers()), reading: make([]bool, s.workers()),
		end: make([][]float32, s.workers())}
	var wg sync.WaitGroup
	for w := range s.workers() {
		e := engines[w/s.perNode]
		wg.Go(func() { p.work(w, e, e.Worker(w%s.perNode)) })
	}
	wg.Wait()
	s.settle(t, engines)
	for _, tr := range ts {
		tr.Close()
	}
	return p.end
}

// settle waits for the ends of engines and checks their books.
func (s *schedule) settle(t *testing.T, engines []*distrib.Engine) {
	var pushed, received float64
	for i, e := range engines {
		<-e.Done()
		e.Close() // after what is being saved
		a := e.Audit()
		if err := a.Check(); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
		if s.kind != nil {
			exactly(t, e)
		}
		if a.Repeated+a.Foreign > 0 {
			t.Errorf("node %d dropped %d + %d messages", i, a.Repeated, a.Foreign)
		}
		for _, l := range a.Params {
			pushed += l.Sent
			received += l.Received
		}
		now, peak := e.Memory()
		bound := e.Bound()
		if peak.Outbox > bound.Outbox || peak.Queued > bound.Queued || now.Queued != 0 ||
			peak.Total() > bound.Total() {
			t.Errorf("node %d: memory %+v of %+v (now %+v)", i, peak, bound, now)
		}
		if s.queued != nil {
			s.queued(peak.Queued, bound.Queued)
		}
	}
	if pushed != received {
		t.Errorf("%v were sent and %v received", pushed, received)
	}
}

// play is a schedule that is run.
type play struct {
	*schedule
	t       *testing.T
	mu      sync.Mutex
	at      []int
	reading []bool // between Pull and Tick
	end     [][]float32
}

func (p *play) work(w int, e *distrib.Engine, s distrib.Synchronizer) {
	rng := rand.New(rand.NewPCG(p.seed, uint64(w)))
	counts := tableOf(p.kind, "counts", p.workers(), p.clocks)
	ctx := context.Background()
	if err := s.Attach(counts); err != nil {
		p.t.Error(err)
	}
	for c := range p.clocks {
		p.step(ctx, rng, w, c, s, counts)
		if p.kind != nil {
			exactly(p.t, e)
		}
	}
	// A few clocks more, so that all that was counted must be there.
	for range p.stale {
		p.check(s.Tick(ctx))
	}
	p.check(s.Pull(ctx, distrib.Ref{}))
	p.mu.Lock()
	p.end[w] = slices.Clone(valuesOf(counts))
	p.mu.Unlock()
	if err := s.Close(); err != nil {
		p.t.Error(err)
	}
}

func (p *play) check(_ any, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Error(err)
	}
}

// step is one clock: read and look, compute a while, write, end the clock.
func (p *play) step(ctx context.Context, rng *rand.Rand, w, c int, s distrib.Synchronizer,
	counts *distrib.Param) {
	v, err := p.pull(ctx, s)
	p.check(v, err)
	if p.alike != nil {
		p.alike(w, v, valuesOf(counts))
	}
	p.mu.Lock()
	p.at[w], p.reading[w] = c, true
	p.apart()
	p.mu.Unlock()
	p.look(w, c, valuesOf(counts))
	if p.pause > 0 {
		time.Sleep(time.Duration(rng.Int64N(int64(p.pause))))
	}
	ref, u := distrib.Ref{Row: int32(w), N: 1}, make(distrib.Dense, p.clocks)
	u[c] = 1
	if p.pushOnce {
		ref, u = distrib.Ref{}, make(distrib.Dense, p.workers()*p.clocks)
		u[w*p.clocks+c] = 1
	}
	if p.counts(w, c) > 0 {
		if err := s.Push(ctx, ref, ofKind(p.kind, u)); err != nil {
			p.t.Error(err)
		}
	}
	if !p.foreign && rng.IntN(3) == 0 {
		p.check(s.Pull(ctx, distrib.Ref{}))
		if got := valuesOf(counts)[w*p.clocks+c]; got != p.counts(w, c) {
			p.t.Errorf("worker %d reads its own update of clock %d as %v", w, c, got)
		}
	}
	p.mu.Lock()
	p.at[w], p.reading[w] = c+1, false
	p.mu.Unlock()
	next, err := s.Tick(ctx)
	p.check(next, err)
	if next != distrib.Clock(c+1) {
		p.t.Errorf("clock %d after %d", next, c)
	}
}

// pull reads all rows, of a kind now and then a row at a time.
func (p *play) pull(ctx context.Context, s distrib.Synchronizer) (distrib.Version, error) {
	if p.kind == nil || p.seed%2 == 0 {
		return s.Pull(ctx, distrib.Ref{})
	}
	var refs []distrib.Ref
	for row := range p.workers() {
		refs = append(refs, distrib.Ref{Row: int32(row), N: 1})
	}
	return 0, s.(distrib.Batched).PullRows(ctx, refs)
}

// counts is what a worker adds in a clock.
func (s *schedule) counts(w, c int) float32 {
	draw := rand.New(rand.NewPCG(s.seed, uint64(w)<<32|uint64(c)))
	if s.idle > 0 && draw.IntN(100) < s.idle {
		return 0
	}
	return 1
}

// apart checks that workers that have read are at most the staleness apart.
func (p *play) apart() {
	if p.stale < 0 {
		return
	}
	lo, hi := p.clocks, 0
	for w, c := range p.at {
		lo = min(lo, c)
		if p.reading[w] {
			hi = max(hi, c)
		}
	}
	if hi-lo > p.stale {
		p.t.Errorf("clocks %v with staleness %d", p.at, p.stale)
	}
}

// look checks what a worker sees: all that is older than the staleness, what is its own,
// and nothing twice.
func (p *play) look(w, c int, data []float32) {
	for q := range p.workers() {
		for t := range p.clocks {
			got, want := data[q*p.clocks+t], p.counts(q, t)
			must := !p.late && p.stale >= 0 && t <= c-p.stale-1 ||
				!p.foreign && !p.late && q == w && t < c
			if p.other && (!must || got != 0) {
				continue
			}
			if must && got != want || got != 0 && got != want {
				p.t.Errorf("worker %d in clock %d reads %v of worker %d's clock %d", w, c, got,
					q, t)
			}
		}
	}
}

// full checks that every worker's last reading has all that was counted.
func (s *schedule) full(t *testing.T, end [][]float32) {
	t.Helper()
	for w, data := range end {
		for i, v := range data {
			if v != s.counts(i/s.clocks, i%s.clocks) {
				t.Errorf("worker %d ends with %v at %d", w, v, i)
				return
			}
		}
	}
}

// plansOf are the plans that the laws must hold for, by name, with a staleness.
func plansOf(s, n int) map[string]func() distrib.Plan {
	ssp := distrib.SSP{S: s}
	return map[string]func() distrib.Plan{
		"servers": func() distrib.Plan { return distrib.Plan{Consistency: ssp} },
		"lazy": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: s, Lazy: true}}
		},
		"sums": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Down: distrib.Deltas}
		},
		"tree": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Down: distrib.Deltas, Topology: chain{n}}
		},
		"paced": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Pacer: &drip{every: 5 * time.Millisecond}}
		},
		"paced lazy": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: s, Lazy: true},
				Pacer: &drip{every: 5 * time.Millisecond}}
		},
		"async": func() distrib.Plan { return distrib.Plan{Consistency: distrib.Async{}} },
		"filter": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Up: &halves{}}
		},
		"filters": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Up: &halves{}, DownF: &halves{},
				Down: distrib.Deltas}
		},
		"all": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: ways{n, n - 1}}
		},
		"two ways": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: ways{n, 2}}
		},
		"two ways lazy": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: s, Lazy: true}, Topology: ways{n, 2}}
		},
		"ring": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: ways{n, 1}}
		},
		"drawn": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: drawn{n}}
		},
		"drawn lazy": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: s, Lazy: true}, Topology: drawn{n}}
		},
		"exponential": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: &distrib.Exponential{}}
		},
		"halton lazy": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: s, Lazy: true},
				Topology: &distrib.Halton{}}
		},
		"multicast": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: s, Lazy: true},
				Topology: &distrib.RandomMulticast{Q: 1}}
		},
		"turns": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: s, Lazy: true},
				Topology: &distrib.TurnMulticast{Q: 1}}
		},
		"bosen": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: &distrib.Shards{Block: 1},
				Pacer: &distrib.LeakyBucket{Mbps: 0.1, Queue: 100, Order: distrib.RelMag,
					Window: 4}}
		},
		"adarevision": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: &distrib.Shards{Block: 1},
				Pacer: &distrib.LeakyBucket{Mbps: 0.1, Queue: 100, Order: distrib.RelMag},
				Rule:  &distrib.AdaRevision{Alpha: 1}}
		},
		"rounded": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Up: distrib.Rounding{As: distrib.F16},
				DownF: distrib.Rounding{As: distrib.F16}}
		},
		"flow": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Down: distrib.Deltas,
				Up: distrib.DVF{Low: 0.5}, DownF: distrib.DVF{Low: 0.5},
				Topology: &distrib.Shards{Block: 1, Tree: &distrib.Trees{}}}
		},
		"async ring": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.Async{}, Topology: ways{n, 1}}
		},
	}
}

// ways is a topology in which node i sends to i+1, i+2, i+4 and so on, so many of them.
type ways struct{ n, out int }

func (w ways) Dests(dst []distrib.NodeID, self distrib.NodeID, _ distrib.Ref,
	_ distrib.Clock) []distrib.NodeID {
	for i, off := 0, 1; i < w.out && off < w.n; i++ {
		dst = append(dst, distrib.NodeID((int(self)+off)%w.n))
		if w.out >= w.n-1 {
			off++
		} else {
			off *= 2
		}
	}
	return dst
}

func (ways) Owner(distrib.Ref) (distrib.NodeID, bool) { return 0, false }

// drawn is a topology in which each node sends to another one at each clock.
type drawn struct{ n int }

func (d drawn) Dests(dst []distrib.NodeID, self distrib.NodeID, _ distrib.Ref,
	c distrib.Clock) []distrib.NodeID {
	if d.n == 1 {
		return dst
	}
	return append(dst, distrib.NodeID((int(self)+1+int(c)%(d.n-1))%d.n))
}

func (drawn) Owner(distrib.Ref) (distrib.NodeID, bool) { return 0, false }
func (drawn) Drawn() bool                              { return true }

// chain is owners whose sums go from each node to the next.
type chain struct{ n int }

func (c chain) Dests(dst []distrib.NodeID, _ distrib.NodeID, r distrib.Ref,
	_ distrib.Clock) []distrib.NodeID {
	id, _ := c.Owner(r)
	return append(dst, id)
}

func (c chain) Owner(r distrib.Ref) (distrib.NodeID, bool) {
	return distrib.NodeID(int(r.Row) / 2 % c.n), true
}

func (c chain) Children(dst []distrib.NodeID, root, self distrib.NodeID) []distrib.NodeID {
	if next := (int(self) + 1) % c.n; next != int(root) {
		dst = append(dst, distrib.NodeID(next))
	}
	return dst
}

// drip is a pacer that lets something small go every now and then.
type drip struct {
	every time.Duration
	next  time.Time
}

func (d *drip) Budget(_ distrib.NodeID, now time.Time) (int, time.Duration) {
	if now.Before(d.next) {
		return 0, d.next.Sub(now)
	}
	return 60, d.every
}

func (d *drip) Sent(_ distrib.NodeID, _ int, at time.Time) { d.next = at.Add(d.every) }

func (d *drip) Better(a, b *distrib.Entry, _ func(distrib.Ref) []float32) bool {
	return a.U.Norm() > b.U.Norm()
}

// halves is a filter that keeps every other element, a different one each time.
type halves struct{ turn int }

func (h *halves) Split(e *distrib.Entry, _ distrib.Clock,
	_ distrib.Link) (send, keep distrib.Update) {
	h.turn++
	if u, ok := e.U.(distrib.Divisible); ok && h.turn%5 > 0 {
		i := h.turn
		return u.Divide(func(float32) bool {
			i++
			return i%2 == 0
		})
	} else if _, ok := e.U.(distrib.Cell); ok {
		if h.turn%5 == 0 {
			return nil, e.U
		}
		return e.U, nil
	}
	all := distrib.AsDense(e.U)
	sent, kept := make(distrib.Dense, len(all)), make(distrib.Dense, len(all))
	for i, v := range all {
		if (i+h.turn)%2 == 0 {
			sent[i] = v
		} else {
			kept[i] = v
		}
	}
	if h.turn%5 == 0 {
		return nil, all
	}
	return sent, kept
}

// TestLaws runs random schedules of all plans: what must be seen is seen, nothing is seen
// twice, workers stay together, and nothing is lost.
func TestLaws(t *testing.T) {
	for seed := range uint64(longtest.Count(300, 100_000)) {
		rng := rand.New(rand.NewPCG(seed, 9))
		stale := rng.IntN(4)
		n := 1 + rng.IntN(5)
		plans := plansOf(stale, n)
		names := make([]string, 0, len(plans))
		for name := range plans {
			names = append(names, name)
		}
		slices.Sort(names)
		name := names[rng.IntN(len(names))]
		s := schedule{seed: seed, nodes: n, perNode: 1 + rng.IntN(2), stale: stale,
			clocks: 2 + rng.IntN(6), plan: plans[name], pushOnce: rng.IntN(2) == 0,
			pause: time.Duration(1+rng.IntN(100)) * time.Millisecond,
			net: memnet.Options{Seed: seed, Latency: time.Duration(rng.IntN(30)) * time.Millisecond,
				Jitter: time.Duration(rng.IntN(30)) * time.Millisecond}}
		s.foreign = slices.Contains([]string{"sums", "tree", "filters", "flow"}, name)
		s.other = name == "adarevision"
		s.foreign = s.foreign || s.other
		s.late = strings.HasPrefix(name, "filter")
		if strings.HasPrefix(name, "async") {
			s.stale = -1
		}
		ordered, demand := rng.IntN(3) == 0, rng.IntN(3) == 0
		s.change = func(c *distrib.Config) {
			c.Ordered, c.OnDemand = ordered && s.stale >= 0, demand && name == "servers"
			c.Message = 64
		}
		title := fmt.Sprintf("%d %s s=%d %dx%d ordered=%v demand=%v", seed, name, stale, s.nodes,
			s.perNode, ordered, demand)
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if end := s.run(t); s.stale >= 0 && !s.late && !s.other {
					s.full(t, end)
				}
			})
		})
		if t.Failed() {
			return
		}
	}
}

// TestGraphsGoOn: where updates go by fixed ways from node to node nobody waits for ever, with
// clocks in which nothing is pushed.
func TestGraphsGoOn(t *testing.T) {
	for seed := range uint64(longtest.Count(300, 100_000)) {
		rng := rand.New(rand.NewPCG(seed, 21))
		s := schedule{seed: seed, nodes: 2 + rng.IntN(8), perNode: 1, stale: rng.IntN(6),
			clocks: 3 + rng.IntN(12), idle: []int{0, 30, 90, 100}[rng.IntN(4)],
			pushOnce: rng.IntN(2) == 0,
			pause:    time.Duration(1+rng.IntN(100)) * time.Millisecond,
			net: memnet.Options{Seed: seed, Latency: time.Duration(rng.IntN(30)) * time.Millisecond,
				Jitter: time.Duration(rng.IntN(30)) * time.Millisecond}}
		p := distrib.Plan{Consistency: distrib.SSP{S: s.stale, Lazy: rng.IntN(3) > 0}}
		which := rng.IntN(4)
		s.plan = func() distrib.Plan {
			p.Topology = []distrib.Topology{&distrib.Exponential{}, &distrib.Halton{},
				ways{s.nodes, 1}, ways{s.nodes, 2}}[which]
			return p
		}
		s.change = func(c *distrib.Config) { c.Message = 64 }
		title := fmt.Sprintf("%d %d %+v n=%d idle=%d", seed, which, p.Consistency, s.nodes,
			s.idle)
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { s.full(t, s.run(t)) })
		})
		if t.Failed() {
			return
		}
	}
}

// TestJumpsWakeEverybody: who waits for a clock is answered when the least clock jumps
// past it, as it does when the slowest worker ends.
func TestJumpsWakeEverybody(t *testing.T) {
	for _, demand := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			engines, net := cluster(t, 3, memnet.Options{Latency: time.Millisecond},
				func() distrib.Plan { return distrib.Plan{Consistency: distrib.SSP{S: 2}} },
				func(c *distrib.Config) { c.OnDemand = demand })
			each(engines, func(w int, s distrib.Synchronizer) {
				ctx, check := context.Background(), must(t)
				p := zeros("w", 3, 2)
				check(nil, s.Attach(p))
				for c := range 4 {
					if w == 2 && c == 1 {
						time.Sleep(time.Second)
						break
					}
					u := distrib.Dense{1, 1}
					check(nil, s.Push(ctx, distrib.Ref{Row: int32(w), N: 1}, u))
					check(s.Tick(ctx))
				}
				begun := time.Now()
				check(s.Pull(ctx, distrib.Ref{}))
				late := time.Since(begun)
				if w < 2 && (late < time.Second || late > 2*time.Second) {
					t.Errorf("worker %d is woken after %v", w, late)
				}
				if w < 2 && p.Data[4] != 1 {
					t.Errorf("worker %d reads %v", w, p.Data)
				}
				check(nil, s.Close())
			})
			finish(engines, net)
		})
	}
}
