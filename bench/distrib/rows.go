package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/internal/libm"
)

// rowsWay is a way to keep rows in step.
type rowsWay struct {
	name     string
	kind     distrib.Kind // nil: dense
	onDemand bool
	plan     func() distrib.Plan
	cols     int // of a row of clicks
}

// tree is Parameter Flow's plan: filtered updates, whose sums come back along trees, filtered too.
func tree(f distrib.Filter) func() distrib.Plan {
	return func() distrib.Plan {
		return distrib.Plan{Topology: &distrib.Shards{Tree: &distrib.Trees{}}, Up: f, DownF: f,
			Down: distrib.Deltas, Consistency: distrib.SSP{S: 1}}
	}
}

// served is parameter servers, stale by a clock.
func served(up distrib.Filter) func() distrib.Plan {
	return func() distrib.Plan {
		return distrib.Plan{Topology: &distrib.Shards{}, Up: up, Consistency: distrib.SSP{S: 1}}
	}
}

// peaks is the most that nodes have held.
type peaks struct {
	mu sync.Mutex
	of distrib.Memory
}

// scheme is a way whose nodes' memory is noted.
func (r rowsWay) scheme(p *peaks) scheme {
	return scheme{r.name, func(n distrib.Transport, v distrib.View) (distrib.Synchronizer,
		func() error, error) {
		e, err := distrib.New(distrib.Config{View: v, Transport: n, Plan: r.plan(),
			OnDemand: r.onDemand})
		if err != nil {
			return nil, nil, err
		}
		return e.Worker(0), func() error {
			<-e.Done()
			_, peak := e.Memory()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.of.Rows, p.of.Replica = max(p.of.Rows, peak.Rows), max(p.of.Replica, peak.Replica)
			p.of.Outbox = max(p.of.Outbox, peak.Outbox)
			return errors.Join(e.Close(), n.Close())
		}, nil
	}}
}

// sparseRows prints what rows that are not dense are worth.
func sparseRows(t *testing.T, w io.Writer, quick bool) error {
	if err := clickRows(t, w, quick); err != nil {
		return err
	}
	if err := topicRows(t, w, quick); err != nil {
		return err
	}
	encodings(w)
	costs(w, quick)
	return nil
}

// clickRows is logistic regression of clicks.
func clickRows(t *testing.T, w io.Writer, quick bool) error {
	samples, features, epochs, clocks := 8000, 100_000, 3, 20
	if quick {
		samples, features, epochs, clocks = 400, 2000, 1, 4
	}
	train, test := workload.Clicks(1, samples, samples/2, features, 39, 3)
	net := world{4, memnet.Options{Bps: 100e6, Latency: 100 * time.Microsecond}}
	fmt.Fprintf(w, "Logistic regression of clicks: %d samples of 39 among %d features, in rows of "+
		"64; 4 nodes over links of 100 Mbit/s, which compute for 20 ms a clock; %d clocks, stale "+
		"by one. Memory is the most of a node; node 0 reads what the test samples need, too, "+
		"before each of %d epochs and after the last.\n\n", samples, features, epochs*clocks,
		epochs)
	heading(w, "rows", "KB a clock", "s", "MB of rows and replica", "MB of outbox", "log loss",
		"test log loss", "AUC")
	task := workload.LR{Train: train, Test: test, Epochs: epochs, Clocks: clocks, Rate: .01,
		Decay: .9, Slack: 1}
	dvf := distrib.DVF{Low: 2e-3}
	sparse := distrib.SparseRows{}
	for _, way := range []rowsWay{
		{"dense", nil, false, served(nil), 64},
		{"sparse", sparse, false, served(nil), 64},
		{"sparse, asked for each time", sparse, true, served(nil), 64},
		{"sparse, of 8, asked for each time", sparse, true, served(nil), 8},
		{"sparse, DVF up", sparse, false, served(dvf), 64},
		{"sparse, DVF and fp16 up", sparse, false,
			served(distrib.Chain{dvf, distrib.Rounding{As: distrib.F16}}), 64},
		{"dense, sums by trees (TSB)", nil, false, tree(nil), 64},
		{"sparse, sums by trees (TSB)", sparse, false, tree(nil), 64},
		{"sparse, DVF and TSB", sparse, false, tree(dvf), 64},
	} {
		m := task
		m.Dense, m.Cols = way.kind == nil, way.cols
		var p peaks
		out, err := net.run(t, way.scheme(&p), func(ctx context.Context, s distrib.Synchronizer,
			who workload.Worker) error {
			who.Compute = func(ctx context.Context, share float64) error {
				time.Sleep(time.Duration(float64(20*time.Millisecond) * share))
				return nil
			}
			return m.Run(ctx, s, who)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		end, _ := out.at(epochs, net.nodes)
		cells := append([]string{way.name}, p.cells(out, epochs*clocks)...)
		row(w, append(cells, learnt(end)...)...)
	}
	curve, err := task.Serial()
	if err != nil {
		return err
	}
	row(w, append([]string{"one process, in order", "", "", "", ""}, learnt(curve[epochs])...)...)
	fmt.Fprintln(w)
	return nil
}

// cells are what a run took: KB a clock, seconds, MB of rows and of the outbox.
func (p *peaks) cells(out *outcome, clocks int) []string {
	return []string{fmt.Sprintf("%.0f", float64(out.bytes)/1e3/float64(clocks)),
		fmt.Sprintf("%.2f", out.took.Seconds()),
		fmt.Sprintf("%.2f", float64(p.of.Rows+p.of.Replica)/1e6),
		fmt.Sprintf("%.2f", float64(p.of.Outbox)/1e6)}
}

// learnt are losses and AUC.
func learnt(p workload.Progress) []string {
	return []string{fmt.Sprintf("%.4f", p.Mean()),
		fmt.Sprintf("%.4f", p.TestLoss/float64(p.TestCount)), fmt.Sprintf("%.4f", p.AUC)}
}

// topicRows is increments of counts, as a sampler of topics makes them.
func topicRows(t *testing.T, w io.Writer, quick bool) error {
	s := stream{words: 2000, topics: 1000, tokens: 2000, clocks: 20}
	if quick {
		s = stream{words: 50, topics: 40, tokens: 50, clocks: 3}
	}
	net := world{4, memnet.Options{Bps: 100e6, Latency: 100 * time.Microsecond}}
	fmt.Fprintf(w, "Counts of words by topics: in each of %d clocks each of 4 nodes moves %d "+
		"tokens of %d words, as frequent as Zipf's law says, from one of %d topics to another; a "+
		"word has few topics. The same network, stale by a clock.\n\n", s.clocks, s.tokens, s.words,
		s.topics)
	heading(w, "rows", "KB a clock", "s", "MB of rows and replica", "MB of outbox")
	for _, way := range []rowsWay{
		{"dense float32", nil, false, served(nil), 0},
		{"sparse float32", distrib.SparseRows{}, false, served(nil), 0},
		{"int32", distrib.IntRows{}, false, served(nil), 0},
		{"int32, sums by trees", distrib.IntRows{}, false, tree(nil), 0},
		{"int32, DVF up: of more than 1", distrib.IntRows{}, false, served(distrib.DVF{Low: 1,
			Rate: func(distrib.Clock) float32 { return 1 }}), 0},
	} {
		var p peaks
		out, err := net.run(t, way.scheme(&p), func(ctx context.Context, sync distrib.Synchronizer,
			who workload.Worker) error {
			return s.run(ctx, sync, way.kind, who.Rank)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		row(w, append([]string{way.name}, p.cells(out, s.clocks)...)...)
	}
	fmt.Fprintln(w)
	return nil
}

// stream is increments of counts.
type stream struct{ words, topics, tokens, clocks int }

// run is a node's part.
func (s stream) run(ctx context.Context, sync distrib.Synchronizer, kind distrib.Kind,
	rank int) error {
	p := &distrib.Param{Name: "topics", Rows: s.words, Cols: s.topics, Kind: kind}
	if kind == nil {
		p.Data = make([]float32, s.words*s.topics)
	}
	if err := sync.Attach(p); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(rank), 12))
	for range s.clocks {
		if _, err := sync.Pull(ctx, distrib.Ref{}); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
		for range s.tokens {
			word := int(libm.Exp(rng.Float64()*libm.Log(float64(s.words+1)))) - 1
			from, to := s.topic(rng, word), s.topic(rng, word)
			if from == to {
				continue
			}
			ref := distrib.Ref{Row: int32(min(word, s.words-1)), N: 1}
			if err := sync.Push(ctx, ref, s.moved(kind, from, to)); err != nil {
				return err
			}
		}
		if _, err := sync.Tick(ctx); err != nil {
			return err
		}
	}
	return nil
}

// topic is one of a word's, of which the more frequent have more: the square of what is drawn has
// the first ones come more often.
func (s stream) topic(rng *rand.Rand, word int) int {
	few := max(2, s.topics/(2*(word+1)))
	return (word*31 + int(float64(rng.Float64()*rng.Float64())*float64(few))) % s.topics
}

// moved takes a token from one topic to another.
func (s stream) moved(kind distrib.Kind, from, to int) distrib.Update {
	idx, of := []uint32{uint32(from), uint32(to)}, []int32{-1, 1}
	if from > to {
		idx, of = []uint32{uint32(to), uint32(from)}, []int32{1, -1}
	}
	if _, ok := kind.(distrib.IntRows); ok {
		return distrib.Ints{N: s.topics, Idx: idx, Val: of}
	}
	return distrib.Sparse{N: s.topics, Idx: idx, Val: []float32{float32(of[0]), float32(of[1])}}
}

// encodings prints how many bytes an update of a row takes by how full it is, as figure 4 of
// Parameter Flow does.
func encodings(w io.Writer) {
	const n = 10_000
	fmt.Fprintf(w, "Bytes an element of an update of %d, by the share of elements that are there, "+
		"in each form (Parameter Flow, figure 4). Integers are 1 to 3.\n\n", n)
	heading(w, "share", "dense float32", "sparse float32", "sparse fp16", "int32")
	rng := rand.New(rand.NewPCG(4, 4))
	for _, share := range []float64{.0001, .001, .01, .03, .1, .3, .5, .9, 1} {
		s := distrib.Sparse{N: n}
		x := distrib.Ints{N: n}
		for i := range uint32(n) {
			if rng.Float64() < share {
				s.Idx, s.Val = append(s.Idx, i), append(s.Val, rng.Float32())
				x.Idx, x.Val = append(x.Idx, i), append(x.Val, 1+rng.Int32N(3))
			}
		}
		half, _ := distrib.RoundTo(s, distrib.F16)
		cells := []string{fmt.Sprint(share), "4"}
		for _, u := range []distrib.Update{s, half, x} {
			cells = append(cells, fmt.Sprintf("%.4f", float64(u.WireSize())/n))
		}
		row(w, cells...)
	}
	fmt.Fprintln(w)
}

// costs prints how long filters take by themselves, which figure 12 of Parameter Flow leaves out.
func costs(w io.Writer, quick bool) {
	n, times := 1<<20, 20
	if quick {
		n, times = 1<<10, 1
	}
	fmt.Fprintf(w, "Filters' own cost, which figure 12 of Parameter Flow leaves out: the least of "+
		"%d times that one takes for an update of %d numbers, of which a tenth goes, on the "+
		"machine that printed this. To send what it saves at 100 Mbit/s is what it is worth.\n\n",
		times, n)
	heading(w, "filter", "ms", "bytes sent, of dense ones", "ms saved at 100 Mbit/s")
	rng := rand.New(rand.NewPCG(5, 5))
	u := make(distrib.Dense, n)
	for i := range u {
		u[i] = rng.Float32()*2 - 1
	}
	same := func(distrib.Clock) float32 { return 1 }
	for _, f := range []struct {
		name string
		f    distrib.Filter
	}{
		{"dvf", distrib.DVF{Low: .9, Rate: same}},
		{"topk:0.1", distrib.TopK{Frac: .1}},
		{"fp16", distrib.Rounding{As: distrib.F16}},
		{"bf16", distrib.Rounding{As: distrib.BF16}},
		{"dvf,fp16", distrib.Chain{distrib.DVF{Low: .9, Rate: same},
			distrib.Rounding{As: distrib.F16}}},
	} {
		least, sent := math.Inf(1), 0
		for range times {
			begun := time.Now()
			send, _ := f.f.Split(&distrib.Entry{U: u}, 0, distrib.Link{})
			least = min(least, time.Since(begun).Seconds())
			sent = send.WireSize()
		}
		row(w, f.name, fmt.Sprintf("%.2f", 1e3*least),
			fmt.Sprintf("%.1f %%", 100*float64(sent)/float64(u.WireSize())),
			fmt.Sprintf("%.1f", 1e3*8*float64(u.WireSize()-sent)/100e6))
	}
	fmt.Fprintln(w)
}
