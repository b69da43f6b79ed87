package workload

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// together runs a workload on n nodes and returns what they reported, and what worker 0
// was told of all.
func together(t *testing.T, n int, plan distrib.Plan,
	f func(distrib.Synchronizer, Worker) error) (*Totals, []Progress) {
	t.Helper()
	return joined(t, n, distrib.Config{Plan: plan}, 1, f)
}

// joined is together, of engines with such a configuration on a network with such a seed.
func joined(t *testing.T, n int, c distrib.Config, seed uint64,
	f func(distrib.Synchronizer, Worker) error) (*Totals, []Progress) {
	t.Helper()
	sum, errs := &Totals{}, make([]error, n)
	var told []Progress
	net := memnet.NewNetwork(n, memnet.Options{Latency: time.Millisecond, Seed: seed,
		Jitter: 20 * time.Millisecond})
	v := distrib.View{}
	for i := range n {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	var all, ended sync.WaitGroup
	ended.Add(n)
	for i := range n {
		all.Go(func() {
			mine, w := v, Worker{Rank: i, Of: n, Report: sum.Add}
			mine.Self = distrib.NodeID(i)
			w.Total = func(p Progress) { told = append(told, p) }
			w.Compute = func(_ context.Context, share float64) error {
				time.Sleep(time.Duration(float64(5+7*i) * share * float64(time.Millisecond)))
				return nil
			}
			c := c
			switch t := c.Plan.Topology.(type) { // which is one node's
			case *distrib.All:
				c.Plan.Topology = &distrib.All{}
			case *distrib.Shards:
				own := *t
				c.Plan.Topology = &own
			}
			c.View, c.Transport = mine, net.Node(mine.Self)
			e, err := distrib.New(c)
			if err != nil {
				t.Error(err)
				return
			}
			errs[i] = errors.Join(f(e.Worker(0), w), e.Worker(0).Close())
			ended.Done()
			ended.Wait()
			errs[i] = errors.Join(errs[i], e.Close(), net.Node(mine.Self).Close())
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return sum, told
}

// TestTold: worker 0 is told, in order, what all workers together reported; and they do
// about as well as the serial run.
func TestTold(t *testing.T) {
	m := covertype()
	m.Losses, m.Slack = true, 2
	f := lowRank()
	f.Losses, f.Slack, f.Both, f.Epochs, f.Rate = true, 2, true, 40, .05
	for name, c := range map[string]struct {
		run    func(distrib.Synchronizer, Worker) error
		serial func() ([]Progress, error)
		epochs int
		near   float64
	}{
		"mlr": {func(s distrib.Synchronizer, w Worker) error {
			return m.Run(context.Background(), s, w)
		}, m.Serial, m.Epochs, .006},
		"mf": {func(s distrib.Synchronizer, w Worker) error {
			return f.Run(context.Background(), s, w)
		}, f.Serial, f.Epochs, .03},
	} {
		synctest.Test(t, func(t *testing.T) {
			sum, told := together(t, 4, distrib.Plan{Consistency: distrib.SSP{S: 2}}, c.run)
			if len(told) != c.epochs+1 {
				t.Fatalf("%s: told of %d epochs, want %d", name, len(told), c.epochs+1)
			}
			for e, p := range told {
				want, ok := sum.Epoch(e, 4)
				if !ok || p.Epoch != e || p.Count != want.Count || p.Errors != want.Errors ||
					p.TestErrors != want.TestErrors ||
					math.Abs(p.Mean()-want.Mean()) > 1e-4*(1+want.Mean()) {
					t.Errorf("%s: told %+v, reported %+v", name, p, want)
				}
			}
			curve, err := c.serial()
			if err != nil {
				t.Fatal(err)
			}
			have, want := told[c.epochs].Mean(), curve[c.epochs].Mean()
			if math.Abs(have-want) > c.near {
				t.Errorf("%s: loss %.4f, serial %.4f", name, have, want)
			}
		})
	}
}
