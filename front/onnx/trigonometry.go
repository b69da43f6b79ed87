package onnx

import (
	"math"

	"github.com/gomem/gomem/graph/ops"
)

// Functions that are composed of others, within a few units of f32's last place.

// arcTangent is that of Cephes' atanf (Moshier 1989): by a polynomial around zero, to which larger
// numbers are turned by a quarter, or an eighth, of the circle.
func arcTangent(x value) value {
	size := ops.Abs(x)
	far, near := ops.Greater(size, like(x, 2.414213562373095)), ops.Greater(size,
		like(x, 0.4142135623730950))
	one := like(x, 1)
	turned := ops.Where(far, like(x, math.Pi/2), ops.Where(near, like(x, math.Pi/4), like(x, 0)))
	eighth := ops.Div(ops.Sub(size, one), ops.Add(size, one))
	quarter := ops.Neg(ops.Div(one, ops.Where(far, size, one)))
	y := ops.Where(far, quarter, ops.Where(near, eighth, size))
	z := ops.Square(y)
	p := like(x, 8.05374449538e-2)
	for _, c := range []float64{-1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1} {
		p = ops.Add(ops.Mul(p, z), like(x, c))
	}
	y = ops.Add(turned, ops.Add(ops.Mul(ops.Mul(p, z), y), y))
	return ops.Where(ops.Less(x, like(x, 0)), ops.Neg(y), y)
}

func arcSine(x value) value {
	one := like(x, 1)
	return arcTangent(ops.Div(x, ops.Sqrt(ops.Mul(ops.Sub(one, x), ops.Add(one, x)))))
}

// hyperbolicSine is by e^x − 1, which does not cancel where x is small.
func hyperbolicSine(x value) value {
	size := ops.Abs(x)
	e := ops.Expm1(size)
	y := ops.Scale(ops.Add(e, ops.Div(e, ops.AddScalar(e, 1))), 0.5)
	y = ops.Where(ops.Greater(size, like(x, 80)), ops.Scale(e, 0.5), y) // where e may be infinite
	return ops.Where(ops.Less(x, like(x, 0)), ops.Neg(y), y)
}

// areaSine is the inverse of sinh.
func areaSine(x value) value {
	size := ops.Abs(x)
	square := ops.Square(x)
	root := ops.Sqrt(ops.AddScalar(square, 1))
	y := ops.Log1p(ops.Add(size, ops.Div(square, ops.AddScalar(root, 1))))
	return ops.Where(ops.Less(x, like(x, 0)), ops.Neg(y), y)
}

// areaCosine is the inverse of cosh.
func areaCosine(x value) value {
	t := ops.AddScalar(x, -1)
	return ops.Log1p(ops.Add(t, ops.Sqrt(ops.Mul(t, ops.AddScalar(x, 1)))))
}

// areaTangent is the inverse of tanh.
func areaTangent(x value) value {
	return ops.Scale(ops.Log1p(ops.Div(ops.Scale(x, 2), ops.Sub(like(x, 1), x))), 0.5)
}
