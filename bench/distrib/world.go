package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
)

// scheme is a way to keep workers in step.
type scheme struct {
	name string
	// join makes a node's synchronizer, and what is to be closed after it.
	join func(n distrib.Transport, v distrib.View) (distrib.Synchronizer, func() error, error)
}

// world is workers on a simulated network.
type world struct {
	nodes int
	net   memnet.Options
}

// outcome is what a run took.
type outcome struct {
	took   time.Duration
	bytes  int64 // that left nodes
	totals *workload.Totals
	sent   map[int]int64 // of bytes, when the last worker reported an epoch
	start  time.Time
}

// at is when the last worker had reported an epoch. Of one that not all have, nothing is known.
func (o *outcome) at(epoch, workers int) (workload.Progress, time.Duration) {
	p, ok := o.totals.Epoch(epoch, workers)
	if !ok {
		return workload.Progress{Loss: math.NaN()}, 0
	}
	return p, p.At.Sub(o.start)
}

// job is a worker's part.
type job func(ctx context.Context, s distrib.Synchronizer, w workload.Worker) error

// run runs a job on every node, in virtual time.
func (w world) run(t *testing.T, s scheme, work job) (*outcome, error) {
	var out *outcome
	var err error
	synctest.Test(t, func(t *testing.T) { out, err = w.inside(s, work) })
	return out, err
}

func (w world) inside(s scheme, work job) (*outcome, error) {
	net := memnet.NewNetwork(w.nodes, w.net)
	out := &outcome{totals: &workload.Totals{}, sent: map[int]int64{}, start: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	errs := make([]error, w.nodes)
	var mu sync.Mutex
	report := func(p workload.Progress) {
		out.totals.Add(p)
		mu.Lock()
		defer mu.Unlock()
		out.sent[p.Epoch] = max(out.sent[p.Epoch], w.sent(net))
	}
	var all, ended sync.WaitGroup
	ended.Add(w.nodes)
	for i := range w.nodes {
		all.Go(func() {
			errs[i] = w.node(net, i, s, &ended, func(s distrib.Synchronizer) error {
				err := work(ctx, s, workload.Worker{Rank: i, Of: w.nodes, Report: report})
				mu.Lock()
				defer mu.Unlock()
				out.took, out.bytes = time.Since(out.start), w.sent(net)
				return err
			})
			if errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return out, errors.Join(errs...)
}

// node is one node's life.
func (w world) node(net *memnet.Network, i int, s scheme, ended *sync.WaitGroup,
	work func(distrib.Synchronizer) error) error {
	n := net.Node(distrib.NodeID(i))
	sync, end, err := s.join(n, w.view(i))
	if err != nil {
		ended.Done()
		return errors.Join(err, n.Close())
	}
	err = errors.Join(work(sync), sync.Close())
	ended.Done()
	ended.Wait() // a node that is through may be needed by others
	return errors.Join(err, end())
}

func (w world) view(self int) distrib.View {
	v := distrib.View{Self: distrib.NodeID(self)}
	for i := range w.nodes {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	return v
}

func (w world) sent(net *memnet.Network) (bytes int64) {
	for i := range w.nodes {
		sent, _ := net.Node(distrib.NodeID(i)).Stats()
		bytes += sent.Total().Bytes
	}
	return bytes
}

// slow is how workers' speeds vary: a step takes Times as long with a probability.
type slow struct {
	name  string
	share float64
	times float64
}

// stragglers are MLfabric's settings.
var stragglers = []slow{{"none", 0, 1}, {"C3 (4%, 2x)", .04, 2}, {"C1 (10%, 2x)", .10, 2},
	{"C2 (10%, 4x)", .10, 4}}

// compute is a [workload.Worker]'s: a clock's work takes d, or times as long.
func (s slow) compute(d time.Duration, worker int) func(context.Context, float64) error {
	rng := rand.New(rand.NewPCG(17, uint64(worker)))
	done, factor := 1.0, 1.0
	return func(_ context.Context, share float64) error {
		if done > 1-1e-9 {
			done, factor = 0, 1
			if rng.Float64() < s.share {
				factor = s.times
			}
		}
		done += share
		time.Sleep(time.Duration(float64(d) * factor * share))
		return nil
	}
}

// exchanged is a baseline: bulk-synchronous workers that add their changes up once a tick
// with a collective, and nothing else.
type exchanged struct {
	g       *collective.Group
	how     func(ctx context.Context, g distrib.Group, x []float32) error
	ps      []*distrib.Param
	from    []int // where each parameter begins in sum
	sum     []float32
	ready   bool // sum is all workers' of the last clock
	clock   distrib.Clock
	version distrib.Version
}

func exchange(name string,
	how func(context.Context, distrib.Group, []float32) error) scheme {
	return scheme{name, func(n distrib.Transport, v distrib.View) (distrib.Synchronizer,
		func() error, error) {
		mux, err := collective.NewMux(n, collective.Options{})
		if err != nil {
			return nil, nil, err
		}
		var members []distrib.NodeID
		for _, m := range v.Nodes {
			members = append(members, m.ID)
		}
		g, err := mux.Group(members...)
		return &exchanged{g: g, how: how}, func() error {
			return errors.Join(g.Close(), mux.Close())
		}, err
	}}
}

// pushPull is the plain parameter server: blocks on all nodes, everything, every tick.
func pushPull() scheme {
	return exchange("push-pull BSP", func(ctx context.Context, g distrib.Group, x []float32) error {
		return collective.PushPull(ctx, g, x, g.Size(), collective.Sum)
	})
}

// ring is the plain collective.
func ring() scheme {
	return exchange("ring BSP", func(ctx context.Context, g distrib.Group, x []float32) error {
		return collective.AllReduce(ctx, g, x, collective.Sum)
	})
}

// Attach takes the parameters.
func (e *exchanged) Attach(ps ...*distrib.Param) error {
	e.ps = ps
	n := 0
	for _, p := range ps {
		e.from = append(e.from, n)
		n += len(p.Data)
	}
	e.sum = make([]float32, n)
	return nil
}

// rows are the elements of a reference, of data that hold a parameter.
func rows(p *distrib.Param, ref distrib.Ref, data []float32) []float32 {
	if ref.N == 0 {
		return data[:len(p.Data)]
	}
	return data[int(ref.Row)*p.Cols : (int(ref.Row)+int(ref.N))*p.Cols]
}

// Push adds an update to what goes with the tick.
func (e *exchanged) Push(_ context.Context, ref distrib.Ref, u distrib.Update) error {
	e.fold()
	p := e.ps[ref.Param]
	u.AddTo(rows(p, ref, e.sum[e.from[ref.Param]:]), p.Cols, 1)
	return nil
}

// Pull brings all clocks before this one.
func (e *exchanged) Pull(context.Context, distrib.Ref) (distrib.Version, error) {
	e.fold()
	return e.version, nil
}

func (e *exchanged) fold() {
	if !e.ready {
		return
	}
	for i, p := range e.ps {
		distrib.Dense(e.sum[e.from[i]:][:len(p.Data)]).AddTo(p.Data, p.Cols, 1)
	}
	clear(e.sum)
	e.ready = false
	e.version++
}

// Tick exchanges.
func (e *exchanged) Tick(ctx context.Context) (distrib.Clock, error) {
	e.fold()
	err := e.how(ctx, e.g, e.sum)
	e.ready = true
	e.clock++
	return e.clock, err
}

// Close does nothing: everything has gone.
func (e *exchanged) Close() error { return nil }
