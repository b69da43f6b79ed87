package distrib

import "math"

// AdaDelay is stochastic gradient descent whose steps are the smaller the later a gradient comes
// (Sra, Yu, Li and Smola, AISTATS 2016; mlfabric-2020, equations 21 and 22): the t-th gradient,
// that was computed without tau of those before it, is taken with the step size
//
//	1 / (L + C*sqrt(t + tau))
//
// An update is a gradient. The state is a number of updates, which rows that move leave behind:
// steps begin to shrink anew then.
type AdaDelay struct {
	C, L float32 // 0: 1 and 1

	versions
}

// Apply takes a step against a gradient.
func (a *AdaDelay) Apply(w []float32, cols int, e *Entry) Version {
	e.U.AddTo(w, cols, a.Weight(e.At, e.Delay))
	return a.next(e.Ref.Param)
}

// Weight is of [Weighing]: less than zero, for a step goes against the gradient.
func (a *AdaDelay) Weight(at, delay Version) float32 {
	root := float32(math.Sqrt(float64(at + 1 + delay)))
	return -1 / (or(a.L, 1) + float32(or(a.C, 1)*root))
}
