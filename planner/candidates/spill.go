package candidates

import (
	"context"
	"sort"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/spill"
)

// spillLevels is how many levels there are of the use of a disk. At level 0 nothing is
// there, at all others everything that can be, but for variables and constants: none of
// these at level 1, all at the last, and parts by bytes between. The last level decides
// what the least of the host's memory is.
const spillLevels = 4

// levels is how many levels there are of the use of a disk.
func (s *Search) levels() int {
	if s.Options.DiskBytes == 0 {
		return 1
	}
	return spillLevels
}

// leaves decides what is on the disk at each level: what all targets say of it
// together, since they share the variables.
func (s *Search) leaves() {
	if s.levels() == 1 {
		return
	}
	var programs []*program.Program
	for _, j := range s.each {
		programs = append(programs, j.sketches.program)
	}
	s.order = spill.Order(programs...)
	leaves := make([][]bool, spillLevels)
	for level := 1; level < spillLevels; level++ {
		leaves[level] = spill.First(s.Graph, s.share(int64(level-1), spillLevels-2))
	}
	for _, j := range s.each {
		j.sketches.leaves = leaves
	}
}

// share is the first leaves that have some parts of the bytes of all.
func (s *Search) share(parts, of int64) []graph.NodeID {
	var total, sum int64
	for _, id := range s.order {
		total += s.Graph.Node(id).Out[0].Bytes()
	}
	for k, id := range s.order {
		if parts < of && sum >= total/of*parts {
			return s.order[:k]
		}
		sum += s.Graph.Node(id).Out[0].Bytes()
	}
	return s.order
}

// diskAhead is by how many events loads from the disk come early, and stores are late,
// at most.
const diskAhead = 128

// spill is the results with a level of use of the disk, or nil if some target has none.
// What is granted is what fits with all on the disk that the level allows; what is
// taken has as much on the host as the budget allows, if that is faster.
func (s *Search) spill(level int) ([]*Drawn, error) {
	plans, err := s.straight(level)
	if plans == nil || err != nil {
		return nil, err
	}
	c := Among(s.each[0].sketches.prices, plans)
	homes, err := s.bound(plans)
	if err != nil {
		return nil, err
	}
	for _, leaves := range homes {
		all, err := s.roomy(plans, spill.Options{Leaves: leaves, HostBytes: s.Options.HostBytes,
			Ahead: diskAhead})
		if err != nil {
			return nil, err
		}
		c.enter(all)
	}
	if !s.Options.Policy.Searches() {
		return c.Best(), nil
	}
	for _, j := range s.each {
		j.solver.disk = &spill.Options{Leaves: homes[0], Ahead: diskAhead}
	}
	found, err := s.fastest()
	c.enter(found)
	return c.Best(), err
}

// bound are the leaves to try: the fewest, in order, with which the host's load can keep
// to the budget under all targets, and all of them.
func (s *Search) bound(plans []*Drawn) ([][]bool, error) {
	var bases []*program.Program
	for i, j := range s.each {
		p, err := j.unspilled(s.ctx, plans[i].Candidate)
		if err != nil {
			return nil, err
		}
		bases = append(bases, p)
	}
	first := func(n int) []bool { return spill.First(s.Graph, s.order[:n]) }
	fewest := sort.Search(len(s.order), func(n int) bool {
		leaves := first(n)
		for _, p := range bases {
			if spill.Least(s.Graph, p.Schedule, leaves) > s.Options.HostBytes {
				return false
			}
		}
		return true
	})
	if fewest == len(s.order) {
		return [][]bool{first(fewest)}, nil
	}
	return [][]bool{first(fewest), first(len(s.order))}, nil
}

// roomy is the results of plans with as much on the host as fits, or nil if packing
// loses too much for some target.
func (s *Search) roomy(plans []*Drawn, o spill.Options) ([]*Drawn, error) {
	var list []*Drawn
	for i, j := range s.each {
		start := time.Now()
		f, err := j.relaxed(s.ctx, plans[i].Candidate, o)
		j.took += time.Since(start)
		if f == nil || err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// relaxed is a plan by a candidate with as much on the host as fits, or nil if there is none.
// Where packing loses some of the budget, less is aimed at.
func (j *targetSearch) relaxed(ctx context.Context, w Candidate, o spill.Options) (*Drawn, error) {
	base, err := j.unspilled(ctx, w)
	if err != nil {
		return nil, err
	}
	for k := range int64(repairs) {
		if o.HostBytes <= 0 {
			return nil, nil
		}
		filled := *base
		p, err := sketched(ctx, &filled, []program.Pass{spill.Pass(o)}, w.options)
		if err != nil {
			return nil, err
		}
		p.Pack(lower.Need{}, 0)
		n := p.Need
		if n.Within(w.options.Budgets()) {
			return &Drawn{Candidate: w, title: w.title(), sketch: p,
				program: &filled,
				timings: j.sketches.timings, time: p.Time(j.sketches.prices)}, nil
		}
		next := shrunk(o.HostBytes, w.options.HostBytes, n[space.Host], k)
		if next == o.HostBytes {
			return nil, nil // another memory is short
		}
		o.HostBytes = next
	}
	return nil, nil
}

// unspilled is the program of a candidate with a schedule that has nothing on the disk.
func (j *targetSearch) unspilled(ctx context.Context, w Candidate) (*program.Program, error) {
	if err := j.sketches.decide(ctx, w); err != nil {
		return nil, err
	}
	filled := *j.sketches.program
	filling, err := j.sketches.schedule(ctx, w)
	if err == nil {
		_, err = program.Run(ctx, &filled, []program.Pass{filling})
	}
	return &filled, err
}
