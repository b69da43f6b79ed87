package fewbits

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/quant"
)

// Rows is a matrix whose rows, of so many elements, are packed in a format.
type Rows struct {
	Format   quant.Format
	Elements int
	Data     []byte
}

// size is the bytes of a row.
func (r *Rows) size() int { return offset(r.Format, r.Elements) }

// Len is how many whole rows there are. It panics if the format has no rows of so many elements.
func (r *Rows) Len() int { return len(r.Data) / max(1, r.size()) }

// Read sets dst to elements of a row, from one on, and panics if it has fewer. It is fastest for
// whole blocks of the format.
func (r *Rows) Read(dst []float32, row, from int) { r.read(best, dst, row, from) }

// read is Read by an instruction set.
func (r *Rows) read(s isa, dst []float32, row, from int) {
	size, block := r.size(), r.Format.Block()
	r.check(from, len(dst))
	data := r.Data[row*size:][:size]
	if skip := from % block; skip > 0 {
		n := min(block-skip, len(dst))
		s.some(r.Format, dst[:n], data, from-skip, skip)
		dst, from = dst[n:], from+n
	}
	whole := len(dst) / block * block
	s.unpack(r.Format, dst[:whole], data, from)
	if whole < len(dst) {
		s.some(r.Format, dst[whole:], data, from+whole, 0)
	}
}

// check panics unless rows have n elements from one on.
func (r *Rows) check(from, n int) {
	if from < 0 || from+n > r.Elements {
		panic(fmt.Sprintf("fewbits: %d elements from %d of a row that has %d", n, from, r.Elements))
	}
}

// largest is the most elements of a block.
const largest = 256

// some sets dst to elements of the block at from, but for the first so many.
func (s isa) some(f quant.Format, dst []float32, row []byte, from, skip int) {
	block := partial.Get().(*[largest]float32)
	s.unpack(f, block[:f.Block()], row, from)
	copy(dst, block[skip:])
	partial.Put(block)
}

// partial are for blocks of which a part is read.
var partial = sync.Pool{New: func() any { return new([largest]float32) }}

// unpack sets dst to whole blocks of a row, from an element on.
func (s isa) unpack(f quant.Format, dst []float32, row []byte, from int) {
	switch f {
	case quant.BF16:
		vec.F32FromBF16(dst, halves(row[2*from:]))
		return
	case quant.F16:
		vec.F32FromF16(dst, halves(row[2*from:]))
		return
	}
	if s == portable {
		f.UnpackPart(dst, row, from)
		return
	}
	for at := 0; at < len(dst); at += span {
		part := dst[at:min(at+span, len(dst))]
		args := blockArgs{dst: unsafe.Pointer(&part[0]), row: unsafe.Pointer(&row[0]),
			src: unsafe.Pointer(&row[offset(f, from+at)]), blocks: len(part) / f.Block()}
		s.unpackBlocks(f, &args)
	}
}

// offset is where the block of an element begins in a row.
func offset(f quant.Format, element int) int {
	n, err := f.RowBytes(element)
	if err != nil {
		panic("fewbits: " + err.Error())
	}
	return int(n)
}

// halves are bytes as what they are: numbers of 16 bits.
func halves(b []byte) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}
