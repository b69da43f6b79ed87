package candidates

import (
	"context"
	"slices"

	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/search"
)

// segmented are the candidates that keep of the forward pass only what crosses from one segment
// to the next.
func segmented(o Options) []Candidate {
	if o.NoPlacement || o.NoSwap || o.NoRecompute || o.Streams > 1 {
		return nil
	}
	var list []Candidate
	for level := search.Levels; level > 0; level-- {
		list = append(list, at(o, Tuning{Lookahead: o.Lookahead, Segments: level}))
	}
	return list
}

// segments is the pass that keeps what crosses from one segment to the next, with the variables
// where the candidate has them.
func (k *sketches) segments(ctx context.Context, w Candidate) (program.Pass, error) {
	var homes []bool
	if w.Housed > 0 {
		var err error
		if homes, err = k.housing.at(ctx, w.Housed); err != nil {
			return program.Pass{}, err
		}
	}
	return program.Pass{Name: "segments", Run: func(p *program.Program) error {
		problem := k.segmentable(p, w)
		p.Schedule = problem.Schedule(problem.Segmented(w.Segments, homes))
		return nil
	}}, nil
}

// segmentable is a program that has an order, as the planner sees it. By the prices of every
// machine it is worked out once for the candidates that spare the host, and once for the others.
func (k *sketches) segmentable(p *program.Program, w Candidate) *search.Problem {
	if w.Timed {
		return search.New(p, k.prices)
	}
	known := &k.cut[min(w.Segments, 2)-1]
	if *known == nil {
		*known = search.New(p, segmenting(w.Segments))
	}
	return *known
}

// segmenting are the prices by which the segments of a level are scheduled, on every machine: how
// long operations and copies are taken to be says how much is on the device at once, and how much
// on the host, and candidates decide what is refused, which no price may. The first level is there
// to spare the host: by a link so slow that what is away for a moment only stays on the device. The
// others spare the device: by one so fast that nothing waits there for it.
func segmenting(level int) machine.Model {
	p := machine.Profile{ElementBytes: 4,
		Device: machine.Rates{FLOPs: 4.38e12, Bytes: 360e9, Launch: 5000},
		Host:   machine.Rates{FLOPs: 200e9, Bytes: 40e9}, In: 12e9, Out: 12e9}
	if level > 1 {
		p.Host, p.In, p.Out = machine.Rates{FLOPs: 1e18, Bytes: 1e18}, 1e15, 1e15
	}
	return p.For("", nil)
}

// timed are plans, those of them that compute segments again by the machine's prices where
// that fits the budgets too, and is faster.
func (s *Search) timed(plans []*Drawn) ([]*Drawn, error) {
	plans = slices.Clone(plans)
	for i, j := range s.each {
		if w := plans[i].Candidate; w.Segments > 0 {
			w.Timed = true
			f, err := j.try(s.ctx, w, plans[i].time)
			if err != nil {
				return nil, err
			}
			if f != nil {
				plans[i] = f
			}
		}
	}
	return plans, nil
}
