package fewbits

import (
	"encoding/binary"
	"fmt"
	"math"
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
func (r *Rows) size() int {
	n, err := r.Format.RowBytes(r.Elements)
	if err != nil {
		panic("fewbits: " + err.Error())
	}
	return int(n)
}

// Len is how many whole rows there are. It panics if the format has no rows of so many elements.
func (r *Rows) Len() int { return len(r.Data) / max(1, r.size()) }

// Read sets dst to elements of a row, from one on, and panics if it has fewer. It is fastest for
// whole blocks of the format.
func (r *Rows) Read(dst []float32, row, from int) { r.read(best, dst, row, from) }

// read is Read by an instruction set.
func (r *Rows) read(s isa, dst []float32, row, from int) {
	size, block := r.size(), r.Format.Block()
	if from < 0 || from+len(dst) > r.Elements {
		panic(fmt.Sprintf("fewbits: %d elements from %d of a row that has %d", len(dst), from,
			r.Elements))
	}
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

// blockArgs are the arguments of a kernel that unpacks blocks.
type blockArgs struct {
	dst, src unsafe.Pointer
	blocks   int // at least 1

	offset, step float32 // of the scales of NF4's row

	//lint:ignore U1000 only assembly uses it
	steps, floors [16]float32 // assembly keeps what is read of a block's parts here
}

// span is the most elements that a kernel unpacks at a time: a goroutine in assembly cannot be
// preempted.
const span = 1 << 16

// unpack sets dst to whole blocks of a row, from an element on.
func (s isa) unpack(f quant.Format, dst []float32, row []byte, from int) {
	switch f {
	case quant.BF16:
		vec.F32FromBF16(dst, words(row[2*from:]))
		return
	case quant.F16:
		vec.F32FromF16(dst, words(row[2*from:]))
		return
	}
	for at := 0; at < len(dst); at += span {
		part := dst[at:min(at+span, len(dst))]
		if !s.blocks(f, part, row, from+at) {
			f.UnpackPart(part, row, from+at)
		}
	}
}

// blocks is unpack by a kernel, if there is one, of at least one block.
func (s isa) blocks(f quant.Format, dst []float32, row []byte, from int) bool {
	if s == portable {
		return false
	}
	at, err := f.RowBytes(from)
	if err != nil {
		return false
	}
	args := blockArgs{dst: unsafe.Pointer(&dst[0]), src: unsafe.Pointer(&row[at]),
		blocks: len(dst) / f.Block()}
	if f.Header() > 0 {
		args.offset = math.Float32frombits(binary.LittleEndian.Uint32(row))
		args.step = math.Float32frombits(binary.LittleEndian.Uint32(row[4:]))
	}
	return s.kernel(f, &args)
}

// words are bytes as what they are: numbers of 16 bits.
func words(b []byte) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}
