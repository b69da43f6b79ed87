package gbt

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/gomem/gomem/distrib/collective"
)

// leaf is one of the tree that grows. Of two that were one, the smaller is counted.
type leaf struct {
	node   int
	open   bool   // may be split
	parent []sums // the histogram that the other one is taken off; nil: this one is counted
	other  *leaf

	counted []sums // by this worker
	hist    []sums // of all samples, and of the features that this worker finds splits by
}

// errDiverged is what comes of steps that are too long.
var errDiverged = errors.New("the loss is no number any more: take a lower rate")

// derive has all know how well the forest does, and the worker what the next tree is to follow.
func (w *Worker) derive(ctx context.Context) error {
	g, h := make([]float64, len(w.says)), make([]float64, len(w.says))
	p, most := Progress{Trees: len(w.forest.Trees)}, [2]float64{}
	for i, row := range w.rows {
		y := w.Data.Label[row]
		var loss float64
		loss, g[i], h[i] = w.Loss.at(y, w.says[i])
		most[0], most[1] = max(most[0], math.Abs(g[i])), max(most[1], h[i])
		p.Loss += loss
		if w.Loss == Logistic && (w.says[i] > 0) != (y == 1) {
			p.Errors++
		}
	}
	if err := w.agree(ctx, &p, &most); err != nil {
		return err
	}
	w.units = units{unit(most[0]), unit(most[1])}
	w.derived = make([]pair, len(g))
	for i := range g {
		w.derived[i] = w.units.pair(g[i], h[i])
	}
	w.plant()
	if w.After == nil {
		return nil
	}
	return w.After(ctx, p)
}

// tell tells all others something, and is what all say, who say as much, by rank.
func (w *Worker) tell(ctx context.Context, own []byte) ([][]byte, error) {
	all := make([]byte, len(own)*w.Group.Size())
	copy(all[len(own)*w.Group.Rank():], own)
	if err := collective.AllGather(ctx, w.Group, all); err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(all, len(own))), nil
}

// agree makes a worker's progress, and its largest derivatives, those of all.
func (w *Worker) agree(ctx context.Context, p *Progress, most *[2]float64) error {
	var own []byte
	for _, x := range []float64{p.Loss, float64(p.Errors), most[0], most[1]} {
		own = binary.LittleEndian.AppendUint64(own, math.Float64bits(x))
	}
	all, err := w.tell(ctx, own)
	if err != nil {
		return err
	}
	if !w.bySample() { // all say the same
		all = all[:1]
	}
	p.Loss, p.Errors = 0, 0
	for _, b := range all {
		at := func(k int) float64 {
			return math.Float64frombits(binary.LittleEndian.Uint64(b[8*k:]))
		}
		p.Loss, p.Errors = p.Loss+at(0), p.Errors+int(at(1))
		most[0], most[1] = max(most[0], at(2)), max(most[1], at(3))
	}
	if math.IsNaN(p.Loss) || math.IsInf(p.Loss, 0) {
		return errDiverged
	}
	return nil
}

// plant begins a tree.
func (w *Worker) plant() {
	w.tree = newTree(w.Depth)
	w.level = []*leaf{{open: true}}
	for _, s := range w.sets {
		s.begin()
	}
}

// count is what a block of the schedule does: it adds its samples to the histograms of the leaves
// that are counted.
func (w *Worker) count(_ context.Context, _, index int) error {
	b := &w.blocks[index]
	for _, l := range w.level {
		if l.parent != nil {
			continue
		}
		if l.counted == nil {
			l.counted = w.counted.histogram()
		}
		w.spare = b.count(l.node, w, l.counted, w.spare)
	}
	return nil
}

// grow splits what leaves can be, once all blocks have counted them.
func (w *Worker) grow(ctx context.Context, pass int) error {
	if len(w.level) > 0 {
		if err := w.reduce(ctx); err != nil {
			return err
		}
		splits, err := w.search(ctx)
		if err == nil {
			err = w.split(ctx, splits)
		}
		if err != nil {
			return err
		}
	}
	if (pass+1)%w.Depth != 0 {
		return nil
	}
	w.harvest()
	return w.derive(ctx)
}

// reduce has each worker have the histograms of the features that it finds splits by.
func (w *Worker) reduce(ctx context.Context) error {
	var counted []*leaf
	for _, l := range w.level {
		if l.parent == nil {
			counted = append(counted, l)
		}
	}
	if err := w.addUp(ctx, counted); err != nil {
		return err
	}
	for _, l := range w.level {
		for i := range l.parent { // of which nothing else is left to know
			l.parent[i] = l.parent[i].less(l.other.hist[i])
		}
		if l.parent != nil {
			l.hist = l.parent
		}
	}
	return nil
}

// addUp adds up what workers have counted.
func (w *Worker) addUp(ctx context.Context, counted []*leaf) error {
	me, n := w.Group.Rank(), w.Group.Size()
	for _, l := range counted {
		l.counted = orEmpty(l.counted, w.counted)
	}
	if !w.bySample() || n == 1 {
		for _, l := range counted {
			l.hist = l.counted
		}
		return nil
	}
	own := w.found[me]
	out, in := make([][]byte, n), make([][]byte, n)
	for rank, found := range w.found {
		for _, l := range counted {
			for _, j := range found.features {
				out[rank] = appendAll(out[rank], w.counted.bins(l.counted, j))
			}
		}
		in[rank] = make([]byte, len(counted)*own.cells*sumsBytes)
	}
	if err := collective.AllToAllV(ctx, w.Group, out, in); err != nil {
		return err
	}
	for i, l := range counted {
		l.hist = own.histogram()
		for _, b := range in {
			b = b[i*own.cells*sumsBytes:]
			for k := range l.hist {
				l.hist[k].add(sumsOf(b[k*sumsBytes:]))
			}
		}
	}
	return nil
}

// orEmpty is a histogram, if a worker has no block that has begun one.
func orEmpty(h []sums, l *layout) []sums {
	if h == nil {
		return l.histogram()
	}
	return h
}

func appendAll(b []byte, all []sums) []byte {
	for _, s := range all {
		b = s.append(b)
	}
	return b
}

// search finds the best splits of leaves, by all features.
func (w *Worker) search(ctx context.Context) ([]split, error) {
	var own []byte
	for _, l := range w.level {
		s := split{feature: -1}
		if l.open {
			s = w.best(l.hist, w.found[w.Group.Rank()], w.units)
		}
		own = s.append(own)
	}
	all, err := w.tell(ctx, own)
	if err != nil {
		return nil, err
	}
	splits := make([]split, len(w.level))
	for i := range splits {
		for _, b := range all {
			splits[i] = splits[i].better(splitOf(b[i*splitBytes:]))
		}
	}
	return splits, nil
}

// split makes the leaves of the next level.
func (w *Worker) split(ctx context.Context, splits []split) error {
	sides, err := w.sides(ctx, splits)
	if err != nil {
		return err
	}
	level := w.level
	w.level = nil
	for i, s := range splits {
		l := level[i]
		if l.node == 0 {
			w.tree[0].Value = w.value(s.all, w.units)
		}
		if !l.open || s.feature < 0 {
			continue
		}
		for _, set := range w.sets {
			set.split(l.node, w.goesLeft(s, sides[i]))
		}
		w.branch(l, s)
	}
	return nil
}

// branch makes a leaf a question with two leaves below it.
func (w *Worker) branch(l *leaf, s split) {
	right := s.all.less(s.left)
	w.tree[l.node].Feature, w.tree[l.node].Limit = s.feature, w.limits[s.feature][s.bin]
	a, b := &leaf{node: 2*l.node + 1}, &leaf{node: 2*l.node + 2}
	w.tree[a.node].Value, w.tree[b.node].Value = w.value(s.left, w.units), w.value(right, w.units)
	if b.node >= len(w.tree)/2 { // the last level
		return
	}
	a.open, b.open = w.divisible(s.left), w.divisible(right)
	if !a.open && !b.open {
		return
	}
	small, large := a, b
	if right.n < s.left.n {
		small, large = b, a
	}
	w.level = append(w.level, small)
	if large.open {
		large.parent, large.other = l.hist, small
		w.level = append(w.level, large)
	}
}

// divisible reports whether a leaf has the samples for two.
func (w *Worker) divisible(s sums) bool { return s.n >= 2*int64(w.MinLeaf) }

// sides are which samples of each leaf go left, a bit each, as those know whose features they are.
// Where workers divide samples, all have all features, and nobody tells.
func (w *Worker) sides(ctx context.Context, splits []split) ([][]byte, error) {
	sides := make([][]byte, len(splits))
	if w.bySample() {
		return sides, nil
	}
	me, n := w.Group.Rank(), w.Group.Size()
	out, in := make([][]byte, n), make([][]byte, n)
	set := w.sets[0]
	var own []byte
	for i, s := range splits {
		if s.feature < 0 {
			continue
		}
		node, by := w.level[i].node, w.owner[s.feature]
		bits := make([]byte, (len(set.of(node))+7)/8)
		if by == me {
			for k, row := range set.of(node) {
				if int32(w.bins[s.feature][row]) <= s.bin {
					bits[k/8] |= 1 << (k % 8)
				}
			}
			own = append(own, bits...)
		}
		in[by] = append(in[by], bits...)
	}
	for rank := range out {
		out[rank] = own
	}
	if err := collective.AllToAllV(ctx, w.Group, out, in); err != nil {
		return nil, err
	}
	for i, s := range splits {
		if s.feature >= 0 {
			by, size := w.owner[s.feature], (len(set.of(w.level[i].node))+7)/8
			sides[i], in[by] = in[by][:size], in[by][size:]
		}
	}
	return sides, nil
}

// goesLeft says which samples of a leaf go left, by these bits if there are some.
func (w *Worker) goesLeft(s split, bits []byte) func(k int, sample int32) bool {
	if bits != nil {
		return func(k int, _ int32) bool { return bits[k/8]>>(k%8)&1 == 1 }
	}
	bins := w.bins[s.feature]
	return func(_ int, sample int32) bool { return int32(bins[sample]) <= s.bin }
}

// harvest adds the tree to the forest.
func (w *Worker) harvest() {
	for node, n := range w.tree {
		if n.Feature >= 0 {
			continue
		}
		for _, s := range w.sets {
			for _, i := range s.of(node) {
				w.says[i] += float64(n.Value)
			}
		}
	}
	w.forest.Trees = append(w.forest.Trees, w.tree)
}
