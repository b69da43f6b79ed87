package strads

import (
	"cmp"
	"math"
	"slices"
)

// Solve improves coefficients, one after the other, until it is time to stop. An epoch looks at
// all coefficients, and then goes through those again and again that matter. The objective never
// rises. after is called with the coefficients of each epoch at the point, first with those that
// are there, and an error of its ends the run.
func (p *Problem) Solve(at *Point, stop Stop, after func(Progress) error) error {
	s, err := newState(p, at)
	if err == nil {
		err = stop.check()
	}
	if err != nil {
		return err
	}
	s.begin()
	for {
		s.lookAlone(stop)
		if err := after(s.seen); err != nil || s.seen.Done {
			return err
		}
		s.sweeps(s.working())
		s.seen.Epoch++
	}
}

// lookAlone looks at all coefficients of a problem whose samples are all here.
func (s *state) lookAlone(stop Stop) {
	s.predict()
	for _, j := range s.live {
		s.gradient[j] = s.X.dot(j, s.slope)
	}
	sums := s.sums()
	scale := s.scale(sums)
	s.look(stop, sums, scale, s.conjugates(scale))
}

// working are the coefficients of an epoch: those that are not 0, and of the others that are not
// to stay 0 twice as many, or so, those that are farthest from it.
func (s *state) working() []int32 {
	var at, off []int32
	for _, j := range s.live {
		switch {
		case s.b[j] != 0:
			at = append(at, j)
		case math.Abs(s.gradient[j]) > s.L1:
			off = append(off, j)
		}
	}
	far := func(j int32) float64 {
		return (math.Abs(s.gradient[j]) - s.L1) / math.Sqrt(s.square[j])
	}
	if n := max(fewest, 2*len(at)); n < len(off) {
		slices.SortFunc(off, func(i, j int32) int {
			return cmp.Or(cmp.Compare(far(j), far(i)), cmp.Compare(i, j))
		})
		off = off[:n]
	}
	list := append(at, off...)
	slices.Sort(list)
	return list
}

// An epoch takes at least so many coefficients from 0, and at most so many sweeps, which end when
// one gains less than this part of what the first one did.
const (
	fewest    = 64
	mostTimes = 100
	enough    = 0.003
)

// sweeps goes through coefficients until that is of little use.
func (s *state) sweeps(list []int32) {
	first := 0.0
	for range mostTimes {
		gain := 0.0
		for _, j := range list {
			by := s.stepNear(j, s.X.dot(j, s.slope))
			s.move(j, by)
			gain += float64(float64(by*by) * s.square[j])
		}
		s.seen.Updates += len(list)
		first = max(first, gain)
		if gain <= enough*first {
			return
		}
	}
}
