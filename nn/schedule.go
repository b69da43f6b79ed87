package nn

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/internal/libm"
)

// Schedule is a learning rate over steps, from 0. It is a value that can be
// compared.
type Schedule interface {
	At(step int) float32
}

// Constant is the same learning rate at every step.
type Constant float32

// At is the learning rate.
func (c Constant) At(int) float32 { return float32(c) }

// Validate reports a learning rate that is no positive number.
func (c Constant) Validate() error {
	if !(c > 0) || math.IsInf(float64(c), 0) {
		return fmt.Errorf("learning rate is %v: want a positive number", float32(c))
	}
	return nil
}

// InverseSqrt is linear warm-up, then decay with the inverse square root of the
// step, and, if Total is given, a linear decay to zero over the last steps. It is
// "linear_warmup*rsqrt_decay*linear_decay" of Tensor2Tensor.
type InverseSqrt struct {
	Scale  float64 // multiplies the whole; the peak is Scale/√Warmup
	Warmup int     // steps until the peak
	Total  int     // steps of the run; 0: no final decay
	Decay  int     // steps of the final decay
}

// At is the learning rate of a step, from 0.
func (s InverseSqrt) At(step int) float32 {
	t, warmup := float64(step)+1, math.Max(1, float64(s.Warmup))
	rate := s.Scale * math.Min(1, t/warmup) / math.Sqrt(math.Max(t, warmup))
	if s.Total > 0 {
		left := (float64(s.Total) - float64(step)) / math.Max(1, float64(s.Decay))
		rate *= math.Min(1, math.Max(0, left))
	}
	return float32(rate)
}

// Validate reports numbers that no run can have, on one line.
func (s InverseSqrt) Validate() error {
	switch {
	case !(s.Scale > 0) || math.IsInf(s.Scale, 0):
		return fmt.Errorf("learning rate scale is %v: want a positive number", s.Scale)
	case s.Warmup < 1:
		return fmt.Errorf("learning rate warm-up is %d steps: want 1 or more", s.Warmup)
	case s.Total < 0 || s.Decay < 0:
		return fmt.Errorf("learning rate decay over %d of %d steps: neither may be negative",
			s.Decay, s.Total)
	}
	return nil
}

// Stepwise is linear warm-up to Rate, then a tenth of what it was at each of the
// steps of Drops that is not 0.
type Stepwise struct {
	Rate   float64
	Warmup int
	Drops  [4]int
}

// At is the learning rate of a step, from 0.
func (s Stepwise) At(step int) float32 {
	rate := s.Rate * warm(step, s.Warmup)
	for _, drop := range s.Drops {
		if drop > 0 && step >= drop {
			rate /= 10
		}
	}
	return float32(rate)
}

// warm is the share of the rate at a step of a linear warm-up.
func warm(step, warmup int) float64 {
	return math.Min(1, float64(step+1)/math.Max(1, float64(warmup)))
}

// Validate reports numbers that no run can have, on one line.
func (s Stepwise) Validate() error { return validate(s.Rate, s.Warmup) }

// validate reports what no warm-up to a rate can be.
func validate(rate float64, warmup int) error {
	switch {
	case !(rate > 0) || math.IsInf(rate, 0):
		return fmt.Errorf("learning rate is %v: want a positive number", rate)
	case warmup < 0:
		return fmt.Errorf("learning rate warm-up is %d steps: want 0 or more", warmup)
	}
	return nil
}

// LinearDecay is linear warm-up to Rate, then a straight line to Rate·Floor, which is
// reached at step Total and kept.
type LinearDecay struct {
	Rate   float64
	Warmup int
	Total  int     // steps of the run
	Floor  float64 // share of Rate that is left at the end
}

// At is the learning rate of a step, from 0.
func (s LinearDecay) At(step int) float32 {
	left := 1 - decayed(step, s.Warmup, s.Total)
	return float32(s.Rate * warm(step, s.Warmup) * (s.Floor + float64((1-s.Floor)*left)))
}

// Validate reports numbers that no run can have, on one line.
func (s LinearDecay) Validate() error { return validateDecay(s.Rate, s.Warmup, s.Total, s.Floor) }

// CosineDecay is linear warm-up to Rate, then half a cosine to Rate·Floor, which is
// reached at step Total and kept (Loshchilov and Hutter 2017).
type CosineDecay struct {
	Rate   float64
	Warmup int
	Total  int     // steps of the run
	Floor  float64 // share of Rate that is left at the end
}

// At is the learning rate of a step, from 0.
func (s CosineDecay) At(step int) float32 {
	left := (1 + libm.Cos(math.Pi*decayed(step, s.Warmup, s.Total))) / 2
	return float32(s.Rate * warm(step, s.Warmup) * (s.Floor + float64((1-s.Floor)*left)))
}

// Validate reports numbers that no run can have, on one line.
func (s CosineDecay) Validate() error { return validateDecay(s.Rate, s.Warmup, s.Total, s.Floor) }

// decayed is the share of the steps between warm-up and the end that are over.
func decayed(step, warmup, total int) float64 {
	over, all := float64(step-warmup), math.Max(1, float64(total-warmup))
	return math.Min(1, math.Max(0, over/all))
}

func validateDecay(rate float64, warmup, total int, floor float64) error {
	switch {
	case total <= warmup:
		return fmt.Errorf("learning rate decays until step %d: want more than the %d of the "+
			"warm-up", total, warmup)
	case !(floor >= 0 && floor <= 1):
		return fmt.Errorf("learning rate ends at %v of its peak: want a number from 0 to 1", floor)
	}
	return validate(rate, warmup)
}
