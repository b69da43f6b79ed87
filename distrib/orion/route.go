package orion

import (
	"cmp"
	"fmt"
	"slices"
)

// route is what a worker's arrays do in a pass: which elements go with which part of time, whom
// that part comes from, and who has it next. Parts of time go round: who is the last to have one
// in a pass hands it on to who begins the next pass with it.
type route struct {
	turns        []turn
	next, before []int        // by part of time: ranks
	parts        [][]Elements // by part of time
	owned        [][]Elements // by rank: what a worker has when it is at home
}

// turn is a block of the worker's.
type turn struct {
	Block
	takes  bool // its part of time comes from another worker
	begins bool // but this worker begins the pass with it
	gives  bool // and hands it on then
}

// Elements are those of an array, by its number, that lie one behind the other.
type Elements struct {
	Array   int
	From, N int64
}

// route is that of a worker.
func (s *Schedule) route(rank int) (*route, error) {
	arrays, err := s.divisions()
	if err != nil {
		return nil, err
	}
	users := s.users()
	r := &route{next: make([]int, len(users)), before: make([]int, len(users)),
		parts: make([][]Elements, len(users)), owned: make([][]Elements, s.Workers)}
	if rank < len(s.Blocks) {
		r.turns = turns(s.Blocks[rank], users, rank)
	}
	for t, ranks := range users {
		r.parts[t] = s.runs(arrays, Rotates, s.Along, t)
		r.owned[ranks[0]] = append(r.owned[ranks[0]], r.parts[t]...)
		if k := slices.Index(ranks, rank); k >= 0 {
			r.next[t] = ranks[(k+1)%len(ranks)]
			r.before[t] = ranks[(k+len(ranks)-1)%len(ranks)]
		}
	}
	for w, blocks := range s.Blocks {
		seen := map[int]bool{}
		for _, b := range blocks {
			if !seen[b.Space] {
				r.owned[w] = append(r.owned[w], s.runs(arrays, Stays, s.Across, b.Space)...)
			}
			seen[b.Space] = true
		}
	}
	return r, nil
}

func turns(blocks []Block, users [][]int, rank int) (list []turn) {
	first, last := map[int]int{}, map[int]int{}
	for i, b := range blocks {
		if _, ok := first[b.Time]; !ok {
			first[b.Time] = i
		}
		last[b.Time] = i
	}
	for i, b := range blocks {
		ranks := users[b.Time]
		many := len(ranks) > 1
		list = append(list, turn{b, many && first[b.Time] == i, ranks[0] == rank,
			many && last[b.Time] == i})
	}
	return list
}

// users are, of each part of time, the workers that have it one after the other; where workers do
// not wait for each other, the first alone.
func (s *Schedule) users() [][]int {
	users := make([][]int, s.Along.Parts())
	if s.Kind < Rotation {
		for t := range users {
			users[t] = []int{0}
		}
		return users
	}
	type use struct{ rank, step int }
	all := make([][]use, len(users))
	for rank, blocks := range s.Blocks {
		seen := map[int]bool{}
		for _, b := range blocks {
			if !seen[b.Time] {
				all[b.Time] = append(all[b.Time], use{rank, b.Step})
			}
			seen[b.Time] = true
		}
	}
	for t, list := range all {
		slices.SortFunc(list, func(a, b use) int { return cmp.Compare(a.step, b.step) })
		for _, u := range list {
			users[t] = append(users[t], u.rank)
		}
	}
	return users
}

// division is how an array that the loop changes is divided: all references have one index, with
// one number added, at one place.
type division struct {
	placement Placement // Served, of one that is not changed: all have it
	place     int       // -1: it is in one part
	add       int64
}

// divisions are those of all arrays. An array that cannot be divided so is an error.
func (s *Schedule) divisions() ([]division, error) {
	list := make([]division, len(s.Loop.Arrays))
	for i, a := range s.Loop.Arrays {
		list[i].placement = Served
		var refs []Ref
		writes := false
		for _, r := range s.Loop.Refs {
			if r.Array == i && r.Access != Buffer {
				refs = append(refs, r)
				writes = writes || r.Access == Write
			}
		}
		if !writes {
			continue
		}
		if len(s.Blocks) == 1 { // one worker has it all
			list[i] = division{placement: Stays, place: -1}
			continue
		}
		d, ok := divisionOf(a, refs, only(s.Space), only(s.Time))
		if !ok {
			return nil, fmt.Errorf("array %s is divided neither by space nor by time", a.Name)
		}
		list[i] = d
	}
	return list, nil
}

func divisionOf(a Array, refs []Ref, space, time int) (division, bool) {
	for placement, dim := range []int{Stays: space, Rotates: time} {
		for k := range a.Shape {
			first := refs[0].At[k]
			other := func(r Ref) bool { return r.At[k] != first }
			if dim >= 0 && first.Form == Index && first.Dim == dim &&
				!slices.ContainsFunc(refs, other) {
				return division{Placement(placement), k, first.Add}, true
			}
		}
	}
	return division{}, false
}

// runs are the elements of a part of an axis, of all arrays that are divided by it.
func (s *Schedule) runs(arrays []division, p Placement, axis Axis, part int) (list []Elements) {
	for i, d := range arrays {
		if d.placement != p {
			continue
		}
		if d.place < 0 {
			if part == 0 {
				list = append(list, Elements{i, 0, s.Loop.Arrays[i].Elements()})
			}
			continue
		}
		shape := s.Loop.Arrays[i].Shape
		size, outer, inner := shape[d.place], int64(1), int64(1)
		for _, n := range shape[:d.place] {
			outer *= n
		}
		for _, n := range shape[d.place+1:] {
			inner *= n
		}
		from := max(axis.Cuts[part]+d.add, 0)
		to := min(axis.Cuts[part+1]+d.add, size)
		for o := range outer {
			if from < to {
				list = append(list, Elements{i, (o*size + from) * inner, (to - from) * inner})
			}
		}
	}
	return list
}
