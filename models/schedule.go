package models

import (
	"fmt"
	"math"
)

// Schedule is a learning rate over steps: linear warm-up, then decay with the
// inverse square root of the step, and, if Total is given, a linear decay to
// zero over the last steps. It is "linear_warmup*rsqrt_decay*linear_decay" of
// Tensor2Tensor.
type Schedule struct {
	Scale  float64 // multiplies the whole; the peak is Scale/√Warmup
	Warmup int     // steps until the peak
	Total  int     // steps of the run; 0: no final decay
	Decay  int     // steps of the final decay
}

// At is the learning rate of a step, from 0.
func (s Schedule) At(step int) float32 {
	t, warmup := float64(step)+1, math.Max(1, float64(s.Warmup))
	rate := s.Scale * math.Min(1, t/warmup) / math.Sqrt(math.Max(t, warmup))
	if s.Total > 0 {
		left := (float64(s.Total) - float64(step)) / math.Max(1, float64(s.Decay))
		rate *= math.Min(1, math.Max(0, left))
	}
	return float32(rate)
}

func (s Schedule) validate() error {
	switch {
	case !(s.Scale > 0) || math.IsInf(s.Scale, 0):
		return fmt.Errorf("learning rate scale is %v: want a positive number", s.Scale)
	case s.Warmup < 1:
		return fmt.Errorf("learning rate warm-up is %d steps: want 1 or more", s.Warmup)
	case s.Total < 0 || s.Decay < 0:
		return fmt.Errorf("learning rate decay over %d of %d steps: neither may be negative", s.Decay, s.Total)
	}
	return nil
}
