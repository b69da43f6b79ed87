package distrib_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
)

// troupe is workers whose nodes change while they count: each adds one to its own row for
// every push that was accepted.
type troupe struct {
	t       *testing.T
	net     *memnet.Network
	plan    func() distrib.Plan
	change  func(*distrib.Config)
	seed    uint64
	extra   int // clocks to go on, so that all there is must be seen
	target  distrib.Clock
	kind    distrib.Kind // of the rows; nil: dense numbers
	engines map[distrib.NodeID]*distrib.Engine

	mu     sync.Mutex
	pushed [8]float32
	ends   int
	wg     sync.WaitGroup
}

func viewWith(epoch int64, self distrib.NodeID, ids []distrib.NodeID) distrib.View {
	v := distrib.View{Epoch: epoch, Self: self}
	for _, id := range ids {
		v.Nodes = append(v.Nodes, distrib.Node{ID: id})
	}
	return v
}

// enter makes a node and lets its worker begin.
func (tr *troupe) enter(epoch int64, id distrib.NodeID, ids []distrib.NodeID, joins bool) {
	c := distrib.Config{Transport: tr.net.Node(id), Plan: tr.plan(), Audited: true,
		View: viewWith(epoch, id, ids), Joins: joins, Message: 100}
	if tr.change != nil {
		tr.change(&c)
	}
	e, err := distrib.New(c)
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.engines[id] = e
	tr.wg.Go(func() { tr.work(id, e) })
}

func (tr *troupe) work(id distrib.NodeID, e *distrib.Engine) {
	ctx, s := context.Background(), e.Worker(0)
	p := tableOf(tr.kind, "counts", 8, 3)
	if err := s.Attach(p); err != nil {
		tr.t.Error(err)
	}
	clock, err := e.Joined(ctx)
	rng := rand.New(rand.NewPCG(tr.seed, uint64(id)))
	for err == nil && clock < tr.target {
		_, err = s.Pull(ctx, distrib.Ref{})
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		if err == nil {
			err = s.Push(ctx, distrib.Ref{Row: int32(id), N: 1},
				ofKind(tr.kind, distrib.Dense{1, 2, 3}))
		}
		if err == nil {
			tr.mu.Lock()
			tr.pushed[id]++
			tr.mu.Unlock()
			clock, err = s.Tick(ctx)
		}
	}
	for range tr.extra {
		if err == nil {
			_, err = s.Tick(ctx)
		}
	}
	if err == nil {
		_, err = s.Pull(ctx, distrib.Ref{})
	}
	if errors.Is(err, distrib.ErrLeft) {
		return
	}
	if err != nil {
		tr.t.Errorf("node %d: %v", id, err)
	}
	tr.check(id, valuesOf(p))
	if err := s.Close(); err != nil {
		tr.t.Errorf("node %d: %v", id, err)
	}
}

// check compares what a worker ends with with what all have pushed.
func (tr *troupe) check(id distrib.NodeID, data []float32) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.ends++
	for w, n := range tr.pushed {
		for c := range 3 {
			if got, want := data[3*w+c], n*float32(c+1); got != want {
				tr.t.Errorf("node %d ends with %v of node %d, want %v", id, got, w, want)
				return
			}
		}
	}
}

// reconfigure tells all nodes of the old view of another, each at a time of its own.
func (tr *troupe) reconfigure(epoch int64, old, ids []distrib.NodeID) {
	var wg sync.WaitGroup
	for i, id := range old {
		e := tr.engines[id]
		wg.Go(func() {
			time.Sleep(time.Duration((epoch*7+int64(i)*13)%23) * time.Millisecond)
			if err := e.Reconfigure(context.Background(), viewWith(epoch, id, ids)); err != nil {
				tr.t.Errorf("node %d, epoch %d: %v", id, epoch, err)
			}
		})
	}
	wg.Wait()
}

func (tr *troupe) finish() {
	tr.wg.Wait()
	for id, e := range tr.engines {
		<-e.Done()
		e.Close()
		if err := e.Audit().Check(); err != nil {
			tr.t.Errorf("node %d: %v", id, err)
		}
		if tr.kind != nil {
			exactly(tr.t, e)
		}
		tr.net.Node(id).Close()
	}
}

func ids(n ...distrib.NodeID) []distrib.NodeID { return n }

// elasticPlans are plans under which nodes may come and go.
func elasticPlans() map[string]func() distrib.Plan {
	ssp := distrib.SSP{S: 2}
	return map[string]func() distrib.Plan{
		"servers": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: &distrib.Shards{Block: 1}}
		},
		"lazy": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: 2, Lazy: true},
				Topology: &distrib.Shards{Block: 1}}
		},
		"sums": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: &distrib.Shards{Block: 1},
				Down: distrib.Deltas}
		},
		"streamed": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Down: distrib.Deltas,
				Topology: &distrib.Shards{Block: 1, Tree: &distrib.Trees{Degree: 2}}}
		},
		"all": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: &distrib.All{}}
		},
		"ring": func() distrib.Plan {
			return distrib.Plan{Consistency: ssp, Topology: &distrib.Ring{}}
		},
		"multicast": func() distrib.Plan {
			return distrib.Plan{Consistency: distrib.SSP{S: 2, Lazy: true},
				Topology: &distrib.RandomMulticast{Q: 1}}
		},
	}
}

// TestElastic: nodes join, leave and join while others work. Nothing is lost, nothing
// counts twice, whatever the plan and the delays.
func TestElastic(t *testing.T) {
	for name, plan := range elasticPlans() {
		for seed := range uint64(longtest.Count(3, 150)) {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { elastic(t, plan, nil, seed) })
			})
			if t.Failed() {
				t.Fatalf("%s, seed %d", name, seed)
			}
		}
	}
}

func elastic(t *testing.T, plan func() distrib.Plan, kind distrib.Kind, seed uint64) {
	tr := &troupe{t: t, plan: plan, seed: seed, target: 60, extra: 2, kind: kind,
		engines: map[distrib.NodeID]*distrib.Engine{},
		net: memnet.NewNetwork(5, memnet.Options{Seed: seed,
			Jitter: time.Duration(1+7*seed%40) * time.Millisecond})}
	tr.change = func(c *distrib.Config) { c.Ordered = seed%3 == 1 }
	for _, id := range ids(0, 1, 2) {
		tr.enter(1, id, ids(0, 1, 2), false)
	}
	time.Sleep(100 * time.Millisecond)
	tr.enter(2, 3, ids(0, 1, 2, 3), true)
	tr.reconfigure(2, ids(0, 1, 2), ids(0, 1, 2, 3))
	time.Sleep(70 * time.Millisecond)
	tr.reconfigure(3, ids(0, 1, 2, 3), ids(0, 2, 3))
	tr.enter(4, 4, ids(0, 2, 3, 4), true)
	tr.reconfigure(4, ids(0, 2, 3), ids(0, 2, 3, 4))
	tr.finish()
	if tr.ends != 4 {
		t.Errorf("%d workers have come to the end", tr.ends)
	}
}

// TestGoingOnWithout: after a node has died, the others go on without it where it had
// nothing of its own, with replicas that are equal; where rows died with it, they are told
// so, and nothing changes.
func TestGoingOnWithout(t *testing.T) {
	plans := elasticPlans()
	for _, name := range []string{"worker", "servers", "sums", "streamed", "all", "ring"} {
		for _, kind := range append(allKinds(), nil) {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					plan := plans[name]
					if name == "worker" {
						plan = plans["servers"]
					}
					without(t, plan, name, kind)
				})
			})
		}
	}
}

func without(t *testing.T, plan func() distrib.Plan, name string, kind distrib.Kind) {
	net := memnet.NewNetwork(3, memnet.Options{Jitter: 5 * time.Millisecond})
	view := func(epoch int64, self, n distrib.NodeID) distrib.View {
		v := viewWith(epoch, self, ids(0, 1, 2)[:n])
		if name == "worker" && n == 3 {
			v.Nodes[2].Roles = []string{distrib.RoleWorker}
		}
		return v
	}
	var ends [3]uint64
	var wg sync.WaitGroup
	time.AfterFunc(300*time.Millisecond, func() { net.Kill(2) })
	for _, id := range ids(0, 1, 2) {
		e, err := distrib.New(distrib.Config{Transport: net.Node(id), Plan: plan(), Audited: true,
			View: view(1, id, 3)})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer net.Node(id).Close()
			defer e.Close()
			ends[id] = survive(t, e, name, kind, view(2, id, 2))
		})
	}
	wg.Wait()
	if ends[0] != ends[1] {
		t.Errorf("replicas differ")
	}
}

// survive works until a node is lost, then changes views, and works on.
func survive(t *testing.T, e *distrib.Engine, name string, kind distrib.Kind,
	next distrib.View) uint64 {
	ctx, s := context.Background(), e.Worker(0)
	p := tableOf(kind, "w", 8, 3)
	must(t)(nil, s.Attach(p))
	step := func() error {
		_, err := s.Pull(ctx, distrib.Ref{})
		if err == nil {
			time.Sleep(10 * time.Millisecond)
			err = s.Push(ctx, distrib.Ref{Row: int32(next.Self), N: 1},
				ofKind(kind, distrib.Dense{1, 2, 3}))
		}
		if err == nil {
			_, err = s.Tick(ctx)
		}
		return err
	}
	var err error
	for err == nil {
		err = step()
	}
	var lost *distrib.LostError
	if next.Self == 2 {
		return 0
	}
	if !errors.As(err, &lost) {
		t.Errorf("node %d: %v", next.Self, err)
	}
	err = e.Reconfigure(ctx, next)
	var rows *distrib.RowsLostError
	if name == "servers" {
		if !errors.As(err, &rows) || rows.Nodes[0] != 2 {
			t.Errorf("node %d: %v", next.Self, err)
		}
		time.Sleep(time.Second) // as long as the other one needs this one
		return 0
	}
	must(t)(nil, err)
	for range 20 {
		must(t)(nil, step())
	}
	for range 3 {
		must(t)(s.Tick(ctx))
	}
	must(t)(s.Pull(ctx, distrib.Ref{}))
	data := valuesOf(p)
	if data[0] < 20 || data[3] < 20 {
		t.Errorf("node %d has %v", next.Self, data)
	}
	must(t)(nil, s.Close())
	<-e.Done()
	must(t)(nil, e.Audit().Check())
	return digest(data)
}

// TestViewsThatCannotBe are refused, and change nothing.
func TestViewsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 1, memnet.Options{}, bsp, nil)
		e, ctx := engines[0], context.Background()
		if e.Reconfigure(ctx, viewWith(2, 0, ids(0))) == nil {
			t.Error("a view changes before parameters are attached")
		}
		s := e.Worker(0)
		must(t)(nil, s.Attach(zeros("w", 2, 2)))
		for _, v := range []distrib.View{viewWith(1, 0, ids(0)), viewWith(2, 3, ids(0, 3)),
			viewWith(2, 0, ids(0, 0))} {
			if err := e.Reconfigure(ctx, v); err == nil {
				t.Errorf("%+v is accepted", v)
			}
		}
		must(t)(s.Tick(ctx))
		must(t)(nil, e.Reconfigure(ctx, viewWith(7, 0, ids(0))))
		must(t)(s.Tick(ctx))
		must(t)(s.Pull(ctx, distrib.Ref{}))
		must(t)(nil, s.Close())
		finish(engines, net)
	})
}
