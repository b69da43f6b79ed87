package gemm

import (
	"math"
	"unsafe"

	"github.com/gomem/gomem/internal/kernel/vec"
)

// read copies adjacent elements from an element on: of its row, or of its column if
// columns are contiguous.
func (o *operand) read(dst []float32, mat, row, col int) {
	from := o.at(mat, row, col)
	switch {
	case o.size == 4:
		copy(dst, unsafe.Slice((*float32)(from), len(dst)))
	case o.size == 2:
		vec.F32FromBF16(dst, unsafe.Slice((*uint16)(from), len(dst)))
	case o.colMajor:
		o.rows.Read(dst, col, row)
	default:
		o.rows.Read(dst, row, col)
	}
}

// one is what value takes: room for an element of rows of few bits, nil of others.
func (o *operand) one() []float32 {
	if o.size > 0 {
		return nil
	}
	return make([]float32, 1)
}

// value returns an element. One of rows of few bits is read to a slice.
func (o *operand) value(one []float32, mat, row, col int) float32 {
	x := o.at(mat, row, col)
	switch o.size {
	case 4:
		return *(*float32)(x)
	case 2:
		return math.Float32frombits(uint32(*(*uint16)(x)) << 16)
	}
	o.read(one, mat, row, col)
	return one[0]
}

// narrow says whether the operand has to be widened.
func (o *operand) narrow() bool { return o.size < 4 }

// runs copies so many runs of n adjacent elements, one from an element on, the others
// from the following rows, or columns if those are contiguous. It returns the copy and
// the bytes from a run of it to the next.
func (o *operand) runs(dst []float32, mat, row, col, n, runs int) (unsafe.Pointer, int) {
	stride := n + panelPad
	for i := range runs {
		if to := dst[i*stride:][:n]; o.colMajor {
			o.read(to, mat, row, col+i)
		} else {
			o.read(to, mat, row+i, col)
		}
	}
	return unsafe.Pointer(unsafe.SliceData(dst)), 4 * stride
}

// copyA copies a block of A and has the next tiles read the copy.
func (w *worker) copyA(c *call, mat, m0, m1, k0, k1 int) {
	t := &w.tile
	w.blockA = lazily(w.blockA, blockSize)
	switch {
	case !c.a.narrow():
		w.panelsA(c, mat, m0, m1, k0, k1)
		return
	case c.a.colMajor:
		t.a, t.acs = c.a.runs(w.blockA, mat, m0, k0, m1-m0, k1-k0)
		t.ars = 4
	default:
		t.a, t.ars = c.a.runs(w.blockA, mat, m0, k0, k1-k0, m1-m0)
		t.acs = 4
	}
	w.stepA = c.height * t.ars
}

// panelsA copies a block of A to panels: of a panel, the elements of one k are
// adjacent, and those of the next k follow. So a kernel reads all of every line.
func (w *worker) panelsA(c *call, mat, m0, m1, k0, k1 int) {
	k := k1 - k0
	panel := c.height*k + panelPad
	w.tile.a, w.tile.ars, w.tile.acs = unsafe.Pointer(&w.blockA[0]), 4, 4*c.height
	w.stepA = 4 * panel
	if c.a.colMajor {
		w.packA(c.isa, w.blockA, c.a.at(mat, m0, k0), 4*c.a.col, m1-m0, k, c.height)
		return
	}
	t := &w.pack
	t.dstStride, t.srcStride, t.cols = 4*c.height, 4*c.a.row, k
	t.use((k-1)%c.isa.lanes + 1)
	for m := m0; m < m1; m += c.height {
		t.dst = unsafe.Pointer(&w.blockA[(m-m0)/c.height*panel])
		t.src, t.rows = c.a.at(mat, m, k0), min(c.height, m1-m)
		c.isa.transpose(t)
	}
}

// packA copies m rows and k columns of a matrix whose columns are contiguous, stride
// bytes apart, to panels of height rows, height*k+panelPad elements apart.
func (w *worker) packA(s *isa, dst []float32, src unsafe.Pointer, stride, m, k, height int) {
	t, panel := &w.pack, height*k+panelPad
	t.dstStride, t.srcStride, t.step, t.cols = 4*panel, stride, 4*height, k
	whole, rest := m/height, m%height
	if whole > 0 {
		t.dst, t.src, t.rows = unsafe.Pointer(&dst[0]), src, whole
		t.use(height)
		s.copyA(t)
	}
	if rest > 0 {
		t.dst, t.src = unsafe.Pointer(&dst[whole*panel]), unsafe.Add(src, 4*whole*height)
		t.rows = 1
		t.use(rest)
		s.copyA(t)
	}
}

// usePacked has the next tiles read B from the buffer.
func (w *worker) usePacked(c *call) {
	w.tile.b = unsafe.Pointer(&w.buffer[0])
	w.tile.bs, w.tile.bpanel = 4*c.isa.cols(), 4*c.panel
}

// packRows packs n columns of k rows, stride bytes apart, to panels so many elements
// apart.
func (w *worker) packRows(s *isa, panel int, src unsafe.Pointer, stride, n, k int) {
	t, cols := &w.pack, s.cols()
	t.dst, t.src = unsafe.Pointer(&w.buffer[0]), src
	t.dstStride, t.srcStride, t.rows, t.cols = 4*panel, stride, n/cols, k
	if t.rows > 0 {
		s.copyB(t)
	}
	if rest := n % cols; rest > 0 {
		to, from := w.buffer[n/cols*panel:], unsafe.Add(src, 4*(n-rest))
		for i := range k {
			copy(to[i*cols:][:rest], unsafe.Slice((*float32)(unsafe.Add(from, i*stride)), rest))
		}
	}
}

// packColumns packs columns n0 … n1 of a B whose columns are contiguous: of a panel,
// the elements of one k are adjacent, and those of the next k follow.
func (w *worker) packColumns(c *call, mat, n0, n1, k0, k1 int) {
	t, lanes, cols := &w.pack, c.isa.lanes, c.isa.cols()
	t.dstStride, t.srcStride, t.cols = 4*cols, 4*c.b.col, k1-k0
	t.use((t.cols-1)%lanes + 1)
	for n := 0; n < n1-n0; n += lanes {
		t.rows = min(lanes, n1-n0-n)
		t.dst = unsafe.Pointer(&w.buffer[n/cols*c.panel+n%cols])
		t.src = c.b.at(mat, k0, n0+n)
		if c.b.narrow() {
			t.src, t.srcStride = w.widen(c, mat, k0, n0+n, t.cols, t.rows)
		}
		c.isa.transpose(t)
	}
}

// widen copies so many runs of n elements of B as runs does.
func (w *worker) widen(c *call, mat, row, col, n, runs int) (unsafe.Pointer, int) {
	w.wide = lazily(w.wide, wideSize)
	return c.b.runs(w.wide, mat, row, col, n, runs)
}

// lazily returns a buffer that few products need.
func lazily(buffer []float32, size int) []float32 {
	if buffer == nil {
		return make([]float32, size)
	}
	return buffer
}
