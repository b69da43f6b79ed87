package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/orion"
	"github.com/gomem/gomem/distrib/workload"
)

// factored is a factorisation whose passes are simulated: a rating takes a time, and what is sent
// is as large as it would be.
type factored struct {
	name       string
	rows, cols int
	ratings    int
	rank       int
	each       time.Duration // a rating
	net        memnet.Options
	even       bool // no row or column has more than another
}

// loop is a pass, in any order or in the one that is written.
func (f factored) loop(ordered bool) *orion.Loop {
	l := &orion.Loop{Name: "mf", Ordered: ordered, Space: []orion.Dim{
		{Name: "row", Size: int64(f.rows)}, {Name: "col", Size: int64(f.cols)}}}
	for i, name := range []string{"W", "H"} {
		l.Arrays = append(l.Arrays, orion.Array{Name: name, Bytes: 4,
			Shape: []int64{l.Space[i].Size, int64(f.rank)}})
		for _, access := range []orion.Access{orion.Read, orion.Write} {
			l.Refs = append(l.Refs, orion.Ref{Array: i, Access: access,
				At: []orion.Subscript{{Form: orion.Index, Dim: i}, {Form: orion.All}}})
		}
	}
	return l
}

// sampled is how many ratings are drawn: each stands for as many others.
const sampled = 100_000

// points are those: of rows and of columns, the first ones have more.
func (f factored) points() iter.Seq[[]int64] {
	return func(yield func([]int64) bool) {
		rng := rand.New(rand.NewPCG(1, 1))
		for range sampled {
			u, v := rng.Float64(), rng.Float64()
			if !f.even {
				u, v = u*u, v*v
			}
			p := [2]int64{int64(u * float64(f.rows)), int64(v * float64(f.cols))}
			if !yield(p[:]) {
				return
			}
		}
	}
}

// loads are how long each block of a schedule takes.
func (f factored) loads(s *orion.Schedule) map[[2]int]time.Duration {
	loads := map[[2]int]time.Duration{}
	each := time.Duration(float64(f.each) * float64(f.ratings) / sampled)
	for p := range f.points() {
		loads[[2]int{s.Across.Part(p), s.Along.Part(p)}] += each
	}
	return loads
}

// strategy is how workers do a number of passes, and of how many there are in it.
type strategy struct {
	name  string
	parts int // of a pass, of which one is simulated
	work  func(ctx context.Context, g *collective.Group, passes int) error
}

// scheduled is a pass by a schedule of Orion's.
func (f factored) scheduled(name string, o orion.Options, ordered bool) (strategy, error) {
	c, err := orion.Choose(f.loop(ordered), o)
	if err != nil {
		return strategy{}, err
	}
	s := c.Over(f.points())
	loads := f.loads(s)
	return strategy{name, 1, func(ctx context.Context, g *collective.Group, passes int) error {
		w := &orion.Worker{Schedule: s, Group: g, Memory: zeros{},
			Block: func(_ context.Context, _, index int) error {
				b := s.Blocks[g.Rank()][index]
				time.Sleep(loads[[2]int{b.Space, b.Time}])
				return nil
			}}
		return w.Run(ctx, passes)
	}}, nil
}

// share is how long a worker's part of a pass takes where nobody has more than another.
func (f factored) share(workers int) time.Duration {
	return f.each * time.Duration(f.ratings/workers)
}

// broadcast has all workers have all of H after each of as many parts of a pass as there are
// workers.
func (f factored) broadcast(workers int) strategy {
	return strategy{"broadcast", workers, func(ctx context.Context, g *collective.Group,
		passes int) error {
		h := make([]float32, (f.cols*f.rank/workers+1)*workers)
		for range passes {
			time.Sleep(f.share(workers) / time.Duration(workers))
			if err := collective.AllGather(ctx, g, h); err != nil {
				return err
			}
		}
		return nil
	}}
}

// served has workers pull all of H from parameter servers, and push what they have made of it, once
// in a pass.
func (f factored) served(workers int) strategy {
	return strategy{"table", 1, func(ctx context.Context, g *collective.Group, passes int) error {
		h := make([]float32, f.cols*f.rank)
		for range passes {
			time.Sleep(f.share(workers))
			if err := collective.PushPull(ctx, g, h, workers, collective.Sum); err != nil {
				return err
			}
		}
		return nil
	}}
}

// zeros is the memory of simulated blocks.
type zeros struct{}

// Load appends zeros.
func (zeros) Load(b []byte, _ int, _, n int64) []byte { return append(b, make([]byte, 4*n)...) }

// Store forgets.
func (zeros) Store(int, int64, int64, []byte) {}

// passes simulates a strategy, and is the seconds and the bytes of a pass.
func (f factored) passes(t *testing.T, workers, passes int, s strategy) (seconds, bytes float64,
	err error) {
	synctest.Test(t, func(*testing.T) {
		start := time.Now()
		var sent int64
		sent, err = onNetwork(workers, f.net, func(ctx context.Context,
			g *collective.Group) error {
			return s.work(ctx, g, passes)
		})
		scale := float64(s.parts) / float64(passes)
		seconds, bytes = time.Since(start).Seconds()*scale, float64(sent)*scale
	})
	return seconds, bytes, err
}

// onNetwork has workers do their parts on a simulated network, and is the bytes that were sent.
func onNetwork(workers int, o memnet.Options,
	part func(ctx context.Context, g *collective.Group) error) (sent int64, err error) {
	net := memnet.NewNetwork(workers, o)
	nodes := make([]distrib.Transport, workers)
	for i := range nodes {
		nodes[i] = net.Node(distrib.NodeID(i))
	}
	errs := collective.Together(nodes, collective.Options{Window: 16 << 20},
		func(g *collective.Group) error { return part(context.Background(), g) })
	for i := range nodes {
		s, _ := net.Node(distrib.NodeID(i)).Stats()
		sent += s.Total().Bytes
	}
	return sent, errors.Join(errs...)
}

// movieLens10M has the shape of the set that table 4.1 of the thesis names first.
func movieLens10M() factored {
	return factored{name: "MovieLens10M's shape, rank 100", rows: 71_567, cols: 10_681,
		ratings: 10_000_054, rank: 100, each: 100 * time.Nanosecond, net: perGbit(1)}
}

// netflix has the shape of the other one.
func netflix() factored {
	return factored{name: "Netflix's shape, rank 500", rows: 480_189, cols: 17_770,
		ratings: 100_480_507, rank: 500, each: 500 * time.Nanosecond, net: perGbit(1)}
}

// perGbit is a network whose links have so many Gbit/s.
func perGbit(n float64) memnet.Options {
	return memnet.Options{Bps: n * 1e9, Latency: 100 * time.Microsecond}
}

// strata prints what a pass takes by each strategy, how it scales, and what an order costs.
func strata(t *testing.T, w io.Writer, quick bool) error {
	small, counts := movieLens10M(), []int{4, 8, 16, 64}
	if quick {
		counts = counts[:1]
	}
	fmt.Fprintf(w, "Simulated: a rating takes 1 ns for each of its factors, links have 1 Gbit/s, "+
		"users and films are skewed. The thesis' figures are of its own program and network: of "+
		"so many cores.\n\n")
	heading(w, "data", "workers", "strategy", "s a pass", "MB sent a pass", "x one worker",
		"of ideal", "the thesis")
	for _, n := range counts {
		list, err := small.strategies(n)
		if err == nil {
			err = small.print(t, w, n, 4, list)
		}
		if err != nil {
			return err
		}
	}
	if !quick {
		large := netflix()
		for _, n := range []int{16, 64} {
			list, err := large.strategies(n)
			if err == nil {
				err = large.print(t, w, n, 2, list[:2])
			}
			if err != nil {
				return err
			}
		}
	}
	if err := small.orders(t, w); err != nil {
		return err
	}
	return reached(t, w, quick)
}

// print prints a line for each strategy.
func (f factored) print(t *testing.T, w io.Writer, workers, passes int, list []strategy) error {
	thesis := map[int]string{8: "6.3x", 16: "9x"}
	for i, s := range list {
		seconds, bytes, err := f.passes(t, workers, passes, s)
		if err != nil {
			return fmt.Errorf("%s by %d: %w", s.name, workers, err)
		}
		speedup, said := f.share(1).Seconds()/seconds, ""
		if i == 0 {
			said = thesis[workers]
		}
		row(w, f.name, fmt.Sprint(workers), s.name, fmt.Sprintf("%.4f", seconds),
			fmt.Sprintf("%.1f", bytes/1e6), fmt.Sprintf("%.1f", speedup),
			fmt.Sprintf("%.0f%%", 100*speedup/float64(workers)), said)
	}
	return nil
}

// orders prints what it costs to keep the order of the loop, by 4 workers.
func (f factored) orders(t *testing.T, w io.Writer) error {
	list, err := f.strategies(4)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s, 4 workers: seconds a pass.\n\n", f.name)
	heading(w, "passes", "in the loop's order", "in any", "factor", "the thesis")
	for _, passes := range []int{1, 4} {
		any, _, err := f.passes(t, 4, passes, list[0])
		if err != nil {
			return err
		}
		ordered, _, err := f.passes(t, 4, passes, list[1])
		if err != nil {
			return err
		}
		row(w, fmt.Sprint(passes), fmt.Sprintf("%.4f", ordered), fmt.Sprintf("%.4f", any),
			fmt.Sprintf("%.2f", ordered/any), "13.1 s / 5.9 s = 2.2")
	}
	fmt.Fprintln(w)
	return nil
}

// strategies are those that are compared.
func (f factored) strategies(workers int) ([]strategy, error) {
	o := orion.Options{Workers: workers}
	strata, err := f.scheduled("strata", o, false)
	if err != nil {
		return nil, err
	}
	ordered, err := f.scheduled("strata, in the loop's order", o, true)
	return []strategy{strata, ordered, f.broadcast(workers), f.served(workers)}, err
}

// reached prints in how many epochs real factorisations reach a loss: in one loop, by strata, and
// with parameter servers.
func reached(t *testing.T, w io.Writer, quick bool) error {
	data := workload.LowRank(5, 300, 200, 5, 12_000, 0.1)
	const rate = 0.005
	epochs, target := 150, 0.05
	if quick {
		epochs, target = 3, 10
	}
	fmt.Fprintf(w, "Run, 12000 elements of a matrix of rank 5, steps of %g: epochs until the mean "+
		"squared error is %g, by strata of the elements as they are visited, by the table after "+
		"an epoch.\n\n", rate, target)
	heading(w, "workers", "strategy", "epochs")
	for _, n := range []int{1, 2, 4, 8} {
		m := &workload.Strata{Data: data, Rank: 5, Seed: 3, Epochs: epochs, Rate: rate}
		first := 0
		_, err := onNetwork(n, memnet.Options{}, func(ctx context.Context,
			g *collective.Group) error {
			return m.Run(ctx, nil, workload.Worker{Rank: g.Rank(), Of: n, Group: g,
				Total: func(p workload.Progress) {
					if first == 0 && p.Mean() <= target {
						first = p.Epoch
					}
				}})
		})
		if err != nil {
			return err
		}
		row(w, fmt.Sprint(n), "strata", orNever(first))
		mf := task{epochs: epochs, target: target, rates: []float64{rate},
			at: func(rate float64) runner {
				return &workload.MF{Data: data, Rank: 5, Seed: 3, Epochs: epochs, Rate: rate}
			}}
		r, err := best(t, world{nodes: n}, ssp("table", 0), mf)
		if err != nil {
			return err
		}
		row(w, fmt.Sprint(n), "table, a clock an epoch", orNever(r.epochs))
	}
	return nil
}

func orNever(epochs int) string {
	if epochs == 0 {
		return "never"
	}
	return fmt.Sprint(epochs)
}
