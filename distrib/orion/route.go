package orion

import (
	"cmp"
	"slices"
)

// route is what a worker's arrays do in a pass: which elements go with which part of time, whom
// that part comes from, and who has it next. Parts of time go round: who is the last to have one
// in a pass hands it on to who begins the next pass with it.
type route struct {
	turns        []turn
	shared       []bool       // by array: changed, and not divided
	next, before []int        // by part of time: ranks
	parts        [][]Elements // by part of time
	owned        [][]Elements // by rank: what a worker has when it is at home
}

// Own are the elements of arrays which the worker of a rank begins a pass with, and no other has.
func (s *Schedule) Own(rank int) []Elements { return s.route(rank).owned[rank] }

// turn is a block of the worker's.
type turn struct {
	Block
	takes  bool // its part of time comes from another worker
	begins bool // but this worker begins the pass with it
	gives  bool // and it goes to another one then
	ends   bool // who begins the next pass with it
}

// Elements are those of an array, by its number, that lie one behind the other.
type Elements struct {
	Array   int
	From, N int64
}

// route is that of a worker.
func (s *Schedule) route(rank int) *route {
	arrays, users := s.divisions(), s.users()
	r := &route{shared: shared(arrays), next: make([]int, len(users)),
		before: make([]int, len(users)),
		parts:  make([][]Elements, len(users)), owned: make([][]Elements, s.Workers)}
	if rank < len(s.Blocks) {
		r.turns = turns(s.Blocks[rank], users, rank)
	}
	for t, ranks := range users {
		r.parts[t] = s.part(arrays, rotates, s.Along, t)
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
				r.owned[w] = append(r.owned[w], s.part(arrays, stays, s.Across, b.Space)...)
			}
			seen[b.Space] = true
		}
	}
	return r
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
		list = append(list, turn{Block: b, takes: many && first[b.Time] == i,
			begins: ranks[0] == rank, gives: many && last[b.Time] == i,
			ends: ranks[len(ranks)-1] == rank})
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
