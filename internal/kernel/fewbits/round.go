package fewbits

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gomem/gomem/internal/quant"
)

// rounded is 256 elements of a row as integers: element i is scales[i/32]·codes[i]. Of each 32
// there is the sum of codes, too.
type rounded struct {
	codes        [quant.GroupSize]int16
	scales, sums [8]float32
}

const (
	block = 32    // elements of a scale
	limit = 16383 // the largest code

	// least is the least magnitude of a block that is not taken for zero: below it, scales could
	// be subnormal.
	least = 0x1p-112
)

// groups is how often a row has 256 elements, the last time perhaps fewer.
func groups(elements int) int { return (elements + quant.GroupSize - 1) / quant.GroupSize }

// RoundedBytes is the bytes of a rounded row of so many elements.
func RoundedBytes(elements int) int64 {
	return int64(groups(elements)) * int64(unsafe.Sizeof(rounded{}))
}

// Round sets dst to a row x, of a multiple of 32 elements, rounded: see [Rows.Times]. It panics if
// dst has fewer than its [RoundedBytes], or is not at a multiple of 4 bytes.
func Round(dst []byte, x []float32) { round(fastest, dst, x) }

// round is Round by an instruction set.
func round(s integers, dst []byte, x []float32) {
	if len(x)%block != 0 {
		panic(fmt.Sprintf("fewbits: a row of %d elements is no multiple of %d", len(x), block))
	}
	rows := roundedRows(dst, 1, len(x))
	for i := range rows {
		to := &rows[i]
		part := x[:min(len(x), quant.GroupSize)]
		if len(part) < quant.GroupSize {
			*to = rounded{}
		}
		s.roundGroup(to, part)
		x = x[len(part):]
	}
}

// roundedRows are bytes as what they are: so many rows of so many elements.
func roundedRows(data []byte, rows, elements int) []rounded {
	n := rows * groups(elements)
	if at := unsafe.Pointer(unsafe.SliceData(data)); uintptr(at)%4 != 0 ||
		int64(len(data)) < int64(rows)*RoundedBytes(elements) {
		panic(fmt.Sprintf("fewbits: %d bytes at %p are not %d rounded rows of %d elements",
			len(data), at, rows, elements))
	}
	return unsafe.Slice((*rounded)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// roundGroup rounds blocks of a group, the first of x, up to eight.
func (s integers) roundGroup(to *rounded, x []float32) {
	for b := 0; len(x) > 0; {
		if s != plain {
			args := groupArgs{src: unsafe.Pointer(&x[0]), dst: unsafe.Pointer(&to.codes[b*block]),
				scales: unsafe.Pointer(&to.scales[b]), rows: len(x) / block}
			s.roundBlocks(&args)
			done := len(x)/block - args.rows
			if b, x = b+done, x[done*block:]; len(x) == 0 {
				return
			}
		}
		to.scales[b], to.sums[b] = roundBlock((*[block]int16)(to.codes[b*block:]),
			(*[block]float32)(x))
		b, x = b+1, x[block:]
	}
}

// roundBlock rounds the elements of a block.
func roundBlock(codes *[block]int16, x *[block]float32) (scale, sum float32) {
	var most uint32
	for _, v := range x {
		most = max(most, math.Float32bits(v)&math.MaxInt32)
	}
	largest, total := math.Float32frombits(most), 0
	switch {
	case largest < least:
		*codes = [block]int16{}
		return 0, 0
	case !(largest <= math.MaxFloat32):
		return unrounded(codes, x, largest)
	}
	inverse := limit / largest
	for i, v := range x {
		codes[i] = int16(math.RoundToEven(float64(float32(v * inverse))))
		total += int(codes[i])
	}
	return largest / limit, float32(total)
}

// unrounded has a block that is not finite: each infinity as ±1 times infinity, all else as 0, and
// a block with NaN as NaN.
func unrounded(codes *[block]int16, x *[block]float32, largest float32) (scale, sum float32) {
	for i, v := range x {
		codes[i] = 0
		switch {
		case math.IsInf(float64(v), 1):
			codes[i] = 1
		case math.IsInf(float64(v), -1):
			codes[i] = -1
		}
		sum += float32(codes[i])
	}
	return largest, sum
}
