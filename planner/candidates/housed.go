package candidates

import (
	"context"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/search"
)

// housings is how many levels there are of variables on the device: at level k the largest
// are, k parts in so many of the bytes. At the last all are that may be.
const housings = 8

// housed are candidates that keep some of the variables on the device, by level, which all targets
// go together: what the host has no room for is taken from it as a whole, and not at each use.
// Of the intermediates all are kept, or what crosses from one segment to the next.
func housed(o Options) [][]Candidate {
	segments := segmented(o)
	if segments == nil {
		return nil
	}
	kept := segments[0]
	kept.Segments = search.Whole
	var list [][]Candidate
	for level := 1; level <= housings; level++ {
		var candidates []Candidate
		for _, w := range append([]Candidate{kept}, segments...) {
			w.Housed = level
			candidates = append(candidates, w)
		}
		list = append(list, candidates)
	}
	return list
}

// housing is where variables are at each level, for all targets of a graph. It depends on
// nothing else than the graph and what the targets execute, and is worked out when it is needed.
type housing struct {
	each  []*targetSearch
	homes [housings + 1][]bool
	needs [housings + 1]lower.Need // at least; of level 0 with all variables on the host
}

// at is which variables and constants are on the device at a level, by node.
func (h *housing) at(ctx context.Context, level int) ([]bool, error) {
	if h.homes[level] != nil {
		return h.homes[level], nil
	}
	var problems []*search.Problem
	for _, j := range h.each {
		p := j.sketches.undecided()
		if _, err := program.Run(ctx, p, []program.Pass{program.DeadCode(),
			order.Creation()}); err != nil {
			return nil, err
		}
		w := Candidate{Tuning: Tuning{Segments: 1}}
		problems = append(problems, j.sketches.segmentable(p, w))
	}
	h.homes[level] = search.Housing(problems, int64(level), housings)
	return h.homes[level], nil
}

// Group is candidates to plan all targets together, as far as they agree on where variables
// are and on how much is on the disk.
type Group struct {
	candidates func(ladder) []Candidate
	housed     int        // the level of variables on the device, if it is of that
	bare       bool       // the variables are on the host, and nothing is on the disk
	needs      lower.Need // at least, once that has been asked
}

// groups are all that decide about a refusal, if those targets that go by candidates of their own
// take some of a ladder's.
func (s *Search) groups(own func(ladder) []Candidate) []Group {
	var list []Group
	for level := range s.levels() {
		list = append(list, Group{bare: level == 0 && s.placed(),
			candidates: func(l ladder) []Candidate { return own(l.at(level)) }})
	}
	for i := range s.each[0].ladder.together {
		list = append(list,
			Group{candidates: func(l ladder) []Candidate { return l.together[i : i+1] }})
	}
	for i := range s.each[0].ladder.housed {
		list = append(list, Group{housed: i + 1,
			candidates: func(l ladder) []Candidate { return l.housed[i] }})
	}
	return list
}

// placed reports whether candidates that targets take alone have all variables on the host.
func (s *Search) placed() bool {
	return s.Options.Policy.Partitioned() && !s.Options.NoPlacement
}

// AtLeast is what plans of a group need at least, as far as that is known without a schedule: of
// the device what the neediest operation touches beside the variables that are there, and of the
// host the other variables and the inputs. Ways with variables on the device are for those who have
// more of it than the tightest candidate needs: they are not granted less, so that the least of the
// device is known without them.
func (s *Search) AtLeast(c Group) (lower.Need, error) {
	if c.housed == 0 && !c.bare || s.each[0].sketches.base.program == nil {
		return lower.Need{}, nil
	}
	if s.housing.needs[c.housed] != (lower.Need{}) {
		return s.housing.needs[c.housed], nil
	}
	if c.housed == 0 {
		s.housing.needs[0] = s.beside(nil)
		return s.housing.needs[0], nil
	}
	homes, err := s.housing.at(s.ctx, c.housed)
	if err != nil {
		return lower.Need{}, err
	}
	n := s.beside(homes)
	tightest, err := s.tightest()
	n[space.Device] = max(n[space.Device], tightest)
	s.housing.needs[c.housed] = n
	return n, err
}

// tightest is what the candidates need of the device that need the least as a rule.
func (s *Search) tightest() (int64, error) {
	var most int64
	for _, j := range s.each {
		n, err := j.sketches.need(s.ctx, j.ladder.last[len(j.ladder.last)-1])
		if err != nil {
			return 0, err
		}
		most = max(most, n[space.Device])
	}
	return most, nil
}

// beside is what plans need at least with some variables on the device, by node, and the others
// on the host.
func (s *Search) beside(homes []bool) lower.Need {
	var n lower.Need
	for _, j := range s.each {
		host := int64(0)
		for _, x := range s.Graph.Nodes() {
			leaf := x.Kind == graph.KindVariable || x.Kind == graph.KindConstant
			if leaf && (homes == nil || !homes[x.ID]) ||
				x.Kind == graph.KindInput && j.sketches.program.Live[x.ID] {
				host += s.Graph.Align().Up(x.Out[0].Bytes())
			}
		}
		n[space.Host] = max(n[space.Host], s.Graph.Align().Less(host))
		n[space.Device] = max(n[space.Device], j.touchedBeside(homes))
	}
	return n
}
