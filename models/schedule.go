package models

import (
	"fmt"
	"math"
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

func (s InverseSqrt) validate() error {
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
	rate := s.Rate * math.Min(1, float64(step+1)/math.Max(1, float64(s.Warmup)))
	for _, drop := range s.Drops {
		if drop > 0 && step >= drop {
			rate /= 10
		}
	}
	return float32(rate)
}
