package main

import (
	"math"
	"testing"
)

// TestCrossing: losses of 4, 2 and 1 come to a target between epochs as powers of two do.
func TestCrossing(t *testing.T) {
	losses := []float64{4, 2, 1}
	for target, want := range map[float64]float64{5: 1, 4: 1, 2: 2, 1: 3, math.Sqrt2: 2.5} {
		if got := crossing(losses, target); math.Abs(got-want) > 1e-12 {
			t.Errorf("%g by epoch %v, want %v", target, got, want)
		}
	}
	if got := crossing(losses, 0.5); !math.IsNaN(got) {
		t.Errorf("a loss that is never reached by epoch %v", got)
	}
}

// TestQuantiles: the median of an even number is between two, and what is given stays as it is.
func TestQuantiles(t *testing.T) {
	x := []float64{4, 1, 3, 2}
	if low, mid, high := quantiles(x); low != 1 || mid != 2.5 || high != 4 || x[0] != 4 {
		t.Errorf("%v, %v and %v of %v", low, mid, high, x)
	}
}
