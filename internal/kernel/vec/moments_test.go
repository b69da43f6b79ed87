package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomWords are n words of a generator.
func randomWords(r *rand.Rand, n int) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = r.Uint32()
	}
	return words
}

// TestMomentsOfEveryLength: all implementations have the same bits, around their tails, too.
func TestMomentsOfEveryLength(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := portable()
	for _, n := range lengths() {
		x, words := inputs(r, n, true), randomWords(r, n)
		bytes := make([]uint8, n)
		for i, w := range randomWords(r, n) {
			bytes[i] = uint8(w)
		}
		for _, k := range available() {
			same16(t, k.name+" low", words, x, k.bf16Low, p.bf16Low)
			same16(t, k.name+" high", words, x, k.bf16High, p.bf16High)
			same16(t, k.name+" signed", words, x, k.signed8, p.signed8)
			same16(t, k.name+" unsigned", words, x, k.unsigned8, p.unsigned8)
			got, want := make([]float32, n), make([]float32, n)
			k.fromSigned8(got, bytes)
			p.fromSigned8(want, bytes)
			if d := differ(got, want); d != "" {
				t.Fatalf("%s from signed: %s", k.name, d)
			}
			k.fromUnsigned8(got, bytes)
			p.fromUnsigned8(want, bytes)
			if d := differ(got, want); d != "" {
				t.Fatalf("%s from unsigned: %s", k.name, d)
			}
			if a, b := k.maxAbsOf(x), p.maxAbsOf(x); !same(a, b) {
				t.Fatalf("%s: the largest of %d is %v, want %v", k.name, n, a, b)
			}
		}
	}
}

func same16[D uint8 | uint16](t *testing.T, name string, words []uint32, x []float32,
	f, reference func(dst []D, x []float32, words []uint32)) {
	t.Helper()
	got, want := make([]D, len(x)+1), make([]D, len(x)+1)
	f(got[:len(x)], x, words)
	reference(want[:len(x)], x, words)
	if !slices.Equal(got, want) {
		t.Fatalf("%s of %d: %v, want %v", name, len(x), got, want)
	}
}

// magnitude is what a code stands for, by its definition.
func magnitude(code int) float64 {
	return math.Ldexp(1+float64(code&7)/8, code>>3) - 1
}

// TestMomentsAreTheirMeans: of all random words, what is kept of a number is one of the two
// beside it, and on average the number itself.
func TestMomentsAreTheirMeans(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := make([]uint32, 1<<16)
	for i := range words {
		words[i] = uint32(i)<<16 | uint32(i)
	}
	for range 60 {
		y := math.Exp(21*r.Float64() - 1)
		x := float32(y)
		sum, least, most := 0.0, math.Inf(1), 0.0
		for _, w := range words {
			v := magnitude(int(unsigned8(x, w)))
			sum, least, most = sum+v, min(least, v), max(most, v)
			if y < 60000 && signed8(-x, w) != unsigned8(x, w)|128 && unsigned8(x, w) != 1 {
				t.Fatalf("%v by %#x: signed %#x, unsigned %#x", x, w, signed8(-x, w),
					unsigned8(x, w))
			}
		}
		mean := sum / float64(len(words))
		if least > y || most < y || most-least > (1+least)/8 || math.Abs(mean-y) > 3e-5*(1+y)/8 {
			t.Errorf("%v becomes %v to %v, and on average %v", y, least, most, mean)
		}
		low, high := 0.0, 0.0
		for _, w := range words {
			low += float64(f32FromBF16(bf16Low(x, w)))
			high += float64(f32FromBF16(bf16High(x, w)))
		}
		if low != high || math.Abs(low/float64(len(words))-float64(x)) > 1e-9*y {
			t.Errorf("%v in bfloat16 is on average %v", x, low/float64(len(words)))
		}
	}
}

// TestMomentBlocks: whatever the size of a block's largest number, it is within an eighth when
// it is unpacked, what is unpacked is packed to the same bytes again, and a block of zeros, or of
// what is not finite, is one again.
func TestMomentBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for e := -149; e < 128; e++ {
		for _, f := range []float64{1, 1.5, 1.874, 1.875, 1.9999999} {
			largest := float32(math.Ldexp(f, e))
			if e == 127 && f > 1.874 {
				continue // may be rounded to what is no float32
			}
			x := make([]float32, MomentBlock)
			for i := range x {
				x[i] = largest * float32(2*r.Float64()-1)
			}
			x[17] = -largest
			checkBlock(t, fmt.Sprint("signed ", largest), x, Signed8, FromSigned8, 15)
			Abs(x, x)
			checkBlock(t, fmt.Sprint("unsigned ", largest), x, Unsigned8, FromUnsigned8, 31)
		}
	}
	for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		codes, x := make([]uint8, 40), make([]float32, 40)
		x[33] = float32(odd)
		scale := Signed8(codes, x, make([]uint32, 40))
		FromSigned8(x, codes, scale)
		if x[0] == x[0] || scale == scale {
			t.Errorf("a block with %v has the scale %v and unpacks as %v", odd, scale, x[0])
		}
	}
	zero, codes := make([]float32, 40), make([]uint8, 40)
	scale := Signed8(codes, zero, randomWords(r, 40))
	FromSigned8(zero, codes, scale)
	if slices.Max(codes) != 0 || MaxOf(zero) != 0 {
		t.Errorf("a block of zeros becomes %v", codes)
	}
}

func checkBlock(t *testing.T, name string, x []float32,
	pack func(dst []uint8, x []float32, words []uint32) float32,
	unpack func(dst []float32, x []uint8, scale float32), octaves int) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	codes, again, y := make([]uint8, len(x)), make([]uint8, len(x)), make([]float32, len(x))
	scale := pack(codes, slices.Clone(x), randomWords(r, len(x)))
	unpack(y, codes, scale)
	least := max(math.Ldexp(float64(maxAbsOfGo(x)), -octaves),
		math.Ldexp(1, leastMoment-127-octaves))
	for i, v := range x {
		step := (math.Abs(float64(v)) + 2*least) / 8
		if math.Abs(float64(y[i])-float64(v)) > 1.01*step {
			t.Fatalf("%s: element %d is %v, unpacked %v", name, i, v, y[i])
		}
	}
	if s := pack(again, slices.Clone(y), randomWords(r, len(x))); s == scale &&
		!slices.Equal(again, codes) {
		t.Fatalf("%s: what was unpacked is packed as\n%v, was\n%v", name, again, codes)
	}
}
