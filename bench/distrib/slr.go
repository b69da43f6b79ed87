package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/gbt"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/orion"
	"github.com/gomem/gomem/distrib/workload"
)

// sparseLR is logistic regression whose samples have few of many features, as a loop of Orion's:
// which weights a sample reads is only known from the data, so nothing divides them, and servers
// have them.
type sparseLR struct {
	features [][]int64 // of each sample
	label    []float64
	weights  int
	passes   int
	rate     float64
	revised  bool          // servers take steps by AdaRevision, along the gradients that they get
	each     time.Duration // that noting or using a subscript takes
	net      world
	messages atomic.Int64 // that were sent
}

// drawSparse draws samples of so many features, whose frequencies are by Zipf's law, and labels
// that depend on them.
func drawSparse(samples, entries, weights int) *sparseLR {
	rng := rand.New(rand.NewPCG(4, 1))
	l := &sparseLR{weights: weights, rate: 1e-3, each: 50 * time.Nanosecond,
		net: world{4, memnet.Options{Bps: 1e9, Latency: 100 * time.Microsecond}}}
	teacher := make([]float64, weights)
	for i := range teacher {
		teacher[i] = rng.NormFloat64()
	}
	for range samples {
		seen, z := map[int64]bool{}, 0.0
		var own []int64
		for len(own) < entries {
			at := int64(math.Pow(float64(weights), rng.Float64())) - 1
			if !seen[at] {
				seen[at], own, z = true, append(own, at), z+teacher[at]
			}
		}
		y := 0.0
		if z > 0 {
			y = 1
		}
		l.features, l.label = append(l.features, own), append(l.label, y)
	}
	return l
}

// loop is a pass, as Orion sees it.
func (l *sparseLR) loop() *orion.Loop {
	at := []orion.Subscript{{Form: orion.Unknown}}
	return &orion.Loop{Name: "slr",
		Space: []orion.Dim{{Name: "sample", Size: int64(len(l.label))}},
		Arrays: []orion.Array{{Name: "Weights", Shape: []int64{int64(l.weights)},
			Bytes: 4}},
		Refs: []orion.Ref{{Access: orion.Read, At: at}, {Access: orion.Buffer, At: at}}}
}

// The ways to bring what a block reads.
const (
	oneByOne = iota
	noted
	cached
)

// reader brings weights to a worker.
type reader struct {
	*sparseLR
	way      int
	servers  distrib.Batched
	prefetch *orion.Prefetch
}

// begin brings what a block of a schedule reads, if that is noted.
func (r *reader) begin(ctx context.Context, block int, points iter.Seq[[]int64]) error {
	if r.way == oneByOne {
		return nil
	}
	if r.way == noted || r.prefetch == nil {
		r.prefetch = &orion.Prefetch{}
	}
	r.prefetch.Reads = func(index []int64, note func(int64)) {
		own := r.features[index[0]]
		for _, f := range own {
			note(f)
		}
		time.Sleep(time.Duration(len(own)) * r.each)
	}
	return r.prefetch.Pull(ctx, r.servers, 0, block, points)
}

// read brings the weights of one sample that were not brought before it.
func (r *reader) read(ctx context.Context, features []int64) error {
	if r.way != oneByOne {
		return nil
	}
	for _, f := range features {
		if _, err := r.servers.Pull(ctx, distrib.Ref{Row: int32(f), N: 1}); err != nil {
			return err
		}
	}
	return nil
}

// work is a worker's part of all passes. It reports the loss of its samples as they were read.
func (l *sparseLR) work(ctx context.Context, s distrib.Synchronizer, who workload.Worker,
	way int) error {
	c, err := orion.Choose(l.loop(), orion.Options{Workers: who.Of})
	if err != nil {
		return err
	}
	schedule := c.Over(nil)
	servers := s.(distrib.Batched)
	weights := &distrib.Param{Name: "w", Rows: l.weights, Cols: 1,
		Data: make([]float32, l.weights)}
	if err := servers.Attach(weights); err != nil {
		return err
	}
	buffer := orion.NewWriteBuffer(l.weights,
		func(have, write float32) float32 { return have + write },
		func(feature int64, x float32) error {
			return servers.Push(ctx, distrib.Ref{Row: int32(feature), N: 1}, distrib.Dense{x})
		})
	r := &reader{sparseLR: l, way: way, servers: servers}
	for pass := range l.passes {
		p := workload.Progress{Worker: who.Rank, Epoch: pass}
		for k, b := range schedule.Blocks[who.Rank] {
			points := samplesOf(schedule, b)
			err := r.begin(ctx, k, points)
			for index := range points {
				if err == nil {
					err = r.step(ctx, int(index[0]), weights.Data, buffer, &p)
				}
			}
			if err != nil {
				return err
			}
		}
		if err := buffer.Flush(); err != nil {
			return err
		}
		if _, err := servers.Tick(ctx); err != nil {
			return err
		}
		p.At = time.Now()
		who.Report(p)
	}
	return nil
}

// samplesOf are the iterations of a block.
func samplesOf(s *orion.Schedule, b orion.Block) iter.Seq[[]int64] {
	return func(yield func([]int64) bool) {
		for i := s.Across.Cuts[b.Space]; i < s.Across.Cuts[b.Space+1]; i++ {
			if !yield([]int64{i}) {
				return
			}
		}
	}
}

// step is one iteration.
func (r *reader) step(ctx context.Context, sample int, weights []float32,
	buffer *orion.WriteBuffer[float32], p *workload.Progress) error {
	own, y := r.features[sample], r.label[sample]
	if err := r.read(ctx, own); err != nil {
		return err
	}
	time.Sleep(time.Duration(len(own)) * r.each)
	z := 0.0
	for _, f := range own {
		z += float64(weights[f])
	}
	p.Loss += gbt.Logistic.Of(y, z)
	p.Count++
	gradient := 1/(1+math.Exp(-z)) - y
	if !r.revised {
		gradient *= -r.rate // a step
	}
	for _, f := range own {
		if err := buffer.Write(f, float32(gradient)); err != nil {
			return err
		}
	}
	return nil
}

// scheme is parameter servers that are asked for rows in every clock, and in it for each once.
func (l *sparseLR) scheme() scheme {
	return scheme{"served", func(n distrib.Transport, v distrib.View) (distrib.Synchronizer,
		func() error, error) {
		plan := distrib.Plan{Topology: &distrib.Shards{}, Consistency: distrib.BSP{}}
		if l.revised {
			plan.Rule = &distrib.AdaRevision{Alpha: float32(l.rate)}
		}
		e, err := distrib.New(distrib.Config{View: v, Transport: n, OnDemand: true, Ordered: true,
			Plan: plan})
		if err != nil {
			return nil, nil, err
		}
		return e.Worker(0), func() error {
			<-e.Done()
			if node, ok := n.(*memnet.Node); ok {
				sent, _ := node.Stats()
				l.messages.Add(sent.Total().Messages)
			}
			return errors.Join(e.Close(), n.Close())
		}, nil
	}}
}

// cost is what passes took.
type cost struct {
	messages, bytes, seconds float64
	loss                     float64 // in the last pass, of a sample
}

// run does so many passes, of which the first has all weights: they are what they begin with.
func (l *sparseLR) run(t *testing.T, passes, way int) (c cost, err error) {
	l.passes = passes
	l.messages.Store(0)
	out, err := l.net.run(t, l.scheme(), func(ctx context.Context, s distrib.Synchronizer,
		who workload.Worker) error {
		return l.work(ctx, s, who, way)
	})
	if err != nil {
		return c, err
	}
	end, _ := out.at(passes-1, l.net.nodes)
	return cost{float64(l.messages.Load()), float64(out.bytes), out.took.Seconds(), end.Mean()}, nil
}

// sparseReads prints what reading by one message saves, and what AdaRevision learns.
func sparseReads(t *testing.T, w io.Writer, quick bool) error {
	samples, weights, passes := 8000, 200_000, 5
	if quick {
		samples, weights, passes = 80, 500, 2
	}
	l := drawSparse(samples, 30, weights)
	fmt.Fprintf(w, "Logistic regression of %d samples of 30 among %d features, by 4 workers that "+
		"are the servers, too. Simulated: noting or using a subscript takes %v, links have 1 "+
		"Gbit/s and a latency of 100 us. A weight is asked for once in a pass, by whatever way. "+
		"Of a pass after the first. The thesis' seconds are of a pass over KDD2010 (20,216,830 "+
		"features), of its own program and network.\n\n", samples, weights, l.each)
	heading(w, "weights are read", "messages", "MB", "s", "loss of the last pass", "the thesis, s")
	for way, name := range []string{"one by one", "by block, noted in each pass",
		"by block, noted once"} {
		first, err := l.run(t, 1, way)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all, err := l.run(t, passes, way)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n := float64(passes - 1)
		row(w, name, fmt.Sprintf("%.0f", (all.messages-first.messages)/n),
			fmt.Sprintf("%.2f", (all.bytes-first.bytes)/1e6/n),
			fmt.Sprintf("%.4f", (all.seconds-first.seconds)/n), fmt.Sprintf("%.6f", all.loss),
			[]string{"7682", "9.2", "6.3"}[way])
	}
	return l.rules(t, w, 2*passes)
}

// rules prints what is learnt by plain steps and by AdaRevision, whose updates are gradients.
func (l *sparseLR) rules(t *testing.T, w io.Writer, passes int) error {
	fmt.Fprintf(w, "\nThe loss in pass %d, by the step size.\n\n", passes)
	rates := []float64{1e-4, 1e-3, 1e-2, 1e-1, 1}
	columns := []string{"rule"}
	for _, rate := range rates {
		columns = append(columns, fmt.Sprint(rate))
	}
	heading(w, columns...)
	for _, name := range []string{"plain steps", "AdaRevision"} {
		cells := []string{name}
		l.revised = name == "AdaRevision"
		for _, l.rate = range rates {
			c, err := l.run(t, passes, cached)
			if err != nil {
				return fmt.Errorf("%s, %g: %w", name, l.rate, err)
			}
			cells = append(cells, fmt.Sprintf("%.4f", c.loss))
		}
		row(w, cells...)
	}
	fmt.Fprintln(w)
	return nil
}
