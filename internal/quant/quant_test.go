package quant

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph/tensor"
)

// read is a file of testdata.
func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// floats are the float32 in bytes.
func floats(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}

// differ is the first place where bits differ, or -1.
func differ(x, y []float32) int {
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
			return i
		}
	}
	return -1
}

// rowBytes is the bytes of a row that there is.
func rowBytes(t *testing.T, f Format, n int) int {
	t.Helper()
	size, err := f.RowBytes(n)
	if err != nil {
		t.Fatal(err)
	}
	return int(size)
}

// through is x packed and unpacked.
func through(t *testing.T, f Format, x []float32) []float32 {
	t.Helper()
	row := make([]byte, rowBytes(t, f, len(x)))
	f.Pack(row, x)
	y := make([]float32, len(x))
	f.Unpack(y, row)
	return y
}

// TestUnpacksAsGGUF: rows unpack to what others unpack them to, to the bit.
func TestUnpacksAsGGUF(t *testing.T) {
	const n = 1024
	for _, f := range All() {
		data := read(t, f.String()+".unpack")
		size := rowBytes(t, f, n)
		if len(data) != size+4*n {
			t.Fatalf("%s: the file has %d bytes, want %d", f, len(data), size+4*n)
		}
		got, want := make([]float32, n), floats(data[size:])
		f.Unpack(got, data[:size])
		if i := differ(got, want); i >= 0 {
			t.Errorf("%s: element %d is %g, want %g", f, i, got[i], want[i])
		}
	}
}

// TestPacksAsGGUF: rows pack to what gguf packs them to, byte by byte.
func TestPacksAsGGUF(t *testing.T) {
	x := floats(read(t, "numbers"))
	for _, f := range []Format{Q8_0, Q4_0, BF16, F16} {
		want := read(t, f.String()+".pack")
		got := make([]byte, rowBytes(t, f, len(x)))
		f.Pack(got, x)
		if !slices.Equal(got, want) {
			t.Errorf("%s: other bytes than gguf's", f)
		}
	}
}

// weighted is the root of the mean of the squares of errors, each times the weight that elements
// are packed by.
func weighted(x, y []float32) float64 {
	var sum float64
	for i := 0; i < len(x); i += 32 {
		var w, wx [32]float64
		weights(w[:], wx[:], x[i:i+32])
		for j := range 32 {
			e := float64(x[i+j]) - float64(y[i+j])
			sum += float64(float64(w[j]*e) * e)
		}
	}
	return math.Sqrt(sum / float64(len(x)))
}

// TestPacksAsWellAsGGML: a super-block is packed no worse than ggml's reference packs it.
func TestPacksAsWellAsGGML(t *testing.T) {
	all := floats(read(t, "numbers"))
	for _, f := range []Format{Q4_K, Q6_K} {
		size := rowBytes(t, f, super)
		theirs := read(t, f.String()+".pack")
		for i := range len(all) / super {
			x, y := all[super*i:super*i+super], make([]float32, super)
			f.Unpack(y, theirs[size*i:size*i+size])
			ours, want := weighted(x, through(t, f, x)), weighted(x, y)
			t.Logf("%s %d: %.4g of ggml's", f, i, ours/want)
			if ours > 1.02*want {
				t.Errorf("%s, super-block %d: an error of %g, ggml's is %g", f, i, ours, want)
			}
		}
	}
}

// TestErrors: what is lost of numbers of a normal distribution, as a part of their deviation.
func TestErrors(t *testing.T) {
	x := normal(1<<15, 1)
	for f, most := range map[Format]float64{Q8_0: 0.0057, Q4_0: 0.09, Q4_K: 0.072, Q6_K: 0.0185,
		NF4: 0.092, BF16: 0.0017, F16: 0.00021} {
		var sum float64
		for i, y := range through(t, f, x) {
			e := float64(y) - float64(x[i])
			sum += float64(e * e)
		}
		lost := math.Sqrt(sum / float64(len(x)))
		t.Logf("%s: %.4g", f, lost)
		if lost > most || lost < most/2 {
			t.Errorf("%s loses %g, want at most %g and more than half", f, lost, most)
		}
	}
}

// TestConstants: rows of one number come out as it, but for how units of scales are rounded.
func TestConstants(t *testing.T) {
	x := make([]float32, 512)
	for _, f := range All() {
		for _, c := range []float32{0, 3, -3, 40, -77} {
			for i := range x {
				x[i] = c
			}
			for i, y := range through(t, f, x) {
				if e := abs(y - c); e > abs(c)/250 {
					t.Fatalf("%s: element %d of %g is %g", f, i, c, y)
				}
			}
		}
	}
}

// normal are n numbers of a normal distribution.
func normal(n int, seed uint64) []float32 {
	draw := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(draw.NormFloat64())
	}
	return x
}

// TestAgain: what is unpacked and packed again stays what it is, in the formats without a search.
func TestAgain(t *testing.T) {
	x := normal(512, 2)
	for _, f := range []Format{Q8_0, Q4_0, BF16, F16} {
		once := through(t, f, x)
		if i := differ(through(t, f, once), once); i >= 0 {
			t.Errorf("%s: element %d changes when it is packed again", f, i)
		}
	}
}

// TestRows: rows are as long as they must be, and no others are there.
func TestRows(t *testing.T) {
	for _, c := range []struct {
		f     Format
		n     int
		bytes int64
	}{
		{Q8_0, 64, 68}, {Q4_0, 64, 36}, {Q4_K, 512, 288}, {Q6_K, 256, 210}, {BF16, 3, 6},
		{F16, 3, 6}, {NF4, 0, 8}, {NF4, 64, 41}, {Q6_K, 1 << 40, 210 << 32},
	} {
		if got, err := c.f.RowBytes(c.n); err != nil || got != c.bytes {
			t.Errorf("%d of %s: %d bytes, %v; want %d", c.n, c.f, got, err, c.bytes)
		}
	}
	for _, c := range []struct {
		f    Format
		n    int
		said string
	}{
		{Q4_K, 128, "a row of 128 elements cannot be q4_k: want a multiple of 256"},
		{Q8_0, -32, "a row of -32 elements cannot be q8_0"},
		{F16, 1 << 60, "at most 2^56"},
		{0, 1, "Format(0) is no format"}, {99, 1, "Format(99) is no format"},
	} {
		_, err := c.f.RowBytes(c.n)
		var typed *RowError
		if !errors.As(err, &typed) || !strings.Contains(err.Error(), c.said) {
			t.Errorf("%d of %s: %v", c.n, c.f, err)
		}
	}
}

// TestNames: formats are found by their names.
func TestNames(t *testing.T) {
	for _, f := range All() {
		if got, err := Parse(f.String()); got != f || err != nil {
			t.Errorf("%s is parsed as %s, %v", f, got, err)
		}
	}
	_, err := Parse("q5_k")
	var typed *UnknownError
	const want = `no format "q5_k": want one of q8_0, q4_0, q4_k, q6_k, nf4, bf16, f16`
	if !errors.As(err, &typed) || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestLengths: rows that are not of the format's length are refused.
func TestLengths(t *testing.T) {
	for _, f := range []func(){
		func() { Q8_0.Unpack(make([]float32, 32), make([]byte, 33)) },
		func() { Q8_0.Pack(make([]byte, 35), make([]float32, 32)) },
		func() { Q4_K.Unpack(make([]float32, 32), make([]byte, 18)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			f()
		}()
	}
}

// TestHalves: the roundings here are package tensor's.
func TestHalves(t *testing.T) {
	var b [2]byte
	for u := range uint32(1 << 16) {
		binary.LittleEndian.PutUint16(b[:], uint16(u))
		if got, want := half(b[:]), tensor.FromF16(uint16(u)); differ([]float32{got},
			[]float32{want}) >= 0 {
			t.Fatalf("%#x is %g, want %g", u, got, want)
		}
		for _, low := range []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001} {
			x := math.Float32frombits(u<<16 | low)
			if got, want := toHalf(x), tensor.ToF16(x); got != want {
				t.Fatalf("%g is %#x, want %#x", x, got, want)
			}
			packBF16(b[:], []float32{x})
			if got, want := binary.LittleEndian.Uint16(b[:]), tensor.ToBF16(x); got != want {
				t.Fatalf("%g is %#x in bfloat16, want %#x", x, got, want)
			}
		}
	}
}

// TestParts: parts of rows are what the whole has there.
func TestParts(t *testing.T) {
	x := normal(1024, 3)
	for _, f := range All() {
		row := make([]byte, rowBytes(t, f, len(x)))
		f.Pack(row, x)
		whole, part := through(t, f, x), make([]float32, 512)
		f.UnpackPart(part, row, 256)
		if i := differ(part, whole[256:]); i >= 0 {
			t.Errorf("%s: element %d of a part is %g, want %g", f, i, part[i], whole[256+i])
		}
	}
}

// TestNearest: rounding to integers, to even ones and away from zero.
func TestNearest(t *testing.T) {
	for _, x := range []float32{0, 0.5, 1.5, -0.5, -2.5, 2.4999, 127.5, -127.49, 4e6} {
		if got, want := nearest(x), int32(math.RoundToEven(float64(x))); got != want {
			t.Errorf("nearest(%g) = %d, want %d", x, got, want)
		}
		if got, want := roundAway(x), int32(math.Round(float64(x))); got != want {
			t.Errorf("roundAway(%g) = %d, want %d", x, got, want)
		}
	}
}

// TestNothingAllocated: rows are packed and unpacked in place.
func TestNothingAllocated(t *testing.T) {
	x := normal(512, 4)
	for _, f := range All() {
		row := make([]byte, rowBytes(t, f, len(x)))
		if n := testing.AllocsPerRun(5, func() { f.Pack(row, x); f.Unpack(x, row) }); n > 0 {
			t.Errorf("%s allocates %v times", f, n)
		}
	}
}

// TestGroups: of whatever bytes, integers times scales, less floors, are the elements; and the sums
// that they are made for fit 32 bits.
func TestGroups(t *testing.T) {
	draw := rand.New(rand.NewPCG(11, 12))
	for _, f := range All() {
		if got, want := f.Integral(), f < NF4; got != want {
			t.Errorf("%s: integral is %t", f, got)
		}
		for c := 0; f.Integral() && c < 500; c++ {
			n := f.Block() * (1 + draw.IntN(GroupSize/f.Block()))
			size, err := f.RowBytes(n)
			if err != nil {
				t.Fatal(err)
			}
			row := make([]byte, size)
			for i := range row {
				row[i] = byte(draw.Uint32())
				if c < 2 { // the largest codes of Q8_0; of Q6_K, and its largest steps
					row[i] = 0x80
					if c == 1 && i < 192 {
						row[i] = 0
					}
				}
			}
			var g Group
			f.Group(&g, row)
			x := make([]float32, n)
			f.Unpack(x, row)
			var sum [8]int64
			for i, q := range g.Codes {
				sum[i/32] += 16383 * int64(max(q, -q))
				if i >= n {
					if q != 0 || g.Scales[i/32] != 0 || g.Floors[i/32] != 0 {
						t.Fatalf("%s: element %d of %d is not zero", f, i, n)
					}
					continue
				}
				got := float32(g.Scales[i/32]*float32(q)) - g.Floors[i/32]
				if got != x[i] && (got == got || x[i] == x[i]) {
					t.Fatalf("%s: element %d is %g, want %g", f, i, got, x[i])
				}
			}
			if most := slices.Max(sum[:]); most > math.MaxInt32 {
				t.Fatalf("%s: a sum may be %d", f, most)
			}
		}
	}
}
