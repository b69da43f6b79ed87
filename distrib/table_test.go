package distrib_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// cluster makes engines on a network, each with a plan of its own.
func cluster(t *testing.T, n int, o memnet.Options, plan func() distrib.Plan,
	change func(*distrib.Config)) ([]*distrib.Engine, *memnet.Network) {
	t.Helper()
	net := memnet.NewNetwork(n, o)
	var nodes []distrib.Node
	for i := range n {
		nodes = append(nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	var engines []*distrib.Engine
	for i := range n {
		id := distrib.NodeID(i)
		c := distrib.Config{Transport: net.Node(id), Plan: plan(), Audited: true,
			View: distrib.View{Epoch: 1, Self: id, Nodes: nodes}}
		if change != nil {
			change(&c)
		}
		e, err := distrib.New(c)
		if err != nil {
			t.Fatal(err)
		}
		engines = append(engines, e)
	}
	return engines, net
}

// each runs something for every worker of all engines at once, and waits.
func each(engines []*distrib.Engine, f func(w int, s distrib.Synchronizer)) {
	var wg sync.WaitGroup
	w := 0
	for _, e := range engines {
		for i := range e.Workers() {
			n := w
			wg.Go(func() { f(n, e.Worker(i)) })
			w++
		}
	}
	wg.Wait()
}

// finish waits for engines and closes their network.
func finish(engines []*distrib.Engine, net *memnet.Network) {
	for _, e := range engines {
		<-e.Done()
		net.Node(e.Audit().Self).Close()
	}
}

func zeros(name string, rows, cols int) *distrib.Param {
	return &distrib.Param{Name: name, Rows: rows, Cols: cols, Data: make([]float32, rows*cols)}
}

func must(t *testing.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
}

// TestKVApp is ps-lite's test_kv_app: 10000 values are pushed 50 times and pulled, and
// then pushed and pulled 50 times.
func TestKVApp(t *testing.T) {
	const num, repeat, cols = 10_000, 50, 100
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, 2, memnet.Options{Latency: time.Millisecond},
			func() distrib.Plan { return distrib.Plan{Consistency: distrib.BSP{}} }, nil)
		vals := make([]float32, num)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range vals {
			vals[i] = float32(rng.IntN(1000))
		}
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			p := zeros("kv", num/cols, cols)
			check(nil, s.Attach(p))
			times := 0
			push := func() {
				if w == 0 {
					u := append(distrib.Dense(nil), vals...)
					check(nil, s.Push(ctx, distrib.Ref{}, u))
				}
				check(s.Tick(ctx))
				times++
			}
			pull := func() {
				check(s.Pull(ctx, distrib.Ref{}))
				var res float64
				for i, v := range p.Data {
					res += math.Abs(float64(v) - float64(times)*float64(vals[i]))
				}
				if res/repeat >= 1e-5 {
					t.Errorf("after %d pushes: error %v", times, res/repeat)
				}
			}
			for range repeat {
				push()
			}
			pull()
			for range repeat {
				push()
				pull()
			}
			check(nil, s.Close())
		})
		finish(engines, net)
	})
}

// TestBoundIsKnownBefore: what a node may hold is known before it is made.
func TestBoundIsKnownBefore(t *testing.T) {
	for name, plan := range plansOf(2, 2) {
		synctest.Test(t, func(t *testing.T) {
			var want []distrib.Memory
			engines, net := cluster(t, 2, memnet.Options{}, plan, func(c *distrib.Config) {
				before := *c
				before.Plan = plan()
				m, err := distrib.Bound(before, zeros("a", 9, 4), zeros("b", 3, 1))
				must(t)(nil, err)
				want = append(want, m)
			})
			each(engines, func(w int, s distrib.Synchronizer) {
				must(t)(nil, s.Attach(zeros("a", 9, 4), zeros("b", 3, 1)))
				if got := engines[w].Bound(); got != want[w] || got.Total() <= 0 {
					t.Errorf("%s: node %d: %+v, and before %+v", name, w, got, want[w])
				}
				must(t)(nil, s.Close())
			})
			finish(engines, net)
		})
	}
}

// TestMultiverso is Multiverso's test_sync and test_matrix_table: a worker sees what it
// has added, rows that it asks for alone and all of them, and sums are exact.
func TestMultiverso(t *testing.T) {
	const rows, cols, rounds, nodes = 11, 7, 6, 3
	synctest.Test(t, func(t *testing.T) {
		engines, net := cluster(t, nodes, memnet.Options{Latency: time.Millisecond},
			func() distrib.Plan { return distrib.Plan{Consistency: distrib.BSP{}} },
			func(c *distrib.Config) { c.OnDemand, c.Ordered = c.View.Self == 1, true })
		each(engines, func(w int, s distrib.Synchronizer) {
			ctx, check := context.Background(), must(t)
			p := zeros("matrix", rows, cols)
			check(nil, s.Attach(p))
			table := distrib.NewTable(s, 0, p)
			row := make([]float32, cols)
			for round := range rounds {
				for _, r := range []int{0, 1, 3, 7} {
					check(table.GetRow(ctx, r, row))
					for c, v := range row {
						if want := float32(round * nodes * (r + c)); v != want {
							t.Errorf("round %d: (%d, %d) is %v, want %v", round, r, c, v, want)
						}
					}
				}
				for r := range rows {
					for c := range cols {
						row[c] = float32(r + c)
					}
					check(nil, table.IncRow(ctx, r, append([]float32(nil), row...)))
				}
				v, err := table.Get(ctx, rows-1, cols-1)
				if check(v, err); v < float32((round*nodes+1)*(rows+cols-2)) {
					t.Errorf("round %d: a worker does not see what it has added: %v", round, v)
				}
				check(nil, table.Inc(ctx, 0, 0, 2))
				check(nil, table.Inc(ctx, 0, 0, -2))
				check(table.Clock(ctx))
			}
			check(s.Pull(ctx, distrib.Ref{}))
			for i, v := range p.Data {
				if want := float32(rounds * nodes * (i/cols + i%cols)); v != want {
					t.Errorf("element %d is %v, want %v", i, v, want)
				}
			}
			check(nil, s.Close())
		})
		finish(engines, net)
	})
}

// TestPullRows: many rows that are asked for at once are asked for in one message, and come as
// they would one after the other.
func TestPullRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roles := func(v distrib.View) distrib.View {
			return distrib.View{Epoch: v.Epoch, Self: v.Self, Nodes: []distrib.Node{
				{ID: 0, Roles: []string{distrib.RoleServer}},
				{ID: 1, Roles: []string{distrib.RoleWorker}}}}
		}
		engines, net := cluster(t, 2, memnet.Options{Latency: time.Millisecond}, bsp,
			func(c *distrib.Config) { c.View, c.OnDemand = roles(c.View), true })
		must(t)(nil, engines[0].Attach(zeros("w", 100, 2)))
		s, ctx := engines[1].Worker(0).(distrib.Batched), context.Background()
		p := zeros("w", 100, 2)
		must(t)(nil, s.Attach(p))
		var refs []distrib.Ref
		for i := range int32(20) {
			ref := distrib.Ref{Row: 5 * i, N: 1 + i%3}
			refs = append(refs, ref)
			must(t)(nil, s.Push(ctx, ref, slices.Repeat(distrib.Dense{1}, 2*int(ref.N))))
		}
		must(t)(s.Tick(ctx))
		time.Sleep(time.Second)
		before := engines[0].Audit().Received
		must(t)(nil, s.PullRows(ctx, refs))
		if n := engines[0].Audit().Received - before; n != 1 {
			t.Errorf("%d messages for %d rows", n, len(refs))
		}
		for i, v := range p.Data {
			if want := float32(0); i/2%5 <= i/2/5%3 {
				if want = 1; v != want {
					t.Errorf("element %d is %v", i, v)
				}
			} else if v != want {
				t.Errorf("element %d is %v", i, v)
			}
		}
		if err := s.PullRows(ctx, []distrib.Ref{{Row: 99, N: 2}}); err == nil {
			t.Error("rows that there are not are pulled")
		}
		must(t)(nil, s.Close())
		finish(engines, net)
	})
}
