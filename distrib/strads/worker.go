package strads

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
)

// Worker is one of those that solve a problem together: it has some of the samples, and all
// coefficients.
type Worker struct {
	Problem // of its own samples
	Group   distrib.Group
	Options
	Stop
	// After is called by every worker with the coefficients of each epoch, first with those that
	// are there. All workers have the same. An error of one ends the run.
	After func(context.Context, Progress) error
}

// Run improves coefficients until it is time to stop. All workers begin at the same point.
func (w *Worker) Run(ctx context.Context, at *Point) error {
	s, err := newState(&w.Problem, at)
	if err := errors.Join(err, w.Options.check(), w.Stop.check()); err != nil {
		return err
	}
	r := &run{group: w.Group, state: s, scheduler: newScheduler(w.Options, len(at.B))}
	if err := r.meet(ctx); err != nil {
		return err
	}
	r.begin()
	for {
		if err := r.look(ctx, w.Stop); err != nil {
			return err
		}
		if err := w.After(ctx, r.seen); err != nil || r.seen.Done {
			return err
		}
		for to := r.seen.Updates + len(r.live); r.seen.Updates < to; {
			if err := r.round(ctx); err != nil {
				return err
			}
		}
		r.seen.Epoch++
	}
}

// run is a worker at work.
type run struct {
	group distrib.Group
	*state
	*scheduler
}

// meet adds up what workers know of the problem.
func (r *run) meet(ctx context.Context) error {
	own := float64(len(r.b))
	all := []float64{own, r.zero}
	if err := collective.AllReduce(ctx, r.group, all, collective.Sum); err != nil {
		return err
	}
	if all[0] != own*float64(r.group.Size()) {
		return fmt.Errorf("strads: this worker has %d features, and others have not", len(r.b))
	}
	r.zero = all[1]
	return collective.AllReduce(ctx, r.group, r.square, collective.Sum)
}

// look adds up the gradients of all coefficients that are live, and what the gap needs.
func (r *run) look(ctx context.Context, stop Stop) error {
	r.predict()
	n := len(r.live)
	all := make([]float64, n+3)
	for i, j := range r.live {
		all[i] = r.X.dot(j, r.slope)
	}
	own := r.sums()
	copy(all[n:], own[:])
	if err := collective.AllReduce(ctx, r.group, all, collective.Sum); err != nil {
		return err
	}
	for i, j := range r.live {
		r.gradient[j] = all[i]
	}
	sums := [3]float64(all[n:])
	scale := r.scale(sums)
	dual := []float64{r.conjugates(scale)}
	if err := collective.AllReduce(ctx, r.group, dual, collective.Sum); err != nil {
		return err
	}
	r.state.look(stop, sums, scale, dual[0])
	r.keep(r.live, r.seen.Epoch)
	// How far a coefficient would move is how fast it changes, as far as one can see.
	for _, j := range r.live {
		by := r.step(j, r.gradient[j])
		r.moved(j, float64(by*math.Sqrt(r.square[j])), r.b[j] == 0 && by == 0)
	}
	return nil
}

// round schedules some coefficients and updates them.
func (r *run) round(ctx context.Context) error {
	c := r.candidates()
	if err := r.acquaint(ctx, c); err != nil {
		return err
	}
	bins, load := pack(r.blocks(c, r.square), r.group.Size())
	own, err := r.push(ctx, bins)
	if err != nil {
		return err
	}
	moves, err := r.pull(ctx, bins, load, own)
	if err != nil {
		return err
	}
	r.apply(moves)
	r.seen.Rounds++
	return nil
}

// acquaint has all workers know the products of candidates' columns.
func (r *run) acquaint(ctx context.Context, c []int32) error {
	if r.Policy == Unchecked {
		return nil
	}
	pairs := r.unknown(c)
	products := make([]float64, len(pairs))
	for i, p := range pairs {
		products[i] = r.X.cross(p[0], p[1])
	}
	if len(pairs) > 0 {
		if err := collective.AllReduce(ctx, r.group, products, collective.Sum); err != nil {
			return err
		}
	}
	for i, p := range pairs {
		r.pairs[p] = products[i]
	}
	return nil
}

// push sends the partial sums of gradients to who updates the coefficients, and returns what comes
// of this worker's own.
func (r *run) push(ctx context.Context, bins [][][]int32) ([]float64, error) {
	out, in := make([][]float64, len(bins)), make([][]float64, len(bins))
	for to, blocks := range bins {
		for _, block := range blocks {
			for _, j := range block {
				out[to] = append(out[to], r.X.dot(j, r.slope))
			}
		}
	}
	own := out[r.group.Rank()]
	for from := range in {
		in[from] = make([]float64, len(own))
	}
	if err := collective.AllToAllV(ctx, r.group, out, in); err != nil {
		return nil, err
	}
	fold(own, in)
	return own, nil
}

// fold adds up in the order of ranks.
func fold(to []float64, parts [][]float64) {
	copy(to, parts[0])
	for _, p := range parts[1:] {
		for i, v := range p {
			to[i] += v
		}
	}
}

// moves are by how much coefficients move.
type moves struct {
	list  []int32
	by    []float64
	slope float64 // of the objective along them, at most 0
}

// pull folds the sums of this worker's coefficients into new ones, and tells all others.
func (r *run) pull(ctx context.Context, bins [][][]int32, load []int, own []float64) (m moves,
	err error) {
	rank, most := r.group.Rank(), 0
	for _, l := range load {
		most = max(most, l)
	}
	out, in := make([][]float64, len(bins)), make([][]float64, len(bins))
	for from, blocks := range bins {
		n := 0
		for _, block := range blocks {
			n += len(block)
		}
		if n > 0 {
			in[from] = make([]float64, n+1) // and the slope
		}
	}
	if len(in[rank]) > 0 {
		r.update(bins[rank], min(mostRepeats, most/load[rank]), own, in[rank])
	}
	mine := slices.Clone(in[rank])
	for to := range out {
		out[to] = mine
	}
	if err := collective.AllToAllV(ctx, r.group, out, in); err != nil {
		return m, err
	}
	for from, blocks := range bins {
		for _, block := range blocks {
			m.list = append(m.list, block...)
		}
		if n := len(in[from]); n > 0 {
			m.by = append(m.by, in[from][:n-1]...)
			m.slope += in[from][n-1]
		}
	}
	return m, nil
}

// mostRepeats is how often a worker goes through its blocks while others still go through theirs.
const mostRepeats = 8

// update goes through blocks so many times, and notes by how much the coefficients move; the last
// number is the slope of the objective along that.
func (r *run) update(blocks [][]int32, times int, gradient, by []float64) {
	slope := &by[len(by)-1]
	for _, block := range blocks {
		n := len(block)
		r.sequence(block, times, gradient[:n], by[:n])
		for i, j := range block {
			*slope += float64(gradient[i]*by[i]) +
				float64(r.L1*(math.Abs(r.b[j]+by[i])-math.Abs(r.b[j])))
		}
		gradient, by = gradient[n:], by[n:]
	}
}

// sequence updates a block's coefficients one after the other: each knows what those before it
// have changed.
func (r *run) sequence(block []int32, times int, gradient, by []float64) {
	c := r.Loss.curvature()
	for range times {
		for i, j := range block {
			g := gradient[i]
			for l, k := range block {
				if l != i && by[l] != 0 {
					g += float64(c * r.pairs[pair(j, k)] * by[l])
				}
			}
			h := float64(c * r.square[j])
			now := r.b[j] + by[i]
			g += float64(h * by[i])
			by[i] = soft(now-g/h, r.L1/h) - r.b[j]
		}
	}
}

// apply moves coefficients. What the blocks have to do with each other may make the objective
// rise: then they go the part of the way that is best, by the bound that the curvature gives.
func (r *run) apply(m moves) {
	part := 1.0
	if r.Policy != Unchecked {
		if bend := r.bend(m); m.slope+float64(bend/2) > 0 {
			part = -m.slope / bend
		}
	}
	for i, j := range m.list {
		was, by := r.b[j], float64(part*m.by[i])
		r.move(j, by)
		r.moved(j, float64(m.by[i]*math.Sqrt(r.square[j])), was == 0 && by == 0)
	}
	r.seen.Updates += len(m.list)
}

// bend bounds the second derivative of the loss along moves.
func (r *run) bend(m moves) float64 {
	sum := 0.0
	for i, j := range m.list {
		if m.by[i] == 0 {
			continue
		}
		sum += float64(m.by[i] * m.by[i] * r.square[j])
		for l, k := range m.list[:i] {
			if m.by[l] != 0 {
				sum += float64(2 * m.by[i] * m.by[l] * r.pairs[pair(j, k)])
			}
		}
	}
	return float64(r.Loss.curvature() * sum)
}
