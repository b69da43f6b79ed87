package strads

import "github.com/gomem/gomem/internal/libm"

// Loss is what a prediction costs that is not the label.
type Loss uint8

// The losses: half the squared difference, for labels that are numbers, and the cross entropy in
// nats of a logit, for labels 0 and 1.
const (
	Squares Loss = iota
	Logistic
)

// curvature bounds the second derivative by the prediction.
func (l Loss) curvature() float64 {
	if l == Logistic {
		return 0.25
	}
	return 1
}

// value is the loss of prediction z where y would be right.
func (l Loss) value(y, z float64) float64 {
	if l == Logistic {
		return max(z, 0) - float64(y*z) + libm.Log(1+libm.Exp(-max(z, -z)))
	}
	return (z - y) * (z - y) / 2
}

// Slope is the derivative by the prediction z.
func (l Loss) Slope(y, z float64) float64 {
	if l == Logistic {
		return 1/(1+libm.Exp(-z)) - y
	}
	return z - y
}

// bend is the second derivative by the prediction, where the first is the slope.
func (l Loss) bend(y, slope float64) float64 {
	if l == Logistic {
		p := slope + y
		return float64(p * (1 - p))
	}
	return 1
}

// conjugate is the loss's convex conjugate, at a multiple from 0 to 1 of a slope.
func (l Loss) conjugate(y, v float64) float64 {
	if l == Logistic {
		p := min(max(v+y, 0), 1)
		return entropy(p) + entropy(1-p)
	}
	return float64(float64(v*v)/2) + float64(v*y)
}

// entropy is p log p.
func entropy(p float64) float64 {
	if p <= 0 {
		return 0
	}
	return p * libm.Log(p)
}

// soft is x moved towards 0 by so much.
func soft(x, by float64) float64 {
	switch {
	case x > by:
		return x - by
	case x < -by:
		return x + by
	}
	return 0
}
