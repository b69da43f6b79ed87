package orion

import (
	"fmt"
	"math/rand/v2"
	"slices"

	_ "github.com/gomem/gomem/internal/longtest" // sets the cases that are drawn
)

// drawLoop is a loop of a few iterations. With plain references, analysis promises to be exact.
func drawLoop(rng *rand.Rand, plain bool) *Loop {
	l := &Loop{Ordered: rng.IntN(2) == 0}
	for k := range 1 + rng.IntN(3) {
		l.Space = append(l.Space, Dim{string(rune('i' + k)), 1 + rng.Int64N(5)})
	}
	size := int64(5)
	if plain {
		size = 8
	}
	for k := range 1 + rng.IntN(2) {
		a := Array{Name: string(rune('A' + k)), Bytes: 4}
		dim := make([]int, 3)
		for d := range 1 + rng.IntN(3) {
			dim[d] = rng.IntN(len(l.Space))
			a.Shape = append(a.Shape, size)
		}
		l.Arrays = append(l.Arrays, a)
		for range 1 + rng.IntN(3) {
			r := Ref{Array: k, Access: Access(rng.IntN(5) / 2)}
			for d := range a.Shape {
				s := Subscript{Dim: dim[d], Add: rng.Int64N(4)}
				if !plain {
					s = Subscript{SubscriptForm(max(rng.IntN(7)-3, 0)), rng.IntN(len(l.Space)),
						rng.Int64N(6) - 2}
				}
				r.At = append(r.At, s)
			}
			l.Refs = append(l.Refs, r)
		}
	}
	return l
}

// valid draws until a loop is one.
func valid(rng *rand.Rand, plain bool) *Loop {
	for {
		if l := drawLoop(rng, plain); l.Check() == nil {
			return l
		}
	}
}

// all are the points of a loop's space, in order.
func all(l *Loop) [][]int64 {
	points := [][]int64{{}}
	for _, d := range l.Space {
		var longer [][]int64
		for _, p := range points {
			for x := range d.Size {
				longer = append(longer, append(slices.Clone(p), x))
			}
		}
		points = longer
	}
	return points
}

// touched are the elements that a reference is in an iteration; of a subscript that is all or
// unknown, of every value.
func touched(l *Loop, r Ref, p []int64) (out []string) {
	out = []string{l.Arrays[r.Array].Name}
	for k, s := range r.At {
		var values []int64
		switch s.Form {
		case Index:
			values = []int64{p[s.Dim] + s.Add}
		case Constant:
			values = []int64{s.Add}
		default:
			for x := range l.Arrays[r.Array].Shape[k] {
				values = append(values, x)
			}
		}
		var longer []string
		for _, e := range out {
			for _, x := range values {
				if x >= 0 && x < l.Arrays[r.Array].Shape[k] {
					longer = append(longer, fmt.Sprint(e, " ", x))
				}
			}
		}
		out = longer
	}
	return out
}

// dependent are the pairs of points, by their places, the earlier one first, that use the same
// element and of which one writes it.
func dependent(l *Loop, points [][]int64) map[[2]int]bool {
	type use struct {
		point int
		write bool
	}
	uses := map[string][]use{}
	for i, p := range points {
		for _, r := range l.Refs {
			if r.Access == Buffer {
				continue
			}
			for _, e := range touched(l, r, p) {
				uses[e] = append(uses[e], use{i, r.Access == Write})
			}
		}
	}
	pairs := map[[2]int]bool{}
	for _, list := range uses {
		for i, a := range list {
			for _, b := range list[i+1:] {
				if (a.write || b.write) && a.point != b.point {
					pairs[[2]int{min(a.point, b.point), max(a.point, b.point)}] = true
				}
			}
		}
	}
	return pairs
}

func minus(a, b []int64) []int64 {
	out := make([]int64, len(a))
	for k := range a {
		out[k] = a[k] - b[k]
	}
	return out
}

// covers reports whether a vector stands for a difference.
func (v Vector) covers(difference []int64) bool {
	for k, e := range v {
		if !e.has(difference[k]) {
			return false
		}
	}
	return true
}

// uncovered is a dependence that no vector covers, and its difference.
func uncovered(vectors []Vector, points [][]int64, pairs map[[2]int]bool) []int64 {
	for pair := range pairs {
		d := minus(points[pair[1]], points[pair[0]])
		if !slices.ContainsFunc(vectors, func(v Vector) bool { return v.covers(d) }) {
			return d
		}
	}
	return nil
}

// broken is a pair of dependent points that a schedule runs at the same time, or in the wrong order
// if the loop has one, and "" if there is none. It knows of a schedule what block a point is in,
// what each worker does, and what blocks wait for.
func broken(s *Schedule, points [][]int64, pairs map[[2]int]bool) string {
	clocks := map[Place][]int{} // how many blocks of each worker have ended before a block begins
	var ended func(p Place) []int
	ended = func(p Place) []int {
		if clock := clocks[p]; clock != nil {
			return clock
		}
		clock := make([]int, len(s.Blocks))
		clocks[p] = clock
		follow := func(q Place) {
			for w, n := range ended(q) {
				clock[w] = max(clock[w], n)
			}
			clock[q.Worker] = max(clock[q.Worker], q.Index+1)
		}
		if p.Index > 0 {
			follow(Place{p.Worker, p.Index - 1})
		}
		if after := s.Blocks[p.Worker][p.Index].After; after != nil {
			follow(*after)
		}
		return clock
	}
	follows := func(b, a Place) bool { return ended(b)[a.Worker] > a.Index }
	at := map[[2]int]Place{}
	for w, blocks := range s.Blocks {
		for i, b := range blocks {
			if _, twice := at[[2]int{b.Space, b.Time}]; twice {
				return fmt.Sprintf("block %d, %d is run twice", b.Space, b.Time)
			}
			at[[2]int{b.Space, b.Time}] = Place{w, i}
		}
	}
	where := make([]Place, len(points))
	for i, p := range points {
		place, ok := at[[2]int{s.Across.Part(p), s.Along.Part(p)}]
		if !ok {
			return fmt.Sprintf("%v is in no block", p)
		}
		where[i] = place
		if follows(place, place) {
			return fmt.Sprintf("block %v waits for itself", place)
		}
	}
	for pair := range pairs {
		a, b := where[pair[0]], where[pair[1]]
		if a == b || follows(b, a) || !s.Loop.Ordered && follows(a, b) {
			continue
		}
		return fmt.Sprintf("%v and %v, of blocks %v and %v", points[pair[0]], points[pair[1]], a, b)
	}
	return ""
}
