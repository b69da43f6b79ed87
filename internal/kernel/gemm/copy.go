package gemm

import (
	"math"
	"unsafe"

	"github.com/gomem/gomem/internal/kernel/vec"
)

// read copies adjacent elements from an element on: of its row, or of its column if
// columns are contiguous.
func (o *operand) read(dst []float32, mat, row, col int) {
	if from := o.at(mat, row, col); o.bf16() {
		vec.F32FromBF16(dst, unsafe.Slice((*uint16)(from), len(dst)))
	} else {
		copy(dst, unsafe.Slice((*float32)(from), len(dst)))
	}
}

// value returns an element.
func (o *operand) value(mat, row, col int) float32 {
	x := o.at(mat, row, col)
	if o.bf16() {
		return math.Float32frombits(uint32(*(*uint16)(x)) << 16)
	}
	return *(*float32)(x)
}

// bf16 says whether the operand has to be widened.
func (o *operand) bf16() bool { return o.size == 2 }

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
	if c.a.colMajor {
		t.a, t.acs = c.a.runs(w.blockA, mat, m0, k0, m1-m0, k1-k0)
		t.ars = 4
	} else {
		t.a, t.ars = c.a.runs(w.blockA, mat, m0, k0, k1-k0, m1-m0)
		t.acs = 4
	}
}

// usePacked has the next tiles read B from the buffer.
func (w *worker) usePacked(c *call) {
	w.tile.b = unsafe.Pointer(&w.buffer[0])
	w.tile.bs, w.tile.bpanel = 4*c.isa.cols(), 4*c.panel
}

// packB packs columns n0 … n1 of a B whose columns are contiguous: of a panel,
// the elements of one k are adjacent, and those of the next k follow.
func (w *worker) packB(c *call, mat, n0, n1, k0, k1 int) {
	t, lanes, cols := &w.pack, c.isa.lanes, c.isa.cols()
	t.dstStride, t.srcStride, t.cols = 4*cols, 4*c.b.col, k1-k0
	t.use((t.cols-1)%lanes + 1)
	for n := 0; n < n1-n0; n += lanes {
		t.rows = min(lanes, n1-n0-n)
		t.dst = unsafe.Pointer(&w.buffer[n/cols*c.panel+n%cols])
		t.src = c.b.at(mat, k0, n0+n)
		if c.b.bf16() {
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
