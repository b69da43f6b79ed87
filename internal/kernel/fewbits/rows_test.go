package fewbits

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/internal/quant"
)

// different is the first place where numbers differ in their bits, NaN aside, or -1.
func different(x, y []float32) int {
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) && !(x[i] != x[i] && y[i] != y[i]) {
			return i
		}
	}
	return -1
}

// rows are random bytes as rows of a format.
func rows(draw *rand.Rand, f quant.Format, n, elements int) *Rows {
	r := &Rows{Format: f, Elements: elements}
	r.Data = make([]byte, n*r.size())
	for i := range r.Data {
		r.Data[i] = byte(draw.Uint32())
	}
	return r
}

// whole is a row as package quant unpacks it.
func whole(r *Rows, row int) []float32 {
	x, size := make([]float32, r.Elements), r.size()
	r.Format.Unpack(x, r.Data[row*size:][:size])
	return x
}

// TestUnpacksAsQuant: random blocks, among which are scales of every kind, have the bits that
// package quant gives them, whatever part of a row is read, and nothing else is written.
func TestUnpacksAsQuant(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for _, s := range available() {
		for _, f := range quant.All() {
			for range 200 {
				r := rows(draw, f, 3, f.Block()*draw.IntN(4*largest/f.Block()+1))
				from := draw.IntN(r.Elements + 1)
				n, row := draw.IntN(r.Elements-from+1), draw.IntN(3)
				if draw.IntN(3) == 0 {
					from, n = 0, r.Elements
				}
				got := make([]float32, n+2)
				r.read(s, got[1:1+n], row, from)
				want := whole(r, row)[from : from+n]
				if i := different(got[1:1+n], want); i >= 0 {
					t.Fatalf("%d, %s: element %d of %d from %d is %g, want %g", s, f, i, n, from,
						got[1+i], want[i])
				}
				if got[0] != 0 || got[n+1] != 0 {
					t.Fatalf("%d, %s: wrote beside %d elements from %d", s, f, n, from)
				}
			}
		}
	}
}

// TestHalves: every binary16 as a scale.
func TestHalves(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	for f, at := range map[quant.Format][]int{quant.Q8_0: {0}, quant.Q4_0: {0}, quant.Q4_K: {0, 2},
		quant.Q6_K: {208}} {
		r := rows(draw, f, 1, f.Block())
		got := make([]float32, r.Elements)
		for h := range 1 << 16 {
			for _, at := range at {
				r.Data[at], r.Data[at+1] = byte(h), byte(h>>8)
			}
			want := whole(r, 0)
			for _, s := range available() {
				r.read(s, got, 0, 0)
				if i := different(got, want); i >= 0 {
					t.Fatalf("%d, %s: element %d of %#x is %g, want %g", s, f, i, h, got[i],
						want[i])
				}
			}
		}
	}
}

// TestLong: a row of more elements than are unpacked at a time.
func TestLong(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 6))
	for _, f := range quant.All() {
		r := rows(draw, f, 2, 2*span+largest)
		got := make([]float32, r.Elements)
		r.Read(got, 1, 0)
		if i := different(got, whole(r, 1)); i >= 0 {
			t.Errorf("%s: element %d differs", f, i)
		}
		if r.Len() != 2 {
			t.Errorf("%s: %d rows, want 2", f, r.Len())
		}
	}
}

// TestPanics: what is not there is not read.
func TestPanics(t *testing.T) {
	r := rows(rand.New(rand.NewPCG(7, 8)), quant.Q4_K, 2, 512)
	x := make([]float32, 512)
	for name, f := range map[string]func(){
		"before":    func() { r.Read(x[:1], 0, -1) },
		"behind":    func() { r.Read(x, 0, 256) },
		"third row": func() { r.Read(x, 2, 0) },
		"no row":    func() { (&Rows{Format: quant.Q4_K, Elements: 100}).Len() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it did not panic", name)
				}
			}()
			f()
		}()
	}
}

// TestNothingAllocated: rows are read in place.
func TestNothingAllocated(t *testing.T) {
	for _, f := range quant.All() {
		r := rows(rand.New(rand.NewPCG(9, 10)), f, 2, 512)
		x := make([]float32, 500)
		if n := testing.AllocsPerRun(5, func() { r.Read(x, 1, 7) }); n > 0 {
			t.Errorf("%s allocates %v times", f, n)
		}
	}
}
