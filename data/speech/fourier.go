package speech

import (
	"math"
	"math/bits"

	"github.com/gomem/gomem/internal/libm"
)

// points is the size of the complex transform that gives the real one: numbers with
// even places are real parts, those with odd ones imaginary.
const points = window / 2

// fourier is the discrete Fourier transform of window numbers, with the same bits on
// every architecture.
type fourier struct {
	roots  [points]complex128 // e^(−2πi·k/window)
	source [points]uint16     // where the recursion's k-th leaf is
}

func newFourier() *fourier {
	f := &fourier{}
	for k := range f.roots {
		sin, cos := libm.Sincos(2 * math.Pi * float64(k) / window)
		f.roots[k] = complex(cos, -sin)
	}
	for k := range f.source {
		f.source[k] = bits.Reverse16(uint16(k)) >> (16 - bits.Len(points-1))
	}
	return f
}

// transform sets the bins of spectrum to those of x.
func (f *fourier) transform(spectrum *[bins]complex128, x *[window]float64) {
	z := spectrum[:points]
	for k, from := range f.source {
		z[k] = complex(x[2*from], x[2*from+1])
	}
	for n := 1; n < points; n *= 2 {
		for begin := 0; begin < points; begin += 2 * n {
			low, high := z[begin:][:n], z[begin+n:][:n]
			for k, a := range low {
				b := times(f.roots[k*(points/n)], high[k])
				low[k], high[k] = a+b, a-b
			}
		}
	}
	f.split(spectrum)
}

// split makes bins of real numbers of those of the complex: with z' the bin −k, twice
// the bin k of the even places is z + conj(z'), of the odd ones −i·(z − conj(z')).
func (f *fourier) split(spectrum *[bins]complex128) {
	first := spectrum[0]
	spectrum[0] = complex(real(first)+imag(first), 0)
	spectrum[points] = complex(real(first)-imag(first), 0)
	for k := 1; k <= points/2; k++ {
		a, b := spectrum[k], spectrum[points-k]
		even := complex(real(a)+real(b), imag(a)-imag(b))
		odd := times(f.roots[k], complex(imag(a)+imag(b), real(b)-real(a)))
		spectrum[k] = half(real(even)+real(odd), imag(even)+imag(odd))
		spectrum[points-k] = half(real(even)-real(odd), imag(odd)-imag(even))
	}
}

// half is the half of a number.
func half(re, im float64) complex128 { return complex(re/2, im/2) }

// times is a·b, its products not fused with their sums.
func times(a, b complex128) complex128 {
	return complex(float64(real(a)*real(b))-float64(imag(a)*imag(b)),
		float64(real(a)*imag(b))+float64(imag(a)*real(b)))
}
