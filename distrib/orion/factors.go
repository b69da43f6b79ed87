package orion

import (
	"encoding/binary"
	"errors"
	"math"
)

// Factors are the matrices of a factorisation by stochastic gradient descent, figure 5.4 of the
// thesis: iteration (i, j) has row i of W and row j of H take a step towards element (i, j) of a
// matrix that is drawn.
type Factors struct {
	rank int
	w, h []float32
}

// NewFactors draws what a pass begins with. The loop has two dimensions, and two arrays, W and H,
// that have a row for each index of the first and of the second.
func NewFactors(l *Loop) (*Factors, error) {
	ok := len(l.Space) == 2 && len(l.Arrays) == 2
	for k := 0; ok && k < 2; k++ {
		a := l.Arrays[k]
		ok = a.Name == "WH"[k:k+1] && len(a.Shape) == 2 && a.Shape[0] == l.Space[k].Size &&
			a.Shape[1] == l.Arrays[0].Shape[1] && a.Elements() <= maxTrial
	}
	if !ok {
		return nil, errors.New("the loop is no factorisation into W and H")
	}
	f := &Factors{int(l.Arrays[0].Shape[1]), make([]float32, l.Arrays[0].Elements()),
		make([]float32, l.Arrays[1].Elements())}
	for k, m := range [][]float32{f.w, f.h} {
		for i := range m {
			m[i] = unit(uint64(i)<<1 | uint64(k))
		}
	}
	return f, nil
}

// unit is a number from 0 to below 1, drawn by another.
func unit(x uint64) float32 { return float32(mix(x)>>40) / (1 << 24) }

// stepSize is that of gradient descent.
const stepSize = 0.01

// Body takes a step for an element.
func (f *Factors) Body(it *Iteration) error {
	i, j := it.Index[0], it.Index[1]
	for _, access := range []Access{Read, Write} {
		it.Use(access, "W", i, Every)
		it.Use(access, "H", j, Every)
	}
	w, h := f.w[int(i)*f.rank:][:f.rank], f.h[int(j)*f.rank:][:f.rank]
	e := unit(uint64(i)<<32 | uint64(j))
	for k, x := range w {
		e -= float32(x * h[k])
	}
	e *= 2 * stepSize
	for k, x := range w {
		w[k] += float32(e * h[k])
		h[k] += float32(e * x)
	}
	return nil
}

// Finish is a hash of all bits.
func (f *Factors) Finish() uint64 {
	sum := uint64(0)
	for _, m := range [][]float32{f.w, f.h} {
		for _, x := range m {
			sum = mix(sum ^ uint64(math.Float32bits(x)))
		}
	}
	return sum
}

// Load appends numbers: a [Memory] of W and H.
func (f *Factors) Load(b []byte, array int, from, n int64) []byte {
	for _, x := range [][]float32{f.w, f.h}[array][from:][:n] {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// Store takes numbers.
func (f *Factors) Store(array int, from, n int64, b []byte) {
	x := [][]float32{f.w, f.h}[array][from:][:n]
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}
