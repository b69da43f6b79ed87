package train

import (
	"fmt"
	"math"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// ErrNonFinite says that training has diverged: a number that must be finite
// is not.
type ErrNonFinite struct {
	Step       int     // the step after which it was noticed, from 1
	What       string  // "loss", a metric, "learning rate" or the first such variable
	Value      float64 // NaN or an infinity
	Checkpoint string  // the last good checkpoint, if there is one
}

// Error is one line.
func (e *ErrNonFinite) Error() string {
	s := fmt.Sprintf("%s is %v at step %d: training has diverged; try a smaller learning rate or "+
		"another seed", e.What, e.Value, e.Step)
	if e.Checkpoint != "" {
		s += "; the last good checkpoint is " + e.Checkpoint
	}
	return s
}

// finite refuses a loss, followed by metrics, that shows that training has
// diverged.
func (r *run) finite(step int, what string, values []float64, metrics []nn.Metric) error {
	for i, x := range values {
		if i > 0 {
			what = metrics[i-1].Name
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return &ErrNonFinite{Step: step, What: what, Value: x, Checkpoint: r.good}
		}
	}
	return nil
}

// finiteVariable refuses values that must not replace a good checkpoint.
func finiteVariable(name string, t gomem.Tensor) error {
	if x, found := nonFinite(t); found {
		return &ErrNonFinite{What: "variable " + name, Value: x}
	}
	return nil
}

// nonFinite is the first element that is NaN or infinite, if there is one.
func nonFinite(t gomem.Tensor) (x float64, found bool) {
	switch t.Type.DType {
	case graph.F32:
		for _, x := range t.F32() {
			if d := x - x; d != 0 { // NaN for NaN and for both infinities
				return float64(x), true
			}
		}
	case graph.F64:
		for _, x := range t.F64() {
			if d := x - x; d != 0 {
				return x, true
			}
		}
	case graph.BF16:
		return nonFiniteHalf(t.U16(), 0x7f80)
	case graph.F16:
		return nonFiniteHalf(t.U16(), 0x7c00)
	}
	return 0, false
}

// nonFiniteHalf is nonFinite for elements of 16 bits with the exponent that
// NaN and infinities have.
func nonFiniteHalf(words []uint16, exponent uint16) (x float64, found bool) {
	for _, w := range words {
		switch magnitude := w &^ 0x8000; {
		case magnitude > exponent:
			return math.NaN(), true
		case magnitude == exponent:
			return math.Inf(1 - 2*int(w>>15)), true
		}
	}
	return 0, false
}
