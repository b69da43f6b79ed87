//go:build linux && amd64 && !nocuda

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// ones are the products that tasks were made of, one of each shape, type and form. Each is computed
// once of ones, before the first step, in the plan's memory and at its addresses: libraries have
// lost the end of sums whose number of terms is odd.
type ones struct {
	known map[form]*driver.Gemm
	order []*driver.Gemm
}

// form is all of a product that its kernel may depend on, but for addresses.
type form struct {
	transA, transB, tf32, halfIn, halfOut, adds bool
	m, n, k, lda, ldb, ldc, batch               int
}

// add has a product tried, if none of its form is.
func (o *ones) add(g *driver.Gemm) {
	f := form{g.TransA, g.TransB, g.TF32, g.HalfIn, g.HalfOut, g.Beta != 0, g.M, g.N, g.K, g.LdA,
		g.LdB, g.LdC, g.Batch}
	if o.known == nil {
		o.known = map[form]*driver.Gemm{}
	}
	if o.known[f] == nil {
		o.known[f] = g
		o.order = append(o.order, g)
	}
}

// try computes those that were added since it did last, in a stream, and leaves the memory as it
// happens to be.
func (o *ones) try(d *Device, s *stream) error {
	for _, g := range o.order {
		u := &unit{Gemm: g, gpu: d.gpu, stream: s}
		if !u.can() {
			continue
		}
		wrong, err := u.run()
		if err != nil {
			return err
		}
		if wrong != nil {
			return &ProductError{Product: named(g), Library: "cuBLAS " + d.blas.Version,
				File: d.blas.Path, Err: wrong}
		}
	}
	o.order = nil
	return nil
}

// named says what a product is, by rows as the plan has it.
func named(g *driver.Gemm) string {
	in, out := "f32", "f32"
	if g.HalfIn {
		in = "bfloat16"
	}
	if g.HalfOut {
		out = "bfloat16"
	}
	text := fmt.Sprintf("%d×%d of %d terms, %s to %s", g.N, g.M, g.K, in, out)
	if g.Batch > 1 {
		text = fmt.Sprintf("%d times %s", g.Batch, text)
	}
	for _, t := range []struct {
		is   bool
		what string
	}{{g.TransB, "the first operand transposed"}, {g.TransA, "the second operand transposed"},
		{g.TF32, "in TF32"}, {g.Beta != 0, "added to what is there"}} {
		if t.is {
			text += ", " + t.what
		}
	}
	return text
}

// exact is how many ones have a sum that bfloat16 has.
const exact = 256

// unit is a product of ones. Where its result is of bfloat16, which has no large odd numbers, of
// the second operand only some terms of some columns are ones and the others are zeros: the last
// term and those as far apart as makes a sum that it has.
type unit struct {
	*driver.Gemm
	gpu    *driver.GPU
	stream *stream
}

// step is how far apart ones are.
func (u *unit) step() int {
	if !u.HalfOut {
		return 1
	}
	return (u.K + exact - 1) / exact
}

// can reports whether the product can be tried: it has terms, no more than f32 counts, and where
// operands are different ones they are apart.
func (u *unit) can() bool {
	a, b := u.operands()
	apart := u.A+uint64(a) <= u.B || u.B+uint64(b) <= u.A
	return u.K > 0 && u.K <= 1<<24 && (apart || u.step() == 1)
}

// operands are the bytes of both.
func (u *unit) operands() (a, b int64) {
	a = u.span(u.K, u.M, u.LdA, u.StrideA, u.TransA)
	b = u.span(u.N, u.K, u.LdB, u.StrideB, u.TransB)
	return u.bytes(a, u.HalfIn), u.bytes(b, u.HalfIn)
}

// run computes it. wrong says what is wrong with it, err what is wrong with the GPU.
func (u *unit) run() (wrong *WrongError, err error) {
	step := u.step()
	if err := errors.Join(u.write(step), u.gpu.Sync()); err != nil {
		return nil, err
	}
	g := *u.Gemm
	g.Alpha = 1
	g.Prepare()
	if err := u.stream.products.Run(&g); err != nil {
		return nil, err
	}
	if err := u.gpu.Sync(); err != nil {
		return nil, err
	}
	return u.compare(float64((u.K + step - 1) / step))
}

// write makes operands ones, every so many terms, and the result zeros where it is added to.
func (u *unit) write(step int) error {
	a, b := u.operands()
	c := u.bytes(u.place(u.Batch-1, u.N-1, u.LdC, u.StrideC)+int64(u.M), u.HalfOut)
	blank := u.gpu.Blank
	if u.Beta != 0 {
		blank = u.gpu.Clear
	}
	if err := blank(u.C, c); err != nil {
		return err
	}
	if err := u.fill(u.A, a); err != nil {
		return err
	}
	if step == 1 {
		return u.fill(u.B, b)
	}
	if err := u.gpu.Clear(u.B, b); err != nil {
		return err
	}
	return u.sparse(step)
}

// span is how many elements there are from a matrix's first to the last of all, of so many columns
// and rows before it is transposed.
func (u *unit) span(cols, rows, ld int, stride int64, transposed bool) int64 {
	if transposed {
		cols, rows = rows, cols
	}
	return u.place(u.Batch-1, cols-1, ld, stride) + int64(rows)
}

// place is the element that a column of one of the matrices begins with.
func (u *unit) place(z, col, ld int, stride int64) int64 {
	return int64(max(z, 0))*stride + int64(col)*int64(ld)
}

// bytes are those of elements.
func (u *unit) bytes(elements int64, half bool) int64 {
	if half {
		return 2 * elements
	}
	return 4 * elements
}

// fill makes so many bytes of an operand ones.
func (u *unit) fill(at uint64, bytes int64) error {
	if !u.HalfIn {
		return u.stream.cu.Fill(at, math.Float32bits(1), bytes/4)
	}
	elements := bytes / 2
	const one = 0x3f80
	alone := binary.LittleEndian.AppendUint16(nil, one)
	if at%4 != 0 && elements > 0 {
		if err := u.gpu.Write(at, alone); err != nil {
			return err
		}
		at, elements = at+2, elements-1
	}
	if elements%2 != 0 {
		elements--
		if err := u.gpu.Write(at+uint64(2*elements), alone); err != nil {
			return err
		}
	}
	return u.stream.cu.Fill(at, one<<16|one, elements/2)
}

// sparse writes the ones of the second operand.
func (u *unit) sparse(step int) error {
	column := make([]byte, 2*u.K)
	for k := u.K - 1; k >= 0; k -= step {
		binary.LittleEndian.PutUint16(column[2*k:], 0x3f80)
	}
	for _, z := range ends(max(u.Batch, 1)) {
		for _, j := range ends(u.N) {
			if !u.TransB {
				if err := u.gpu.Write(u.B+uint64(2*u.place(z, j, u.LdB, u.StrideB)),
					column); err != nil {
					return err
				}
				continue
			}
			for k := u.K - 1; k >= 0; k -= step {
				at := u.B + uint64(2*(u.place(z, k, u.LdB, u.StrideB)+int64(j)))
				if err := u.gpu.Write(at, column[2*(u.K-1):]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ends are the first and the last of so many.
func ends(n int) []int {
	if n == 1 {
		return []int{0}
	}
	return []int{0, n - 1}
}

// compare looks at the first and the last column of the first and the last matrix.
func (u *unit) compare(want float64) (*WrongError, error) {
	size := int(u.bytes(1, u.HalfOut))
	data := make([]byte, size*u.M)
	for _, z := range ends(max(u.Batch, 1)) {
		for _, j := range ends(u.N) {
			first := u.place(z, j, u.LdC, u.StrideC)
			if err := u.gpu.Read(u.C+uint64(size)*uint64(first), data); err != nil {
				return nil, err
			}
			for i := range u.M {
				if got := float64(element(data, i, size)); got != want {
					return &WrongError{int(first) + i, got, want}, nil
				}
			}
		}
	}
	return nil, nil
}
