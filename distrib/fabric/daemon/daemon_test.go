package daemon_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric/daemon"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job is workers that push to one owner through daemons: nodes 0 to 2 are spare, and schedule and
// add up; then there are the workers, and the last node is the owner.
type job struct {
	workers, clocks int
	delay           distrib.Version
	consistency     distrib.Consistency
	rule            distrib.Rule
	options         daemon.Options
	bps             float64
	pause           time.Duration // of computing, at most
	seed            uint64
	happens         func(n *memnet.Network) // beside the job

	net     *memnet.Network
	daemons []*daemon.Daemon
	engines []*distrib.Engine
	logged  []string
	mu      sync.Mutex
}

const spare = 3

func (j *job) nodes() int { return spare + j.workers + 1 }

// start makes nodes.
func (j *job) start(t *testing.T) {
	t.Helper()
	j.net = memnet.NewNetwork(j.nodes(), memnet.Options{Latency: time.Millisecond, Bps: j.bps,
		Seed: j.seed})
	view := distrib.View{Epoch: 4}
	for i := range j.nodes() {
		n := distrib.Node{ID: distrib.NodeID(i), Roles: []string{"spare"}}
		switch {
		case i == j.nodes()-1:
			n.Roles = []string{distrib.RoleServer}
		case i >= spare:
			n.Roles = []string{distrib.RoleWorker}
		}
		view.Nodes = append(view.Nodes, n)
		j.options.Nodes = append(j.options.Nodes, n.ID)
	}
	j.options.Log = func(s string) {
		j.mu.Lock()
		j.logged = append(j.logged, s)
		j.mu.Unlock()
	}
	if j.consistency == nil {
		j.consistency = distrib.Async{Delay: j.delay}
	}
	for i := range j.nodes() {
		view.Self = distrib.NodeID(i)
		d := daemon.Wrap(j.net.Node(view.Self), j.options)
		e, err := distrib.New(distrib.Config{Transport: d, View: view, Audited: true,
			Message: math.MaxInt32, Plan: distrib.Plan{Consistency: j.consistency, Rule: j.rule}})
		if err != nil {
			t.Fatal(err)
		}
		j.daemons, j.engines = append(j.daemons, d), append(j.engines, e)
	}
}

// param has an element for each worker and clock.
func (j *job) param() *distrib.Param {
	return &distrib.Param{Name: "w", Rows: j.workers, Cols: j.clocks,
		Data: make([]float32, j.workers*j.clocks)}
}

// run returns what the first worker reads in the end, and the books of all nodes.
func (j *job) run(t *testing.T) (end []float32, books []distrib.Audit) {
	t.Helper()
	j.start(t)
	var wg sync.WaitGroup
	for i, e := range j.engines {
		if i < spare || i == j.nodes()-1 {
			if err := e.Attach(j.param()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		wg.Go(func() {
			x, err := j.work(i-spare, e.Worker(0))
			if err != nil {
				t.Errorf("worker %d: %v", i-spare, err)
			}
			if i == spare {
				end = x
			}
		})
	}
	if j.happens != nil {
		wg.Go(func() { j.happens(j.net) })
	}
	wg.Wait()
	for i := spare; i < j.nodes(); i++ {
		<-j.engines[i].Done()
	}
	for i, e := range j.engines {
		a := e.Audit()
		if err := a.Check(); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
		if i >= spare && a.Foreign > 0 {
			t.Errorf("node %d dropped %d messages", i, a.Foreign)
		}
		books = append(books, a)
		e.Close()
	}
	for _, d := range j.daemons {
		d.Close()
	}
	return end, books
}

// work adds one to the element of the worker and the clock in each clock.
func (j *job) work(w int, s distrib.Synchronizer) ([]float32, error) {
	rng, ctx := rand.New(rand.NewPCG(j.seed, uint64(w))), context.Background()
	p := j.param()
	err := s.Attach(p)
	for c := range j.clocks {
		if err == nil {
			_, err = s.Pull(ctx, distrib.Ref{})
		}
		time.Sleep(time.Duration(rng.Int64N(int64(j.pause) + 1)))
		u := make(distrib.Dense, len(p.Data))
		u[w*j.clocks+c] = 1
		if err == nil {
			err = s.Push(ctx, distrib.Ref{}, u)
		}
		if err == nil {
			_, err = s.Tick(ctx)
		}
	}
	time.Sleep(time.Minute) // until everything is there
	if err == nil {
		_, err = s.Tick(ctx)
	}
	time.Sleep(time.Minute)
	if err == nil {
		_, err = s.Pull(ctx, distrib.Ref{})
	}
	return p.Data, errors.Join(err, s.Close())
}

// sum adds up what daemons have counted.
func (j *job) sum() (all daemon.Stats) {
	for _, d := range j.daemons {
		s := d.Stats()
		all.Scheduled += s.Scheduled
		all.Alone += s.Alone
		all.Dropped += s.Dropped
		all.Summed += s.Summed
		all.Again += s.Again
		all.Sums += s.Sums
		all.Parts += s.Parts
		all.Batches += s.Batches
		all.Refused += s.Refused
	}
	return all
}

// check compares what is there in the end with what was pushed: each update once, but for those
// that were discarded and counted.
func (j *job) check(t *testing.T, end []float32, books []distrib.Audit) (lost int64) {
	t.Helper()
	for i, v := range end {
		switch v {
		case 0:
			lost++
		case 1:
		default:
			t.Errorf("worker %d's update of clock %d is there %v times", i/j.clocks, i%j.clocks, v)
		}
	}
	var stale, folded int64
	for _, a := range books {
		stale += a.Stale
		for _, n := range a.Delays {
			folded += n
		}
	}
	if lost != stale {
		t.Errorf("%d updates are not there, %d were discarded", lost, stale)
	}
	if n := int64(len(end)); j.delay > 0 && folded+stale != n {
		t.Errorf("%d were folded in and %d discarded, of %d", folded, stale, n)
	}
	return lost
}

// TestTraces: whatever comes at what time over what links, no update is folded in twice, none is
// lost but those that were discarded, no delay is beyond the bound, and the job ends.
func TestTraces(t *testing.T) {
	for seed := range uint64(longtest.Count(12, 1000)) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			j := &job{seed: seed, workers: 1 + rng.IntN(8), clocks: 3 + rng.IntN(10),
				delay: distrib.Version(rng.IntN(12)), bps: float64(rng.IntN(4)) * 1e5,
				pause:   time.Duration(rng.IntN(300)) * time.Millisecond,
				options: daemon.Options{Aggregators: rng.IntN(4), Bps: 1e6}}
			j.consistency = []distrib.Consistency{nil, nil, distrib.SSP{S: 2},
				distrib.BSP{}}[rng.IntN(4)]
			if j.consistency != nil {
				j.delay = 0
			}
			j.happens = func(n *memnet.Network) {
				time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
				switch gone := distrib.NodeID(rng.IntN(spare)); rng.IntN(4) {
				case 0:
					n.Kill(gone)
				case 1:
					n.Pause(gone, time.Duration(rng.IntN(5000))*time.Millisecond)
				case 2:
					n.SetRate(distrib.NodeID(rng.IntN(j.nodes())), 3e4, 5e4)
				}
			}
			end, books := j.run(t)
			j.check(t, end, books)
			if s := j.sum(); s.Refused > 0 {
				t.Errorf("%d messages were refused: %v", s.Refused, j.logged)
			}
			if t.Failed() {
				t.Fatalf("seed %d: %+v", seed, j.sum())
			}
		})
	}
}
