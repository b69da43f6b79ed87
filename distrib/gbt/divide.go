package gbt

import "slices"

// bySample reports whether workers divide the samples; else they divide features.
func (w *Worker) bySample() bool { return w.schedule.Space[1] == 0 }

// parts are the indices that a worker has, those of each of its blocks.
func (w *Worker) parts(rank int) (list [][]int) {
	if rank >= len(w.schedule.Blocks) {
		return nil
	}
	cuts := w.schedule.Across.Cuts
	for _, b := range w.schedule.Blocks[rank] {
		list = append(list, span{int(cuts[b.Space]), int(cuts[b.Space+1])}.list())
	}
	return list
}

// list is the numbers of a span.
func (s span) list() []int {
	x := make([]int, s.to-s.from)
	for i := range x {
		x[i] = s.from + i
	}
	return x
}

// divide finds what this worker has: samples, blocks, and the features that all find splits by.
func (w *Worker) divide() {
	own, n := w.parts(w.Group.Rank()), w.Group.Size()
	all := span{0, w.Data.Cols}.list()
	counted, found := all, make([][]int, n)
	w.sets, w.blocks, w.rows, w.found = nil, nil, nil, nil
	if w.bySample() {
		for _, part := range own {
			w.blocks = append(w.blocks, block{w.set(part), all})
		}
		for rank := range found {
			found[rank] = all[len(all)*rank/n : len(all)*(rank+1)/n]
		}
	} else {
		set := w.set(span{0, w.Data.Rows}.list())
		for _, part := range own {
			w.blocks = append(w.blocks, block{set, part})
		}
		for rank := range found {
			found[rank] = slices.Sorted(slices.Values(slices.Concat(w.parts(rank)...)))
		}
		counted = found[w.Group.Rank()]
	}
	w.limit()
	w.counted, w.owner = layoutOf(counted, w.limits), make([]int, len(all))
	for rank, features := range found {
		w.found = append(w.found, layoutOf(features, w.limits))
		for _, j := range features {
			w.owner[j] = rank
		}
	}
}

// set is samples of this worker's that are counted together.
func (w *Worker) set(rows []int) *samples {
	s := &samples{leaf: make([]span, nodes(w.Depth))}
	for k := range rows {
		s.order = append(s.order, int32(len(w.rows)+k))
	}
	w.rows, w.sets = append(w.rows, rows...), append(w.sets, s)
	return s
}

// limit finds where bins end.
func (w *Worker) limit() {
	x := make([]float32, w.Data.Rows)
	w.limits = make([][]float32, w.Data.Cols)
	for j := range w.limits {
		w.Data.Column(j, x)
		w.limits[j] = limits(x)
	}
}

// quantise finds in which bins the worker's samples are.
func (w *Worker) quantise() {
	x, own := make([]float32, w.Data.Rows), make([]float32, len(w.rows))
	w.bins = make([][]uint8, w.Data.Cols)
	for _, j := range w.counted.features {
		w.Data.Column(j, x)
		for i, row := range w.rows {
			own[i] = x[row]
		}
		w.bins[j] = quantise(own, w.limits[j])
	}
}

// recall has the forest say of the worker's samples what it says by now.
func (w *Worker) recall() {
	w.says = make([]float64, len(w.rows))
	for i := range w.says {
		w.says[i] = float64(w.forest.Base)
	}
	columns := map[int32][]float32{}
	for _, t := range w.forest.Trees {
		for _, n := range t {
			if n.Feature >= 0 && columns[n.Feature] == nil {
				columns[n.Feature] = make([]float32, w.Data.Rows)
				w.Data.Column(int(n.Feature), columns[n.Feature])
			}
		}
		for i, row := range w.rows {
			w.says[i] += float64(t.At(func(j int32) float32 { return columns[j][row] }))
		}
	}
}
