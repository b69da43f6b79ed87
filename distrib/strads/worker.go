package strads

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/internal/libm"
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
	r := &run{group: w.Group, state: s, scheduler: newScheduler(w.Options, len(at.B)),
		curved: make([]float64, len(at.B)), along: make([]float64, len(w.Y))}
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
		n := min(passes*len(r.working()), len(r.live))
		for to := r.seen.Updates + n; r.seen.Updates < to; {
			if err := r.round(ctx); err != nil {
				return err
			}
		}
		r.seen.Epoch++
	}
}

// passes is how often an epoch could go through the coefficients that matter: a look at all of them
// costs little beside that, and shows which they are.
const passes = 5

// run is a worker at work.
type run struct {
	group distrib.Group
	*state
	*scheduler
	curved []float64 // by coefficient, the curvature of its step, as it was last seen
	along  []float64 // by sample, how far moves carry its prediction; 0 between rounds
}

// meet has all workers know what each does of the problem.
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
	if err := collective.AllReduce(ctx, r.group, r.square, collective.Sum); err != nil {
		return err
	}
	largest, err := r.tell(ctx, r.largest)
	for _, of := range largest {
		for j, x := range of {
			r.largest[j] = max(r.largest[j], x)
		}
	}
	return err
}

// tell tells all others some numbers, and is those of all, who have as many, by rank.
func (r *run) tell(ctx context.Context, own []float64) ([][]float64, error) {
	all := make([]float64, len(own)*r.group.Size())
	copy(all[len(own)*r.group.Rank():], own)
	if err := collective.AllGather(ctx, r.group, all); err != nil || len(own) == 0 {
		return nil, err
	}
	return slices.Collect(slices.Chunk(all, len(own))), nil
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
	if err := r.push(ctx, c); err != nil {
		return err
	}
	c = r.moving(c)
	if err := r.acquaint(ctx, c); err != nil {
		return err
	}
	bins, load := pack(r.blocks(c, r.square), r.group.Size())
	moves, err := r.pull(ctx, bins, load)
	if err == nil {
		err = r.apply(ctx, moves)
	}
	r.seen.Rounds++
	return err
}

// nearby reports whether steps are by the curvature that there is near to. Of independent sets they
// are not: there nobody knows what the others of a round do, and shorter steps take fewer rounds.
func (r *run) nearby() bool { return r.Loss == Logistic && r.Policy == Blocks }

// push adds up the gradients of candidates, and the second derivatives where steps are by them.
func (r *run) push(ctx context.Context, c []int32) error {
	all := make([]float64, 0, 2*len(c))
	for _, j := range c {
		all = append(all, r.X.dot(j, r.slope))
	}
	if r.nearby() {
		for _, j := range c {
			all = append(all, r.bent(j))
		}
	}
	if err := collective.AllReduce(ctx, r.group, all, collective.Sum); err != nil {
		return err
	}
	for i, j := range c {
		r.gradient[j], r.curved[j] = all[i], float64(r.square[j]*r.Loss.curvature())
		if r.nearby() {
			r.curved[j] = r.near(j, all[i], all[len(c)+i])
		}
	}
	return nil
}

// moving are the candidates that would move alone. With others there is nothing left to do.
func (r *run) moving(c []int32) []int32 {
	return slices.DeleteFunc(c, func(j int32) bool {
		still := r.stepOn(j, r.gradient[j], r.curved[j]) == 0
		if still {
			r.moved(j, 0, r.b[j] == 0)
			r.seen.Updates++
		}
		return still
	})
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

// moves are by how much coefficients move.
type moves struct {
	list  []int32
	by    []float64
	slope float64 // of the objective along them, at most 0
}

// pull finds by how much this worker's coefficients move, and tells all others.
func (r *run) pull(ctx context.Context, bins [][][]int32, load []int) (m moves, err error) {
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
		r.update(bins[rank], min(mostRepeats, most/load[rank]), in[rank])
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
func (r *run) update(blocks [][]int32, times int, by []float64) {
	slope := &by[len(by)-1]
	for _, block := range blocks {
		r.sequence(block, times, by)
		for i, j := range block {
			*slope += float64(r.gradient[j]*by[i]) +
				float64(r.L1*(math.Abs(r.b[j]+by[i])-math.Abs(r.b[j])))
		}
		by = by[len(block):]
	}
}

// sequence updates a block's coefficients one after the other: each knows what those before it
// have changed. What two have to do with each other is curved as both are by themselves.
func (r *run) sequence(block []int32, times int, by []float64) {
	root := make([]float64, len(block))
	for i, j := range block {
		root[i] = math.Sqrt(r.curved[j] / r.square[j])
	}
	for range times {
		for i, j := range block {
			g := r.gradient[j]
			for l, k := range block {
				if l != i && by[l] != 0 {
					g += float64(float64(root[i]*root[l]) * r.pairs[pair(j, k)] * by[l])
				}
			}
			h := r.curved[j]
			now := r.b[j] + by[i]
			g += float64(h * by[i])
			by[i] = soft(now-g/h, r.L1/h) - r.b[j]
		}
	}
}

// apply moves coefficients, all the way or a part of it.
func (r *run) apply(ctx context.Context, m moves) error {
	var rows []int32
	for i, j := range m.list {
		by := m.by[i]
		r.X.each(j, func(i int32, x float64) {
			if r.along[i] == 0 {
				rows = append(rows, i)
			}
			r.along[i] += float64(by * x)
		})
	}
	r.seen.Updates += len(m.list)
	part, err := r.part(ctx, m, rows)
	if err != nil {
		return err
	}
	for i, j := range m.list {
		was, by := r.b[j], float64(part*m.by[i])
		r.b[j] += by
		r.moved(j, float64(m.by[i]*math.Sqrt(r.square[j])), was == 0 && by == 0)
	}
	for _, i := range rows {
		r.z[i] += float64(part * r.along[i])
		r.slope[i], r.along[i] = r.Loss.Slope(r.Y[i], r.z[i]), 0
	}
	return nil
}

// part is how much of moves is good. What blocks have to do with each other may make the objective
// rise: then they go the part of the way that is best, by what is known of its curvature.
func (r *run) part(ctx context.Context, m moves, rows []int32) (float64, error) {
	if r.Policy == Unchecked || len(m.list) == 0 {
		return 1, nil
	}
	own := make([]float64, 2)
	for _, i := range rows {
		v := r.along[i]
		own[0] += float64(r.Loss.bend(r.Y[i], r.slope[i]) * float64(v*v))
		own[1] = max(own[1], math.Abs(v))
	}
	all, err := r.tell(ctx, own)
	bend, far := 0.0, 0.0
	for _, of := range all {
		bend, far = bend+of[0], max(far, of[1])
	}
	if r.Loss == Squares {
		far = 0
	}
	if m.slope+float64(bend*rise(far)) <= 0 {
		return 1, err
	}
	if far == 0 {
		return -m.slope / bend, err
	}
	return libm.Log1p(-float64(m.slope*far)/bend) / far, err
}

// rise is how much of a second derivative a function rises by above its tangent in a step of
// length 1 at most, if that derivative changes by a factor of at most e to the power of far.
func rise(far float64) float64 {
	if far < 0.001 { // where the difference below has no digits
		return libm.Exp(far) / 2
	}
	return (libm.Exp(far) - 1 - far) / float64(far*far)
}
