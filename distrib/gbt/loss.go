package gbt

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/internal/libm"
)

// Loss is what is to be small: of a sample with a label and what a forest says of it.
type Loss int

// The losses: the square of the difference, or the cross entropy of two classes in nats, whose log
// odds the forest says.
const (
	Squares Loss = iota
	Logistic
)

// String is the name of a loss.
func (l Loss) String() string { return [...]string{"squares", "logistic"}[l] }

// ParseLoss is the loss of a name.
func ParseLoss(name string) (Loss, error) {
	for _, l := range []Loss{Squares, Logistic} {
		if l.String() == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("%.40q is no loss: want squares or logistic", name)
}

// Of is a sample's loss.
func (l Loss) Of(label, says float64) float64 {
	if l == Squares {
		return float64((says - label) * (says - label))
	}
	far := says // on the wrong side, if it is positive
	if label == 1 {
		far = -far
	}
	return max(far, 0) + libm.Log1p(libm.Exp(-math.Abs(far)))
}

// derivatives are the first and the second one, of squares half of them.
func (l Loss) derivatives(label, says float64) (g, h float64) {
	if l == Squares {
		return says - label, 1
	}
	p := 1 / (1 + libm.Exp(-says))
	return p - label, float64(p * (1 - p))
}

// base is the number that has the least loss.
func (l Loss) base(labels []float64) float32 {
	mean := 0.0
	for _, y := range labels {
		mean += y
	}
	mean /= float64(len(labels))
	if l == Squares {
		return float32(mean)
	}
	least := 0.5 / float64(len(labels)) // there may be one class alone
	mean = min(max(mean, least), 1-least)
	return float32(libm.Log(mean / (1 - mean)))
}
