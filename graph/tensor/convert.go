package tensor

import "unsafe"

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
	default:
		integersOf(s)(dst, src, lo, hi)
	}
}

// Integer is what elements of integer types are in Go.
type Integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// integersOf converts elements of an integer type, or of Bool.
func integersOf(d DType) func(dst, src View, lo, hi int) {
	switch d {
	case I8:
		return convertIntegers[int8]
	case I16:
		return convertIntegers[int16]
	case I32:
		return convertIntegers[int32]
	case I64:
		return convertIntegers[int64]
	case U16:
		return convertIntegers[uint16]
	case U32:
		return convertIntegers[uint32]
	case U64:
		return convertIntegers[uint64]
	}
	return convertIntegers[uint8]
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
	case I8:
		each(dst.I8()[lo:hi], src, func(x T) int8 { return truncated[int8](exact(x)) })
	case I16:
		each(dst.I16()[lo:hi], src, func(x T) int16 { return truncated[int16](exact(x)) })
	case I32:
		each(dst.I32()[lo:hi], src, func(x T) int32 { return truncated[int32](exact(x)) })
	case I64:
		each(dst.I64()[lo:hi], src, func(x T) int64 { return truncated[int64](exact(x)) })
	case U8:
		each(dst.U8()[lo:hi], src, func(x T) uint8 { return truncated[uint8](exact(x)) })
	case U16:
		each(dst.U16()[lo:hi], src, func(x T) uint16 { return truncated[uint16](exact(x)) })
	case U32:
		each(dst.U32()[lo:hi], src, func(x T) uint32 { return truncated[uint32](exact(x)) })
	case U64:
		each(dst.U64()[lo:hi], src, func(x T) uint64 { return truncated[uint64](exact(x)) })
	default:
		each(dst.Bool()[lo:hi], src, func(x T) bool { return exact(x) != 0 })
	}
}

// convertIntegers converts elements lo to hi-1, integers, to those of dst.
func convertIntegers[T Integer](dst, from View, lo, hi int) {
	src := as[T](from, from.Type.DType)[lo:hi]
	switch dst.Type.DType {
	case F64:
		each(dst.F64()[lo:hi], src, func(x T) float64 { return float64(x) })
	case F32:
		each(dst.F32()[lo:hi], src, func(x T) float32 { return float32(x) })
	case BF16:
		each(dst.U16()[lo:hi], src, func(x T) uint16 { return ToBF16(float32(x)) })
	case F16:
		each(dst.U16()[lo:hi], src, func(x T) uint16 { return ToF16(float32(x)) })
	case I8:
		each(dst.I8()[lo:hi], src, saturated[int8, T])
	case I16:
		each(dst.I16()[lo:hi], src, saturated[int16, T])
	case I32:
		each(dst.I32()[lo:hi], src, saturated[int32, T])
	case I64:
		each(dst.I64()[lo:hi], src, saturated[int64, T])
	case U8:
		each(dst.U8()[lo:hi], src, saturated[uint8, T])
	case U16:
		each(dst.U16()[lo:hi], src, saturated[uint16, T])
	case U32:
		each(dst.U32()[lo:hi], src, saturated[uint32, T])
	case U64:
		each(dst.U64()[lo:hi], src, saturated[uint64, T])
	default:
		each(dst.Bool()[lo:hi], src, func(x T) bool { return x != 0 })
	}
}

func each[D, S any](dst []D, src []S, f func(S) D) {
	for i, x := range src {
		dst[i] = f(x)
	}
}

// limits are the smallest and the largest integer of a type.
func limits[T Integer]() (least, most T) {
	if most = ^T(0); most > 0 {
		return 0, most
	}
	least = T(1) << (8*unsafe.Sizeof(least) - 1)
	return least, ^least
}

// saturated is x, or what of the type is nearest to it.
func saturated[D, S Integer](x S) D {
	if y := D(x); S(y) == x && (y < 0) == (x < 0) {
		return y
	}
	least, most := limits[D]()
	if x < 0 {
		return least
	}
	return most
}

// truncated is x towards zero, or what of the type is nearest to that. It spells out what
// the language leaves to the processor. float64 of the largest of 64 bits is one more.
func truncated[D Integer](x float64) D {
	least, most := limits[D]()
	switch {
	case x >= float64(most):
		return most
	case x <= float64(least):
		return least
	case x == x:
		return D(x)
	}
	return 0
}
