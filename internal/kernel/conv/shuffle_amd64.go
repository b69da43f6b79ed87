package conv

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func evensAVX2(dst, src *float32, blocks int)

//go:noescape
func interleaveAVX2(dst, even, odd *float32, blocks int)

var hasAVX2 = cpu.X86.HasAVX2

// evensFast writes a multiple of 8 even elements of src to dst, as many as both
// have whole blocks for, and returns how many.
func evensFast(dst, src []float32) int {
	blocks := min(len(dst)/8, len(src)/16)
	if !hasAVX2 || blocks == 0 {
		return 0
	}
	evensAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), blocks)
	return 8 * blocks
}

// interleaveFast writes a multiple of 8 elements of even and odd to dst in turn,
// and returns how many of each.
func interleaveFast(dst, even, odd []float32) int {
	blocks := min(len(dst)/16, len(even)/8, len(odd)/8)
	if !hasAVX2 || blocks == 0 {
		return 0
	}
	interleaveAVX2(unsafe.SliceData(dst), unsafe.SliceData(even), unsafe.SliceData(odd), blocks)
	return 8 * blocks
}
