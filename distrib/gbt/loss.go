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
	loss, _, _ := l.at(label, says)
	return loss
}

// at is a sample's loss, and its first and second derivatives; those of squares are half of them.
func (l Loss) at(label, says float64) (loss, g, h float64) {
	if l == Squares {
		g = says - label
		return float64(g * g), g, 1
	}
	e := libm.Exp(-math.Abs(says))
	p, far := 1/(1+e), says // far on the wrong side, if it is positive
	if says < 0 {
		p = e / (1 + e)
	}
	if label == 1 {
		far = -far
	}
	return max(far, 0) + libm.Log1p(e), p - label, e / float64((1+e)*(1+e))
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
