package distrib_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
)

const wireRows, wireCols = 6, 4

func wireShapes(p distrib.ParamID) (rows, cols int, ok bool) {
	return wireRows, wireCols, p == 3
}

// drawFrame draws an update of some rows from row on.
func drawFrame(t *rapid.T, row int, half distrib.DType) distrib.Frame {
	n := rapid.IntRange(1, wireRows-row).Draw(t, "n")
	f := distrib.Frame{
		Ref:   distrib.Ref{Param: 3, Row: int32(row), N: int32(n)},
		Clock: distrib.Clock(rapid.Int64Range(0, 1<<48-1).Draw(t, "clock")),
		Tag:   distrib.Version(rapid.Int64Range(0, 1<<48-1).Draw(t, "tag")),
		Epoch: 7,
		U:     drawUpdate(t, n, wireCols),
	}
	if half != distrib.F32 {
		f.U, _ = distrib.RoundTo(f.U, half)
	}
	return f
}

func decoded(t interface{ Fatal(...any) }, msg []byte) []distrib.Frame {
	var out []distrib.Frame
	err := distrib.Decode(msg, wireShapes, func(f distrib.Frame) error {
		out = append(out, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// equalFrames compares what is said of updates, and the updates element by element.
func equalFrames(a, b distrib.Frame) bool {
	n := int(a.Ref.N)
	if n == 0 {
		n = wireRows
	}
	u, v := a.U, b.U
	a.U, b.U = nil, nil
	return a == b && slices.Equal(matrix(u, n, wireCols), matrix(v, n, wireCols))
}

// TestFramesCrossTheWire: also several in one message, and a whole parameter as N == 0.
func TestFramesCrossTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var msg []byte
		var sent []distrib.Frame
		for range rapid.IntRange(1, 3).Draw(t, "frames") {
			half := distrib.DType(rapid.IntRange(0, 2).Draw(t, "dtype"))
			f := drawFrame(t, rapid.IntRange(0, wireRows-1).Draw(t, "row"), half)
			if f.Ref.N == wireRows {
				f.Ref.N = 0
			}
			size := len(msg) + distrib.FrameSize(f)
			var err error
			if msg, err = distrib.AppendFrame(msg, f); err != nil {
				t.Fatal(err)
			}
			if len(msg) != size {
				t.Fatalf("%d bytes where FrameSize says %d", len(msg), size)
			}
			sent = append(sent, f)
		}
		if got := decoded(t, msg); !slices.EqualFunc(got, sent, equalFrames) {
			t.Fatalf("got %v, sent %v", got, sent)
		}
	})
}

func TestBatchesCrossTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half := distrib.DType(rapid.IntRange(0, 2).Draw(t, "dtype"))
		var sent []distrib.Frame
		for row := 0; row < wireRows; {
			row += rapid.IntRange(0, 2).Draw(t, "left out")
			if row >= wireRows {
				break
			}
			f := drawFrame(t, row, half)
			row += int(f.Ref.N)
			sent = append(sent, f)
		}
		msg, err := distrib.AppendBatch(nil, sent)
		if err != nil {
			t.Fatal(err)
		}
		if got := decoded(t, msg); !slices.EqualFunc(got, sent, equalFrames) {
			t.Fatalf("got %v, sent %v", got, sent)
		}
	})
}

// TestBatchIsCheap: rows of a few numbers cost a few bytes more than the numbers.
func TestBatchIsCheap(t *testing.T) {
	var frames []distrib.Frame
	for row := range wireRows {
		frames = append(frames, distrib.Frame{Ref: distrib.Ref{Param: 3, Row: int32(row), N: 1},
			Clock: 1e6, Tag: 1e9, U: make(distrib.Dense, wireCols)})
	}
	msg, err := distrib.AppendBatch(nil, frames)
	if want := 40 + wireRows*(6+4*wireCols); err != nil || len(msg) != want {
		t.Errorf("%d bytes, want %d; %v", len(msg), want, err)
	}
}

// TestSparseIsSmall: the shorter of a bitmap and gaps.
func TestSparseIsSmall(t *testing.T) {
	for _, c := range []struct{ n, every, want int }{
		{8000, 5, 1000 + 4*1600},        // 4.3 times less than dense, as the design says
		{100_000, 1000, 1 + 200 + 400},  // gaps of 999 take two bytes
		{100_000, 100_000, 1 + 1 + 4},   // one element
		{100_000, 100, 2 + 1000 + 4000}, // gaps of one byte
	} {
		s := distrib.Sparse{N: c.n}
		for i := 0; i < c.n; i += c.every {
			s.Idx, s.Val = append(s.Idx, uint32(i)), append(s.Val, 1)
		}
		got := s.WireSize()
		if got > c.want || got < c.want-2 || got != len(s.AppendWire(nil)) {
			t.Errorf("1 of %d in %d: %d bytes (%d written), want %d", c.every, c.n, got,
				len(s.AppendWire(nil)), c.want)
		}
	}
}

type strange struct{ distrib.Dense }

func TestBadFramesAreNotWritten(t *testing.T) {
	good := distrib.Frame{Ref: distrib.Ref{Param: 3, Row: 1, N: 1}, U: make(distrib.Dense, 4)}
	for want, change := range map[string]func(*distrib.Frame){
		"clock -1 has more than 48 bits":            func(f *distrib.Frame) { f.Clock = -1 },
		"tag 281474976710656 has more than 48 bits": func(f *distrib.Frame) { f.Tag = 1 << 48 },
		"epoch 4294967296 has more than 32 bits":    func(f *distrib.Frame) { f.Epoch = 1 << 32 },
		"negative rows":                             func(f *distrib.Frame) { f.Ref.Row = -1 },
		"strange have no wire format": func(f *distrib.Frame) {
			f.U = strange{make(distrib.Dense, 4)}
		},
	} {
		f := good
		change(&f)
		for _, write := range []func() ([]byte, error){
			func() ([]byte, error) { return distrib.AppendFrame([]byte("x"), f) },
			func() ([]byte, error) { return distrib.AppendBatch([]byte("x"), []distrib.Frame{f}) },
		} {
			b, err := write()
			var bad *distrib.FrameError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || string(b) != "x" {
				t.Errorf("%q %v, want %s", b, err, want)
			}
		}
	}
}

func TestBatchesOfOneKind(t *testing.T) {
	at := func(param, row, n int32, epoch int64, u distrib.Update) distrib.Frame {
		return distrib.Frame{Ref: distrib.Ref{Param: distrib.ParamID(param), Row: row, N: n},
			Epoch: epoch, U: u}
	}
	u := make(distrib.Dense, 4)
	half, _ := distrib.RoundTo(u, distrib.F16)
	first := at(3, 1, 1, 0, u)
	for want, second := range map[string]distrib.Frame{
		"one batch of {Param:3 Row:1 N:1} in epoch 0 and {Param:4": at(4, 2, 1, 0, u),
		"in epoch 9":                    at(3, 2, 1, 9, u),
		"after row 2":                   at(3, 1, 1, 0, u),
		"rows {Param:3 Row:2 N:0} in a": at(3, 2, 0, 0, u),
		"one batch of f32 and f16":      at(3, 2, 1, 0, half),
	} {
		_, err := distrib.AppendBatch(nil, []distrib.Frame{first, second})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if b, err := distrib.AppendBatch(nil, nil); b != nil || err != nil {
		t.Error("nothing is not nothing")
	}
}

// TestEveryFlippedByteIsNoticed, and every message cut short.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	u := distrib.Sparse{N: 24, Idx: []uint32{1, 5, 23}, Val: []float32{1, 2, 3}}
	msg, err := distrib.AppendFrame(nil, distrib.Frame{Ref: distrib.Ref{Param: 3}, U: u})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(b []byte) bool {
		var bad *distrib.FrameError
		return errors.As(distrib.Decode(b, wireShapes, noFrame), &bad)
	}
	for i := range msg {
		flipped := slices.Clone(msg)
		flipped[i] ^= 0x10
		if !refused(flipped) {
			t.Errorf("byte %d", i)
		}
		if i > 0 && !refused(msg[:i]) {
			t.Errorf("%d bytes", i)
		}
	}
}

func noFrame(distrib.Frame) error { return nil }

func TestDecodeEndsWithYield(t *testing.T) {
	msg, _ := distrib.AppendFrame(nil, distrib.Frame{Ref: distrib.Ref{Param: 3, N: 1},
		U: make(distrib.Dense, 4)})
	enough, n := errors.New("enough"), 0
	err := distrib.Decode(slices.Concat(msg, msg), wireShapes, func(distrib.Frame) error {
		n++
		return enough
	})
	if err != enough || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

// TestHalf: 16 bits keep what they can, and what they do not is exact.
func TestHalf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		as := distrib.DType(rapid.IntRange(1, 2).Draw(t, "dtype"))
		x := rapid.SliceOfN(rapid.Float32(), 1, 20).Draw(t, "x")
		send, keep := distrib.RoundTo(distrib.Dense(x), as)
		got, kept := matrix(send, 1, len(x)), matrix(keep, 1, len(x))
		if math.IsNaN(float64(x[0])) {
			t.Skip("nothing equals it")
		}
		for i, v := range x {
			if big := math.Abs(float64(v)) > 65504; big && as == distrib.F16 {
				if math.Abs(float64(got[i])) != 65504 {
					t.Fatalf("%v is sent as %v", v, got[i])
				}
			} else if got[i]+kept[i] != v {
				t.Fatalf("%v is sent as %v, and %v kept", v, got[i], kept[i])
			}
			limit := max(math.Abs(float64(v))/256, math.Ldexp(1, -134)) // half a unit of 8 bits
			if as == distrib.F16 {
				limit = max(math.Abs(float64(v))/2048, 1.0/(1<<25))
			}
			e := math.Abs(float64(got[i]) - float64(v))
			if e > limit && math.Abs(float64(v)) < 65504 {
				t.Fatalf("%v is sent as %v in %v", v, got[i], as)
			}
		}
	})
}

// TestHalfKeepsEverySixteenBits: each value of 16 bits is its own rounding.
func TestHalfKeepsEverySixteenBits(t *testing.T) {
	for _, as := range []distrib.DType{distrib.F16, distrib.BF16} {
		var all distrib.Dense
		for b := range 1 << 16 {
			sign, exp, frac := 1.0, b>>10&31, b&0x3ff
			mantissa, bias := 10, 15
			if as == distrib.BF16 {
				exp, frac, mantissa, bias = b>>7&255, b&0x7f, 7, 127
			}
			if b>>15 == 1 {
				sign = -1
			}
			top := float64(frac) + float64(int(1)<<mantissa)
			if exp == 0 {
				top, exp = float64(frac), 1
			}
			if exp < 2*bias+1 {
				v := math.Ldexp(sign*top, exp-bias-mantissa)
				all = append(all, float32(v))
			}
		}
		send, keep := distrib.RoundTo(all, as)
		if keep != nil {
			t.Errorf("%v: an error is kept", as)
		}
		if !reflect.DeepEqual(send.Update, all) {
			t.Errorf("%v: numbers of 16 bits are rounded", as)
		}
	}
}

// TestHalfRoundsTiesToEven, at all sizes.
func TestHalfRoundsTiesToEven(t *testing.T) {
	for as, digits := range map[distrib.DType]int{distrib.F16: 11, distrib.BF16: 8} {
		unit := math.Ldexp(1, 1-digits)
		for _, scale := range []float64{1, -8, 1.0 / 64} {
			for in, want := range map[float64]float64{1 + unit/2: 1, 1 + 3*unit/2: 1 + 2*unit,
				1 + unit/2 + unit/64: 1 + unit, 2 - unit/2: 2} {
				send, _ := distrib.RoundTo(distrib.Dense{float32(scale * in)}, as)
				if got := send.Update.(distrib.Dense)[0]; got != float32(scale*want) {
					t.Errorf("%v: %v becomes %v, want %v", as, scale*in, got, scale*want)
				}
			}
		}
	}
	// Below 2^-14 an f16 is a multiple of 2^-24.
	tiny := math.Ldexp(1, -24)
	send, _ := distrib.RoundTo(distrib.Dense{float32(2.5 * tiny), float32(3.5 * tiny)}, distrib.F16)
	want := distrib.Dense{float32(2 * tiny), float32(4 * tiny)}
	if got := send.Update.(distrib.Dense); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestFramesThatLie: what a header or a body claims is compared with the shapes.
func TestFramesThatLie(t *testing.T) {
	sparse := distrib.Sparse{N: 4, Idx: []uint32{1}, Val: []float32{2}}
	long := distrib.Sparse{N: 1 << 16, Idx: []uint32{4, 30_000}, Val: []float32{2, 3}}
	near := distrib.Sparse{N: 1 << 16, Idx: []uint32{4, 25}, Val: []float32{2, 3}}
	for _, c := range []struct {
		ref  distrib.Ref
		u    distrib.Update
		want string
	}{
		{distrib.Ref{Param: 2, N: 1}, sparse, "no parameter 2"},
		{distrib.Ref{Param: 3, Row: 5, N: 2}, sparse, "rows [5, +2) of parameter 3, which has 6"},
		{distrib.Ref{Param: 3, Row: 7, N: 1}, sparse, "rows [7, +1) of parameter 3, which has 6"},
		{distrib.Ref{Param: 3, Row: 1}, sparse, "rows [1, +0) of parameter 3, which has 6"},
		{distrib.Ref{Param: 3, N: 1}, make(distrib.Dense, 3), "12 bytes for 1 rows of 4 f32"},
		{distrib.Ref{Param: 3, N: 1}, distrib.Sparse{N: 8, Idx: []uint32{6}, Val: []float32{1}},
			"a bitmap of more than 4 elements"},
		{distrib.Ref{Param: 3, N: 5}, sparse, "2 bytes for "},
		{distrib.Ref{Param: 3}, long, "element 30000 of 24 by its gap"},
		{distrib.Ref{Param: 3}, near, "element 25 of 24 by its gap"},
		{distrib.Ref{Param: 3, N: 1}, distrib.Factored{R: 1, J: 2, K: 4, A: make([]float32, 2),
			B: make([]float32, 4)}, "24 bytes for factors of 1 and 4"},
	} {
		f := distrib.Frame{Ref: c.ref, U: c.u}
		msg, err := distrib.AppendFrame(nil, f)
		if err != nil {
			t.Fatal(err)
		}
		refuses(t, msg, c.want)
		if f.Ref.N > 0 {
			if msg, err = distrib.AppendBatch(nil, []distrib.Frame{f}); err != nil {
				t.Fatal(err)
			}
			refuses(t, msg, c.want)
		}
	}
	for want, b := range map[string][]byte{
		"less than a header": make([]byte, 39), "it begins with 0x0000": make([]byte, 40),
	} {
		refuses(t, b, want)
	}
}

func refuses(t *testing.T, msg []byte, want string) {
	t.Helper()
	err := distrib.Decode(msg, wireShapes, noFrame)
	var bad *distrib.FrameError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestHalfShowsDivergence: what is not finite arrives as it is.
func TestHalfShowsDivergence(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, as := range []distrib.DType{distrib.F16, distrib.BF16} {
		send, keep := distrib.RoundTo(distrib.Dense{inf, -inf, nan}, as)
		got := send.Update.(distrib.Dense)
		if got[0] != inf || got[1] != -inf || got[2] == got[2] || keep != nil {
			t.Errorf("%v: %v, kept %v", as, got, keep)
		}
	}
}

// TestRoundedFactors: what is sent and what is kept add up to the update.
func TestRoundedFactors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := drawShape(t)
		u := drawFactored(t, rows, cols)
		for i := range u.A {
			u.A[i] += 1.0 / 4096
		}
		send, keep := distrib.RoundTo(u, distrib.BF16)
		sum := plus(matrix(send, rows, cols), matrix(keep, rows, cols))
		for i, v := range matrix(u, rows, cols) {
			if math.Abs(float64(sum[i]-v)) > 1e-4 {
				t.Fatalf("element %d: %v, want %v", i, sum[i], v)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	u := distrib.Sparse{N: 24, Idx: []uint32{1, 5, 23}, Val: []float32{1, 2, 3}}
	for _, u := range []distrib.Update{u, make(distrib.Dense, 24),
		distrib.Factored{R: 1, J: 6, K: 4, A: make([]float32, 6), B: make([]float32, 4)},
		distrib.Half{Update: u, As: distrib.F16}} {
		frame := distrib.Frame{Ref: distrib.Ref{Param: 3, N: 6}, Clock: 5, Tag: 9, Epoch: 2, U: u}
		msg, _ := distrib.AppendFrame(nil, frame)
		f.Add(msg)
		msg, _ = distrib.AppendBatch(nil, []distrib.Frame{frame})
		f.Add(msg)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		msg = resealed(msg)
		var bad *distrib.FrameError
		err := distrib.Decode(msg, wireShapes, func(f distrib.Frame) error {
			rows := int(f.Ref.N)
			if f.Ref == (distrib.Ref{Param: 3}) {
				rows = wireRows
			}
			if err := distrib.Check(f.U, rows, wireCols); err != nil {
				t.Error(err)
			}
			again, err := distrib.AppendFrame(nil, f)
			if err != nil {
				t.Error(err)
			}
			if g := decoded(t, again); !sameBits(g[0], f) {
				t.Errorf("%v, again %v", f, g)
			}
			return nil
		})
		if err != nil && !errors.As(err, &bad) {
			t.Errorf("an error of type %T", err)
		}
	})
}

// TestWireFormat writes down the bytes, which other versions of the program read.
func TestWireFormat(t *testing.T) {
	head := distrib.Frame{Ref: distrib.Ref{Param: 3, Row: 2, N: 1}, Clock: 5, Tag: 1 << 40,
		Epoch: 7}
	const refs = "03000000 02000000 01000000 050000000000 000000000001 07000000 "
	for want, u := range map[string]distrib.Update{
		"676d0100" + refs + "10000000 b6967a10 0000803f 00000000 00000000 000000c0": distrib.Dense{
			1, 0, 0, -2},
		"676d0201" + refs + "05000000 d5a117be 09 003c 00c0": distrib.Half{As: distrib.F16,
			Update: distrib.Sparse{N: 4, Idx: []uint32{0, 3}, Val: []float32{1, -2}}},
		"676d0402" + refs + "0a000000 795287d0 803f 0040 0000 0000 c0bf": distrib.Half{
			As: distrib.BF16, Update: distrib.Factored{R: 1, J: 1, K: 4, A: []float32{1},
				B: []float32{2, 0, 0, -1.5}}},
	} {
		f := head
		f.U = u
		got, err := distrib.AppendFrame(nil, f)
		sameBytes(t, got, err, want)
	}
	batch := []distrib.Frame{head, head}
	batch[0].U, batch[1].U = distrib.Dense{1, 0, 0, 0}, distrib.Sparse{N: 4, Idx: []uint32{1},
		Val: []float32{2}}
	batch[1].Ref.Row, batch[1].Clock, batch[1].Tag = 5, 4, 1<<40+1
	got, err := distrib.AppendBatch(nil, batch)
	sameBytes(t, got, err, "676d0500 03000000 02000000 02000000 050000000000 000000000001 "+
		"07000000 21000000 72786fda 00 01 01 00 00 10 0000803f 00000000 00000000 00000000 "+
		"02 01 02 01 02 05 02 00000040")
}

func sameBytes(t *testing.T, got []byte, err error, want string) {
	t.Helper()
	if hex := fmt.Sprintf("%x", got); err != nil || hex != strings.ReplaceAll(want, " ", "") {
		t.Errorf("%s %v, want %s", hex, err, want)
	}
}
