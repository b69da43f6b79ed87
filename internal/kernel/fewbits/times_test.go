package fewbits

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/gomem/gomem/internal/quant"
)

// integral are the formats that Times multiplies.
var integral = []quant.Format{quant.Q8_0, quant.Q4_0, quant.Q4_K, quant.Q6_K}

// packedRows are normal numbers as rows of a format.
func packedRows(draw *rand.Rand, f quant.Format, n, elements int) *Rows {
	r := &Rows{Format: f, Elements: elements}
	r.Data = make([]byte, n*r.size())
	for j := range n {
		f.Pack(r.Data[j*r.size():][:r.size()], normal(draw, elements))
	}
	return r
}

func normal(draw *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(draw.NormFloat64())
	}
	return x
}

// defined is the product of x and a row as the documentation defines it, in plain words.
func defined(x []float32, r *Rows, row int) float32 {
	var lanes [8]float32
	data := r.Data[row*r.size():][:r.size()]
	for b := 0; 32*b < len(x); b++ {
		part := x[32*b:][:32]
		g := b / 8
		var w quant.Group
		end := min(offset(r.Format, 256*g+256), len(data))
		r.Format.Group(&w, data[offset(r.Format, 256*g):end])
		most, infinite, nan := float32(0), false, false
		for _, v := range part {
			most = max(most, float32(math.Abs(float64(v))))
			infinite = infinite || math.IsInf(float64(v), 0)
			nan = nan || v != v
		}
		s, inverse := most/16383, 16383/most
		if most < float32(math.Ldexp(1, -112)) {
			s, inverse = 0, 0
		}
		var dot, sum int64
		for i, v := range part {
			c := int64(math.RoundToEven(float64(float32(v * inverse))))
			if infinite {
				c = 0
				if math.IsInf(float64(v), 0) {
					c = int64(math.Copysign(1, float64(v)))
				}
			}
			if nan {
				c = 0
			}
			sum += c
			dot += c * int64(w.Codes[32*(b%8)+i])
		}
		if infinite {
			s = float32(math.Inf(1))
		}
		if nan {
			s = float32(math.NaN())
		}
		a := float32(w.Scales[b%8] * float32(dot))
		m := float32(w.Floors[b%8] * float32(sum))
		lanes[b%8] += float32(s * float32(a-m))
	}
	for n := 4; n > 0; n /= 2 {
		for i := range n {
			lanes[i] = lanes[2*i] + lanes[2*i+1]
		}
	}
	return lanes[0]
}

// multiplied are the products of rows of x, each of as many elements as those of r.
func multiplied(s integers, r *Rows, x []float32, stride, first, n int) []float32 {
	count := len(x) / r.Elements
	size := int(RoundedBytes(r.Elements))
	data := make([]byte, count*size)
	for i := range count {
		round(s, data[i*size:][:size], x[i*r.Elements:][:r.Elements])
	}
	out := make([]float32, count*stride)
	r.times(s, out, stride, data, count, first, n)
	return out
}

// extremes are what x may have among other numbers.
var extremes = []float32{0, float32(math.Copysign(0, -1)), 1e-45, -1e-40, 1e-30, 1e30, -3e38,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0x1p-112, 0x1.fffffep-113}

// spoil puts extremes into a few blocks of x, alone or among others.
func spoil(draw *rand.Rand, x []float32) {
	for range draw.IntN(4) {
		part := x[32*draw.IntN(len(x)/32):][:32]
		if draw.IntN(2) == 0 {
			clear(part)
		}
		for range draw.IntN(3) + 1 {
			part[draw.IntN(32)] = extremes[draw.IntN(len(extremes))]
		}
	}
}

// TestTimes: every set of kernels has the bits of the definition, however many rows there are, of
// whatever bytes, and of numbers that are not finite or hardly any; nothing else is written.
func TestTimes(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for c := range 240 {
		f := integral[c%len(integral)]
		elements := f.Block() * (1 + draw.IntN(5*largest/f.Block()))
		if c%16 < 4 {
			elements = largest * 9 // more than a panel
		}
		rows := 1 + draw.IntN(36)
		r := packedRows(draw, f, rows, elements)
		if c%3 == 0 { // bytes, and so scales, of all kinds
			for i := range r.Data {
				r.Data[i] = byte(draw.Uint32())
			}
		}
		count := []int{1, 2, 3, 5, 7, 8, 9, 17}[draw.IntN(8)]
		x := normal(draw, count*elements)
		switch c % 5 {
		case 0, 1:
			spoil(draw, x)
		case 2:
			for i := range x { // blocks about the least that are rounded
				x[i] *= 0x1p-113
			}
		}
		first := draw.IntN(rows)
		n := 1 + draw.IntN(rows-first)
		stride := n + draw.IntN(3)
		want := make([]float32, count*stride)
		for i := range count {
			for j := range n {
				want[i*stride+j] = defined(x[i*elements:][:elements], r, first+j)
			}
		}
		for _, s := range integerSets {
			got := multiplied(s, r, x, stride, first, n)
			if i := different(got, want); i >= 0 {
				t.Fatalf("set %d, %s, %d rows of %d by %d from %d: element %d is %g, want %g", s, f,
					count, elements, n, first, i, got[i], want[i])
			}
		}
	}
}

// FuzzTimes: of whatever bytes, x and a row have the product that is defined, by every set.
func FuzzTimes(f *testing.F) {
	f.Add(uint8(0), []byte{1, 2, 3}, []byte{0, 0, 0x80, 0x7f, 0, 0, 0, 0})
	f.Add(uint8(2), []byte{0xff, 0x7b}, []byte{0, 0, 0xc0, 0x7f, 5})
	f.Fuzz(func(t *testing.T, format uint8, row, x []byte) {
		if len(row) == 0 || len(x) < 4 {
			return
		}
		r := &Rows{Format: integral[int(format)%len(integral)], Elements: 512 + 256*int(format%2)}
		r.Data = make([]byte, 3*r.size())
		for i := range r.Data {
			r.Data[i] = row[i%len(row)]
		}
		values := make([]float32, 9*r.Elements)
		for i := range values {
			at := 4 * i % (len(x) / 4 * 4)
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(x[at:]))
		}
		want := make([]float32, 9*3)
		for i := range want {
			want[i] = defined(values[i/3*r.Elements:][:r.Elements], r, i%3)
		}
		for _, s := range integerSets {
			if i := different(multiplied(s, r, values, 3, 0, 3), want); i >= 0 {
				t.Fatalf("set %d, %s: element %d differs", s, r.Format, i)
			}
		}
	})
}

// TestNotFinite: one infinity among finite numbers makes of products what it makes of them in
// float32, NaN makes all NaN, and several infinities leave none finite.
func TestNotFinite(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	inf := float32(math.Inf(1))
	for _, f := range integral {
		r := packedRows(draw, f, 40, 512)
		for _, odd := range [][]float32{{inf}, {-inf}, {float32(math.NaN())}, {inf, inf},
			{inf, -inf}, {inf, float32(math.NaN())}} {
			x := normal(draw, 512)
			for _, v := range odd {
				x[64+draw.IntN(32)] = v
			}
			for j, got := range multiplied(fastest, r, x, 40, 0, 40) {
				var want float32
				for i, w := range whole(r, j) {
					want += float32(x[i] * w)
				}
				if len(odd) == 1 && different([]float32{got}, []float32{want}) >= 0 ||
					!(math.IsInf(float64(got), 0) || got != got) {
					t.Fatalf("%s, row %d by %v: %g, and of float32 %g", f, j, odd, got, want)
				}
			}
		}
	}
}

// TestRoundingIsSmall: a product differs from that of the same numbers by half a 16,383th of the
// largest of each 32 of x times the magnitudes of the row, at most, but for what float32 loses, and
// in the mean by a hundredth of what it would with codes of 8 bits.
func TestRoundingIsSmall(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 6))
	for _, f := range integral {
		const n, elements = 50, 2048
		r := packedRows(draw, f, n, elements)
		x := normal(draw, elements)
		var squares, squares8 float64
		for j, got := range multiplied(fastest, r, x, n, 0, n) {
			var want, by8, room float64
			w := whole(r, j)
			for b := 0; b < elements; b += 32 {
				most := 0.0
				for _, v := range x[b : b+32] {
					most = max(most, math.Abs(float64(v)))
				}
				for i := b; i < b+32; i++ {
					v, w := float64(x[i]), float64(w[i])
					want += float64(v * w)
					by8 += float64(math.RoundToEven(v*127/most) * most / 127 * w)
					room += float64(most / 16383 / 2 * math.Abs(w))
				}
			}
			e := math.Abs(float64(got) - want)
			if e > room*1.01 {
				t.Fatalf("%s: %g differs from %g by more than %g", f, got, want, room)
			}
			squares, squares8 = squares+float64(e*e), squares8+float64((by8-want)*(by8-want))
		}
		if !(squares*1e4 < squares8) {
			t.Errorf("%s: errors have a mean square of %g, with 8 bits %g", f, squares/n,
				squares8/n)
		}
	}
}

// TestTimesPanics: what is not there is neither read nor written.
func TestTimesPanics(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 8))
	r := packedRows(draw, quant.Q8_0, 3, 64)
	x := make([]byte, 2*RoundedBytes(64))
	nf4 := rows(draw, quant.NF4, 3, 64)
	for name, f := range map[string]func(){
		"no integers":     func() { nf4.Times(make([]float32, 6), 3, x, 2, 0, 3) },
		"fourth row":      func() { r.Times(make([]float32, 6), 3, x, 2, 1, 3) },
		"before":          func() { r.Times(make([]float32, 6), 3, x, 2, -1, 3) },
		"third of x":      func() { r.Times(make([]float32, 9), 3, x, 3, 0, 3) },
		"few results":     func() { r.Times(make([]float32, 5), 3, x, 2, 0, 3) },
		"rows that meet":  func() { r.Times(make([]float32, 6), 2, x, 2, 0, 3) },
		"part of a block": func() { Round(x, make([]float32, 33)) },
		"few bytes":       func() { Round(x[:RoundedBytes(64)-1], make([]float32, 64)) },
		"odd address":     func() { Round(x[1:], make([]float32, 64)) },
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
	r.Times(nil, 0, nil, 0, 0, 3)
	(&Rows{Format: quant.Q8_0}).Times(nil, 0, nil, 2, 0, 0)
}

// TestTimesAllocatesNothing that grows with what is multiplied.
func TestTimesAllocatesNothing(t *testing.T) {
	r := packedRows(rand.New(rand.NewPCG(9, 10)), quant.Q4_K, 20, 512)
	x, out := make([]byte, 9*RoundedBytes(512)), make([]float32, 9*20)
	for _, count := range []int{1, 9} {
		if n := testing.AllocsPerRun(5, func() { r.Times(out, 20, x, count, 0, 20) }); n >= 1 {
			t.Errorf("products of %d rows allocate %v times", count, n)
		}
	}
	values := make([]float32, 500/32*32)
	if n := testing.AllocsPerRun(5, func() { Round(x, values) }); n > 0 {
		t.Errorf("rounding allocates %v times", n)
	}
}

// TestWorkspacesAreAligned: vectors of what products are computed in are in one line of the cache
// each.
func TestWorkspacesAreAligned(t *testing.T) {
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	for name, p := range map[string]unsafe.Pointer{"rows": unsafe.Pointer(&w.rows),
		"panel": unsafe.Pointer(&w.panel), "sums": unsafe.Pointer(&w.sums),
		"to": unsafe.Pointer(&w.to), "few": unsafe.Pointer(&w.few),
		"space": unsafe.Pointer(&w.space)} {
		if uintptr(p)%64 != 0 {
			t.Errorf("%s is at %p", name, p)
		}
	}
}
