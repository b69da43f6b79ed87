package distrib

import (
	"fmt"
	"math"
)

// DType is how a number is written on the wire.
type DType uint8

// The types of numbers.
const (
	F32  DType = iota
	F16        // IEEE 754 binary16: 11 bits of precision, up to 65504
	BF16       // the upper half of an F32: 8 bits of precision, the same range
	dtypes
)

// String is the type's name, "f16".
func (d DType) String() string {
	switch d {
	case F32:
		return "f32"
	case F16:
		return "f16"
	case BF16:
		return "bf16"
	}
	return fmt.Sprintf("dtype %d", uint8(d))
}

// Size is how many bytes a number takes.
func (d DType) Size() int {
	if d == F32 {
		return 4
	}
	return 2
}

func (d DType) half() bool { return d == F16 || d == BF16 }

// bits is a number in 16 bits, rounded to nearest, ties to even. A number out of range
// becomes the largest: an infinity on the wire would stay one.
func (d DType) bits(v float32) uint16 {
	if d == BF16 {
		return bf16(v)
	}
	return f16(v)
}

// value is what 16 bits say.
func (d DType) value(b uint16) float32 {
	if d == BF16 {
		return math.Float32frombits(uint32(b) << 16)
	}
	return fromF16(b)
}

func bf16(v float32) uint16 {
	b := math.Float32bits(v)
	switch abs := b &^ (1 << 31); {
	case abs > 0x7f800000:
		return uint16(b>>16) | 0x40 // a NaN stays one
	case abs == 0x7f800000:
		return uint16(b >> 16)
	case abs >= 0x7f7f8000:
		return uint16(b>>16)&0x8000 | 0x7f7f
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func f16(v float32) uint16 {
	b := math.Float32bits(v)
	sign, abs := uint16(b>>16)&0x8000, b&^(1<<31)
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00
	case abs == 0x7f800000:
		return sign | 0x7c00
	case abs >= 0x477ff000: // rounds to 65536
		return sign | 0x7bff
	case abs < 0x38800000: // below 2^-14: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(abs))*(1<<24)))
	}
	abs += 0xfff + abs>>13&1
	return sign | uint16((abs-(112<<23))>>13)
}

func fromF16(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10)&31, uint32(h)&0x3ff
	switch exp {
	case 0:
		v := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(v))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// round splits numbers into what 16 bits hold and the rest, which is exact. What is not
// finite goes as it is: that a run diverges must be seen everywhere.
func (d DType) round(in []float32) (sent, kept []float32) {
	sent, kept = make([]float32, len(in)), make([]float32, len(in))
	for i, v := range in {
		sent[i] = d.value(d.bits(v))
		if finite(v) {
			kept[i] = v - sent[i]
		}
	}
	return sent, kept
}

func finite(v float32) bool { return v-v == 0 }

// RoundTo splits an update into one whose numbers have 16 bits, and the rounding error. Of
// dense and sparse updates the two add up to it exactly; of factors, whose error has
// twice their rank, to rounding. A [Cell] is kept as it is.
func RoundTo(u Update, as DType) (send Half, keep Update) {
	switch u := plain(u).(type) {
	case Dense:
		sent, kept := as.round(u)
		return Half{Dense(sent), as}, fromDense(kept, 1, 2)
	case Sparse:
		sent, kept := as.round(u.Val)
		return Half{Sparse{u.N, u.Idx, sent}, as}, fromPairs(u.N, u.Idx, kept)
	case Factored:
		sent := u
		var a, b []float32
		sent.A, a = as.round(u.A)
		sent.B, b = as.round(u.B)
		// A B' - S T' = (A-S) B' + S (B-T)'
		return Half{sent, as}, addDenseIfLarge(
			Factored{u.R, u.J, u.K, a, u.B}, Factored{u.R, u.J, u.K, sent.A, b})
	}
	return Half{}, u
}

func addDenseIfLarge(a, b Factored) Update {
	if a.zero() && b.zero() {
		return nil
	}
	return Add(a, b)
}

func (u Factored) zero() bool { return allZero(u.A) || allZero(u.B) }

func allZero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

// fromDense is numbers, sparse if no more than part of whole are not zero: nil if none is.
func fromDense(x []float32, part, whole int) Update {
	nz := 0
	for _, v := range x {
		if v != 0 {
			nz++
		}
	}
	if whole*nz > part*len(x) {
		return Dense(x)
	}
	idx, val := make([]uint32, 0, nz), make([]float32, 0, nz)
	for i, v := range x {
		if v != 0 {
			idx, val = append(idx, uint32(i)), append(val, v)
		}
	}
	return orNil(Sparse{len(x), idx, val})
}

// fromPairs is a sparse update without its zeros, nil if nothing else is there.
func fromPairs(n int, idx []uint32, val []float32) Update {
	out := Sparse{N: n}
	for i, v := range val {
		if v != 0 {
			out.Idx, out.Val = append(out.Idx, idx[i]), append(out.Val, v)
		}
	}
	return orNil(out)
}

func orNil(u Sparse) Update {
	if len(u.Idx) == 0 {
		return nil
	}
	return u
}
