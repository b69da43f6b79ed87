package orion

import (
	"cmp"
	"iter"
	"slices"
)

// partsOf is how many parts of time, and of space where its order is free, there are for each
// worker: more than one, so that a worker has something to do while another one is late
// (figure 5.13), and parts can be dealt out by what is in them.
const partsOf = 2

// Schedule is who runs what when. Blocks of a worker are run one after the other, and the
// iterations of a block in lexicographic order.
type Schedule struct {
	*Choice
	Across, Along Axis      // space and time
	Blocks        [][]Block // of each worker that has any, in order
}

// Block is the iterations of one part of space and one of time. It waits for one block of another
// worker at most. What else it depends on is its own worker's, or comes before that one.
type Block struct {
	Step        int // as the thesis counts them: blocks of one step may run at the same time
	Space, Time int // numbers of parts
	After       *Place
}

// Place is a worker's block.
type Place struct{ Worker, Index int }

// Schedule divides iterations among the workers: the points, or all of the loop's space if there
// are none.
func (c *Choice) Schedule(points [][]int64) *Schedule {
	if points == nil {
		return c.Over(nil)
	}
	return c.Over(slices.Values(points))
}

// Over is [Choice.Schedule] of points in any order, which are gone through several times. One may
// be changed when the next is asked for.
func (c *Choice) Over(points iter.Seq[[]int64]) *Schedule {
	s := &Schedule{Choice: c}
	wide, long := partsOf*c.Workers, cmp.Or(c.times, partsOf)*c.Workers
	switch c.Kind {
	case Serial:
		wide, long = 1, 1
	case Wavefront, Unimodular:
		wide = c.Workers
	}
	s.Across, s.Along = c.axis(c.Space, wide, points), c.axis(c.Time, long, points)
	switch c.Kind {
	case Wavefront, Unimodular:
		s.advance()
	default:
		s.rotate(points)
	}
	return s
}

// rotate has each worker begin with parts of time of its own. Where time is not divided, it is all
// there is to do.
func (s *Schedule) rotate(points iter.Seq[[]int64]) {
	workers := min(s.Workers, s.Across.Parts())
	if s.Kind == Rotation {
		workers = min(workers, s.Along.Parts())
	}
	own := deal(s.weights(points), workers)
	times := s.Along.Parts()
	begin := func(w int) int { return w * times / workers }
	for w := range workers {
		var blocks []Block
		next := (w + 1) % workers
		ahead := begin(w+1) - begin(w)
		for step := range times {
			var after *Place
			if workers > 1 && times > 1 && step >= ahead {
				after = &Place{next, (step-ahead+1)*len(own[next]) - 1}
			}
			for _, part := range own[w] {
				blocks = append(blocks, Block{step, part, (begin(w) + step) % times, after})
				after = nil
			}
		}
		s.Blocks = append(s.Blocks, blocks)
	}
}

// advance has block (s, t) come after (s-1, t). Worker s has part s of space, so that (s, t-1) is
// its own.
func (s *Schedule) advance() {
	for part := range s.Across.Parts() {
		var blocks []Block
		for t := range s.Along.Parts() {
			b := Block{part + t, part, t, nil}
			if part > 0 {
				b.After = &Place{part - 1, t}
			}
			blocks = append(blocks, b)
		}
		s.Blocks = append(s.Blocks, blocks)
	}
}

// weights are how many iterations each part of space has, or how many indices where it has all.
func (s *Schedule) weights(points iter.Seq[[]int64]) []int64 {
	w := make([]int64, s.Across.Parts())
	if points == nil {
		for k := range w {
			w[k] = s.Across.Cuts[k+1] - s.Across.Cuts[k]
		}
		return w
	}
	for p := range points {
		w[s.Across.Part(p)]++
	}
	return w
}

// deal gives parts to workers, the heaviest first, each to who has the least; each worker has one.
func deal(weights []int64, workers int) [][]int {
	order := make([]int, len(weights))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	own, load := make([][]int, workers), make([]int64, workers)
	for _, part := range order {
		to := 0
		for w := range workers {
			if cmp.Or(cmp.Compare(load[w], load[to]), cmp.Compare(len(own[w]), len(own[to]))) < 0 {
				to = w
			}
		}
		own[to], load[to] = append(own[to], part), load[to]+weights[part]
	}
	for _, parts := range own {
		slices.Sort(parts)
	}
	return own
}

// Steps is how many there are.
func (s *Schedule) Steps() (n int) {
	for _, blocks := range s.Blocks {
		n = max(n, blocks[len(blocks)-1].Step+1)
	}
	return n
}

// Loads are how many iterations each worker has: of the points, or, where there are none, how many
// indices of space.
func (s *Schedule) Loads(points [][]int64) []int64 {
	var seq iter.Seq[[]int64]
	if points != nil {
		seq = slices.Values(points)
	}
	weights := s.weights(seq)
	loads := make([]int64, len(s.Blocks))
	for w, blocks := range s.Blocks {
		seen := map[int]bool{}
		for _, b := range blocks {
			if !seen[b.Space] {
				loads[w] += weights[b.Space]
			}
			seen[b.Space] = true
		}
	}
	return loads
}
