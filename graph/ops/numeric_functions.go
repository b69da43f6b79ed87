package ops

import (
	"math"
	"unsafe"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/libm"
)

// integerPairs is an operation on two integers, which wraps; nil if there is none such.
func integerPairs[T tensor.Integer](op onElements) func(a, b T) T {
	switch op {
	case binary{add}:
		return func(a, b T) T { return a + b }
	case binary{sub}:
		return func(a, b T) T { return a - b }
	case binary{mul}:
		return func(a, b T) T { return a * b }
	case binary{div}:
		return func(a, b T) T { return a / b }
	case binary{mod}:
		return func(a, b T) T {
			r := a % b
			if r != 0 && (r < 0) != (b < 0) {
				r += b
			}
			return r
		}
	case binary{remainder}:
		return func(a, b T) T { return a % b }
	case binary{maximum}:
		return func(a, b T) T { return max(a, b) }
	case binary{minimum}:
		return func(a, b T) T { return min(a, b) }
	case binary{power}:
		return integerPower[T]
	}
	return bitPairs[T](op)
}

// integerPower squares and multiplies.
func integerPower[T tensor.Integer](a, b T) T {
	if b < 0 {
		switch {
		case a == 1, a+1 == 0 && b&1 == 0:
			return 1
		case a+1 == 0:
			return a
		}
		return 0
	}
	p := T(1)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			p *= a
		}
		a *= a
	}
	return p
}

// bitPairs are the operations on bits of two integers. From the width on, and below zero, a shift
// leaves nothing of a number but its sign.
func bitPairs[T tensor.Integer](op onElements) func(a, b T) T {
	width := uint64(8 * unsafe.Sizeof(T(0)))
	switch op {
	case bitwise{bitAnd}:
		return func(a, b T) T { return a & b }
	case bitwise{bitOr}:
		return func(a, b T) T { return a | b }
	case bitwise{bitXor}:
		return func(a, b T) T { return a ^ b }
	case bitwise{shiftLeft}:
		return func(a, b T) T { return a << min(uint64(b), width) }
	case bitwise{shiftRight}:
		return func(a, b T) T { return a >> min(uint64(b), width) }
	}
	return nil
}

// integerAlone is an operation on one integer, nil if there is none such.
func integerAlone[T tensor.Integer](op onElements) func(a T) T {
	switch op {
	case unary{neg}:
		return func(a T) T { return -a }
	case unary{square}:
		return func(a T) T { return a * a }
	case unary{relu}:
		return func(a T) T { return max(a, 0) }
	case function{abs}:
		return func(a T) T {
			if a < 0 {
				return -a
			}
			return a
		}
	case function{sign}:
		return func(a T) T {
			switch {
			case a > 0:
				return 1
			case a < 0:
				return ^T(0) // −1
			}
			return 0
		}
	case bitwise{bitNot}:
		return func(a T) T { return ^a }
	}
	return nil
}

// pairs64 is an operation on two numbers of 64 bits, nil if there is none such.
func pairs64(op onElements) func(a, b float64) float64 {
	switch op {
	case binary{add}:
		return func(a, b float64) float64 { return a + b }
	case binary{sub}:
		return func(a, b float64) float64 { return a - b }
	case binary{mul}:
		return func(a, b float64) float64 { return a * b }
	case binary{div}:
		return func(a, b float64) float64 { return a / b }
	case binary{mod}:
		return modulo[float64]
	case binary{remainder}:
		return fmod[float64]
	case binary{maximum}:
		return larger
	case binary{minimum}:
		return smaller
	case binary{geq}:
		return func(a, b float64) float64 { return float64(bit(a >= b)) }
	case binary{power}:
		return libm.PowSigned
	}
	return nil
}

// larger is NaN where one is, and b of two zeros.
func larger(a, b float64) float64 {
	if a > b || a != a {
		return a
	}
	return b
}

// smaller is NaN where one is, and b of two zeros.
func smaller(a, b float64) float64 {
	if a < b || a != a {
		return a
	}
	return b
}

// alone64 is a function of a number of 64 bits, nil if there is none such.
func alone64(op onElements) func(a float64) float64 {
	switch op {
	case unary{neg}:
		return func(a float64) float64 { return -a }
	case unary{exp}:
		return libm.Exp
	case unary{logarithm}:
		return libm.Log
	case unary{sqrt}:
		return math.Sqrt
	case unary{rsqrt}:
		return func(a float64) float64 { return 1 / math.Sqrt(a) }
	case unary{square}:
		return func(a float64) float64 { return a * a }
	case unary{relu}:
		return func(a float64) float64 {
			if a < 0 {
				return 0
			}
			return a
		}
	case unary{tanh}:
		return libm.Tanh
	case unary{sigmoid}:
		return libm.Sigmoid
	}
	return function64(op)
}

// function64 is alone64 of what function has.
func function64(op onElements) func(a float64) float64 {
	switch op {
	case function{abs}:
		return math.Abs
	case function{sign}:
		return func(a float64) float64 { return float64(bit(a > 0)) - float64(bit(a < 0)) }
	case function{floor}:
		return math.Floor
	case function{ceil}:
		return math.Ceil
	case function{trunc}:
		return math.Trunc
	case function{round}:
		return math.RoundToEven
	case function{reciprocal}:
		return func(a float64) float64 { return 1 / a }
	case function{sine}:
		return libm.Sin
	case function{cosine}:
		return libm.Cos
	}
	return nil
}
