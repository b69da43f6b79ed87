package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/orion"
	"github.com/gomem/gomem/distrib/workload"
)

// descent is a factorisation in one process: gradient descent over elements in an order that a
// schedule of Orion's has, from where [workload.Strata] begins.
type descent struct {
	rank  int
	rate  float32
	at    map[[2]int32]float32 // the elements
	order [][]int64            // they, by row and then column
	h, w  []float32
	loss  float64 // of a pass, as elements are visited
}

// descend is one that has not begun.
func descend(m *workload.Strata) *descent {
	ps := m.Params()
	d := &descent{rank: m.Rank, rate: float32(m.Rate), at: map[[2]int32]float32{}, h: ps[0].Data,
		w: ps[1].Data}
	for p, v := range m.Data.All() {
		d.at[p] = v
		d.order = append(d.order, []int64{int64(p[0]), int64(p[1])})
	}
	return d
}

// rows are an element's, and by how much their product misses it.
func (d *descent) rows(p []int64) (w, h []float32, miss float32) {
	w, h = d.w[int(p[0])*d.rank:][:d.rank], d.h[int(p[1])*d.rank:][:d.rank]
	miss = d.at[[2]int32{int32(p[0]), int32(p[1])}]
	for k, x := range w {
		miss -= float32(x * h[k])
	}
	return w, h, miss
}

// step takes a step for an element.
func (d *descent) step(p []int64) {
	w, h, miss := d.rows(p)
	d.loss += float64(miss) * float64(miss)
	g := d.rate * miss
	for k, x := range w {
		w[k] += float32(g * h[k])
		h[k] += float32(g * x)
	}
}

// run is the mean loss of each of some passes in its own order, as elements are visited.
func (d *descent) run(passes int) (losses []float64) {
	for range passes {
		d.loss = 0
		for _, p := range d.order {
			d.step(p)
		}
		losses = append(losses, d.loss/float64(len(d.order)))
	}
	return losses
}

// after is the mean loss of what there is.
func (d *descent) after() float64 {
	sum := 0.0
	for _, p := range d.order {
		_, _, miss := d.rows(p)
		sum += float64(miss) * float64(miss)
	}
	return sum / float64(len(d.order))
}

// crossing is the epoch, and the part of one, by which losses have come down to a target: between
// two epochs they fall exponentially. The first loss is that of epoch 1. Not a number: never.
func crossing(losses []float64, target float64) float64 {
	i := slices.IndexFunc(losses, func(x float64) bool { return x <= target })
	switch {
	case i < 0:
		return math.NaN()
	case i == 0:
		return 1
	}
	before := losses[i-1]
	return float64(i) + math.Log(before/target)/math.Log(before/losses[i])
}

// epochsToLoss prints how many epochs strata take beside the loop in its own order, over many
// drawn matrices.
func epochsToLoss(_ *testing.T, w io.Writer, quick bool) error {
	seeds, epochs, target, counts := 20, 150, 0.05, []int{1, 2, 4, 8}
	if quick {
		seeds, epochs, target, counts = 2, 3, 10, counts[:2]
	}
	fmt.Fprintf(w, "Run: %d matrices of rank 5, drawn, 300 by 200, of which 12000 elements are "+
		"known; `--sync stratified`, steps of 0.005, until the mean squared error of elements "+
		"as they are visited is %g, between epochs by the line of their logarithms. Serial is "+
		"one loop over the elements by row and then column, from the same beginning. The claim "+
		"is serial +- 2 %%.\n\n",
		seeds, target)
	ratios := make([][]float64, len(counts))
	var serial, shuffled []float64
	for seed := range seeds {
		m := &workload.Strata{Data: workload.LowRank(uint64(seed), 300, 200, 5, 12_000, 0.1),
			Rank: 5, Seed: uint64(seed), Epochs: epochs, Rate: 0.005}
		one := crossing(descend(m).run(epochs), target)
		serial = append(serial, one)
		d := descend(m)
		rand.New(rand.NewPCG(uint64(seed), 0)).Shuffle(len(d.order), func(i, j int) {
			d.order[i], d.order[j] = d.order[j], d.order[i]
		})
		shuffled = append(shuffled, crossing(d.run(epochs), target)/one)
		for i, n := range counts {
			losses, err := stratified(m, n)
			if err != nil {
				return err
			}
			ratios[i] = append(ratios[i], crossing(losses, target)/one)
		}
	}
	heading(w, "", "median", "least", "most", "within 2 %")
	low, mid, high := quantiles(serial)
	row(w, "serial, epochs", fmt.Sprintf("%.1f", mid), fmt.Sprintf("%.1f", low),
		fmt.Sprintf("%.1f", high), "")
	beside(w, "serial in a drawn order, of serial", shuffled)
	for i, n := range counts {
		beside(w, fmt.Sprintf("strata, workers: %d, of serial", n), ratios[i])
	}
	return nil
}

// beside prints how ratios are spread.
func beside(w io.Writer, name string, ratios []float64) {
	within := 0
	for _, r := range ratios {
		if math.Abs(r-1) <= 0.02 {
			within++
		}
	}
	low, mid, high := quantiles(ratios)
	row(w, name, fmt.Sprintf("%.3f", mid), fmt.Sprintf("%.3f", low), fmt.Sprintf("%.3f", high),
		fmt.Sprintf("%d of %d", within, len(ratios)))
}

// stratified is the mean loss of each epoch, as elements are visited by so many workers.
func stratified(m *workload.Strata, workers int) (losses []float64, err error) {
	_, err = onNetwork(workers, memnet.Options{}, func(ctx context.Context,
		g *collective.Group) error {
		return m.Run(ctx, nil, workload.Worker{Rank: g.Rank(), Of: workers, Group: g,
			Total: func(p workload.Progress) { losses = append(losses, p.Mean()) }})
	})
	return losses, err
}

// quantiles are the least, the median and the most.
func quantiles(x []float64) (low, mid, high float64) {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return x[0], (x[(n-1)/2] + x[n/2]) / 2, x[n-1]
}

// curve is losses after epochs, the first before any, and seconds an epoch.
type curve struct {
	name    string
	losses  []float64
	seconds float64
	bytes   float64 // an epoch
}

// at is the loss after so many seconds, if so many were run.
func (c curve) at(seconds float64) string {
	n := int(seconds/c.seconds + 1e-9)
	if n >= len(c.losses) {
		return ""
	}
	return fmt.Sprintf("%.4f", c.losses[n])
}

// race is a factorisation that several ways learn.
type race struct {
	*workload.Strata
	shape   factored
	workers int
}

// orionCurve is one of Orion's schedules: losses are those of its serial order, whose bits workers
// have (see TestWorkersAreSerial of package orion), and seconds are simulated.
func (r race) orionCurve(t *testing.T, name string, workers int, ordered bool) (curve, error) {
	c, err := orion.Choose(r.shape.loop(ordered), orion.Options{Workers: workers})
	if err != nil {
		return curve{}, err
	}
	d := descend(r.Strata)
	run := orion.Run{Schedule: c.Schedule(d.order), Points: d.order, Body: func(
		it *orion.Iteration) error {
		d.step(it.Index)
		return nil
	}}
	out := curve{name: name, losses: []float64{d.after()}}
	for range r.Epochs {
		if err := run.Serial(t.Context()); err != nil {
			return out, err
		}
		out.losses = append(out.losses, d.after())
	}
	s, err := r.shape.scheduled(name, orion.Options{Workers: workers}, ordered)
	if err == nil {
		out.seconds, out.bytes, err = r.shape.passes(t, workers, 10, s)
	}
	return out, err
}

// serverCurve is parameter servers, of which workers have what is so many clocks stale.
func (r race) serverCurve(t *testing.T, name string, clocks, stale int) (curve, error) {
	m := workload.MF{Data: r.Data, Rank: r.Rank, Seed: r.Seed, Epochs: r.Epochs, Rate: r.Rate,
		Clocks: clocks, Slack: stale}
	clock := r.shape.share(r.workers) / time.Duration(clocks)
	out, err := world{nodes: r.workers, net: r.shape.net}.run(t, ssp(name, stale),
		func(ctx context.Context, s distrib.Synchronizer, who workload.Worker) error {
			who.Compute = slow{}.compute(clock, who.Rank)
			return m.Run(ctx, s, who)
		})
	if err != nil {
		return curve{}, err
	}
	c := curve{name: name, bytes: float64(out.bytes) / float64(r.Epochs)}
	for e := range r.Epochs + 1 {
		p, took := out.at(e, r.workers)
		c.losses, c.seconds = append(c.losses, p.Mean()), took.Seconds()/float64(max(e, 1))
	}
	return c, nil
}

// curves are those that are compared.
func (r race) curves(t *testing.T) (all []curve, err error) {
	for _, of := range []struct {
		name    string
		workers int
		ordered bool
	}{{"serial", 1, true}, {"in the loop's order", r.workers, true},
		{"in any order", r.workers, false}} {
		c, err := r.orionCurve(t, of.name, of.workers, of.ordered)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.name, err)
		}
		all = append(all, c)
	}
	for _, of := range []struct {
		name          string
		clocks, stale int
	}{{"servers, a clock an epoch", 1, 0}, {"servers, 8 clocks an epoch", 8, 0},
		{"servers, 8 clocks, stale by 3", 8, 3}} {
		c, err := r.serverCurve(t, of.name, of.clocks, of.stale)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// medians are curves of which every loss is the median of several matrices'.
func (r race) medians(t *testing.T, matrices int) (all []curve, err error) {
	several := map[string][]curve{}
	for seed := range matrices {
		m := *r.Strata
		m.Seed, m.Data = uint64(seed), workload.LowRank(uint64(seed), 300, 200, 5, 12_000, 0.1)
		r.Strata = &m
		if all, err = r.curves(t); err != nil {
			return nil, err
		}
		for _, c := range all {
			several[c.name] = append(several[c.name], c)
		}
	}
	for _, c := range all {
		for e := range c.losses {
			var losses []float64
			for _, one := range several[c.name] {
				losses = append(losses, one.losses[e])
			}
			_, c.losses[e], _ = quantiles(losses)
		}
	}
	return all, nil
}

// convergence prints losses by epochs and by seconds, as figures 5.14 to 5.17 of the thesis do.
func convergence(t *testing.T, w io.Writer, quick bool) error {
	matrices := 11
	r := race{&workload.Strata{Rank: 5, Epochs: 60, Rate: 0.02}, factored{rows: 300,
		cols: 200, ratings: 12_000, rank: 5, each: 10 * time.Microsecond,
		net: perSecond(4000, 4*time.Millisecond)}, 8}
	if quick {
		r.Epochs, r.workers, matrices = 2, 2, 1
	}
	all, err := r.medians(t, matrices)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Losses are run: mean squared errors of 12000 elements of a drawn matrix of "+
		"rank 5, after an epoch, by steps of %g for all, medians of %d matrices. Seconds are "+
		"simulated: %d workers but for serial, an element takes %v, and to send the smaller "+
		"matrix 4 ms.\n\n", r.Rate,
		matrices, r.workers, r.shape.each)
	epochs, seconds := []int{0, 2, 5, 10, 20, 40, 60}, []float64{0.1, 0.2, 0.5, 1, 2, 5}
	columns := []string{"schedule", "s an epoch", "KB an epoch"}
	for _, n := range epochs {
		columns = append(columns, fmt.Sprintf("%d epochs", n))
	}
	for _, s := range seconds {
		columns = append(columns, fmt.Sprintf("%g s", s))
	}
	heading(w, columns...)
	for _, c := range all {
		cells := []string{c.name, fmt.Sprintf("%.4f", c.seconds), fmt.Sprintf("%.1f", c.bytes/1e3)}
		for _, n := range epochs {
			cells = append(cells, fmt.Sprintf("%.4f", c.losses[min(n, r.Epochs)]))
		}
		for _, s := range seconds {
			cells = append(cells, c.at(s))
		}
		row(w, cells...)
	}
	return nil
}
