package tensor

import "math"

// To is a copy of the view's elements as another type: see [Convert].
func (v View) To(d DType) View {
	out := New(Type{DType: d, Shape: v.Type.Shape})
	Convert(out, v, 0, v.Type.Elems())
	return out
}

// As is the view itself if it has an element type, else [View.To].
func (v View) As(d DType) View {
	if v.Type.DType == d {
		return v
	}
	return v.To(d)
}

// Convert sets elements lo to hi-1 of dst to those of src, converted. The two have as
// many elements. It panics on a type that is none.
//
// Integers become integers of another size, and floating-point numbers integers, by way
// of what is nearest: too large or too small is the largest or the smallest, infinities
// too. Floating-point numbers are rounded towards zero, and NaN becomes zero. To
// floating-point types all is rounded to nearest even, to 16-bit ones by way of f32;
// what is too large becomes an infinity, and NaN stays NaN, quiet, with its sign. As a
// bool everything but zero is true, NaN too; true is one.
func Convert(dst, src View, lo, hi int) {
	d, s := dst.Type.DType, src.Type.DType
	switch {
	case d == s:
		size := int(d.Size())
		copy(dst.Data[lo*size:hi*size], src.Data[lo*size:])
	case s == F64:
		convertFloats(dst, as[float64](src, F64)[lo:hi], func(x float64) float64 { return x }, lo)
	case s == F32:
		convertFloats(dst, src.F32()[lo:hi], func(x float32) float64 { return float64(x) }, lo)
	case s == BF16:
		convertFloats(dst, src.U16()[lo:hi], func(x uint16) float64 { return float64(FromBF16(x)) },
			lo)
	case s == F16:
		convertFloats(dst, src.U16()[lo:hi], func(x uint16) float64 { return float64(FromF16(x)) },
			lo)
	case s == I64:
		convertIntegers(dst, src.I64()[lo:hi], lo)
	case s == I32:
		convertIntegers(dst, src.I32()[lo:hi], lo)
	default:
		convertIntegers(dst, src.U8()[lo:hi], lo)
	}
}

// convertFloats converts numbers, each of which is some float64 exactly, to the elements
// of dst from lo on.
func convertFloats[T any](dst View, src []T, exact func(T) float64, lo int) {
	hi := lo + len(src)
	switch dst.Type.DType {
	case F64:
		each(dst.F64()[lo:hi], src, exact)
	case F32:
		each(dst.F32()[lo:hi], src, func(x T) float32 { return float32(exact(x)) })
	case BF16:
		each(dst.U16()[lo:hi], src, func(x T) uint16 { return ToBF16(float32(exact(x))) })
	case F16:
		each(dst.U16()[lo:hi], src, func(x T) uint16 { return ToF16(float32(exact(x))) })
	case I64:
		each(dst.I64()[lo:hi], src, func(x T) int64 {
			return toInteger(exact(x), math.MinInt64, math.MaxInt64)
		})
	case I32:
		each(dst.I32()[lo:hi], src, func(x T) int32 {
			return int32(toInteger(exact(x), math.MinInt32, math.MaxInt32))
		})
	case U8:
		each(dst.U8()[lo:hi], src, func(x T) uint8 {
			return uint8(toInteger(exact(x), 0, math.MaxUint8))
		})
	default:
		each(dst.Bool()[lo:hi], src, func(x T) bool { return exact(x) != 0 })
	}
}

// convertIntegers converts integers to the elements of dst from lo on.
func convertIntegers[T int64 | int32 | uint8](dst View, src []T, lo int) {
	hi := lo + len(src)
	switch dst.Type.DType {
	case F64:
		each(dst.F64()[lo:hi], src, func(x T) float64 { return float64(x) })
	case F32:
		each(dst.F32()[lo:hi], src, func(x T) float32 { return float32(x) })
	case BF16:
		each(dst.U16()[lo:hi], src, func(x T) uint16 { return ToBF16(float32(x)) })
	case F16:
		each(dst.U16()[lo:hi], src, func(x T) uint16 { return ToF16(float32(x)) })
	case I64:
		each(dst.I64()[lo:hi], src, func(x T) int64 { return int64(x) })
	case I32:
		each(dst.I32()[lo:hi], src, func(x T) int32 {
			return int32(min(max(int64(x), math.MinInt32), math.MaxInt32))
		})
	case U8:
		each(dst.U8()[lo:hi], src, func(x T) uint8 {
			return uint8(min(max(int64(x), 0), math.MaxUint8))
		})
	default:
		each(dst.Bool()[lo:hi], src, func(x T) bool { return x != 0 })
	}
}

func each[D, S any](dst []D, src []S, f func(S) D) {
	for i, x := range src {
		dst[i] = f(x)
	}
}

// toInteger is x towards zero, within the limits. It spells out what the language
// leaves to the processor. float64(math.MaxInt64) is one more than that.
func toInteger(x float64, least, most int64) int64 {
	switch {
	case x >= float64(most):
		return most
	case x <= float64(least):
		return least
	case x == x:
		return int64(x)
	}
	return 0
}
