package vec

import "math"

// SGD takes one step of gradient descent in place:
//
//	w ← w − lr·g
func SGD(w, g []float32, lr float32) {
	cover(w, g)
	for lo, hi := range spans(len(w)) {
		active.axpy(w[lo:hi], g[lo:hi], -lr)
	}
}

// Momentum takes one step of gradient descent with momentum in place:
//
//	m ← mu·m + g
//	w ← w − lr·m
func Momentum(w, m, g []float32, lr, mu float32) {
	cover(w, m, g)
	for lo, hi := range spans(len(w)) {
		active.momentum(w[lo:hi], m[lo:hi], g[lo:hi], -lr, mu)
	}
}

// Adam takes one step of Adam (Kingma and Ba 2015, algorithm 1) in place:
//
//	m ← beta1·m + (1−beta1)·g
//	v ← beta2·v + (1−beta2)·g²
//	w ← w − (lr/corr1) · m / (√v·(1/√corr2) + eps)
//
// where step t passes corr1 = 1−beta1ᵗ and corr2 = 1−beta2ᵗ. The parenthesised
// factors are computed once, in float64, and rounded to float32.
func Adam(w, m, v, g []float32, lr, beta1, beta2, eps, corr1, corr2 float32) {
	cover(w, m, v, g)
	step := float32(-float64(lr) / float64(corr1))
	root := float32(1 / math.Sqrt(float64(corr2)))
	keep1, keep2 := float32(1-float64(beta1)), float32(1-float64(beta2))
	for lo, hi := range spans(len(w)) {
		active.adam(w[lo:hi], m[lo:hi], v[lo:hi], g[lo:hi], step, beta1, keep1, beta2, keep2, root,
			eps)
	}
}
