//go:build !portable

package conv

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func copyRowsAVX2(dst, src *float32, dstPitch, srcPitch, rows, n int)

//go:noescape
func evenRowsAVX2(dst, src *float32, dstPitch, srcPitch, rows, n int)

//go:noescape
func interleaveRowsAVX2(dst, even, odd *float32, dstPitch, evenPitch, oddPitch, rows, pairs int)

//go:noescape
func tapsAVX2(dst, src, filter *float32, terms *term, count, n int)

var hasFMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// tapsFast is addTaps, if there are instructions for it and rows are not too short.
func tapsFast(dst, src, filter []float32, terms []term) bool {
	if !hasFMA || len(dst) < 8 {
		return false
	}
	tapsAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), unsafe.SliceData(filter),
		unsafe.SliceData(terms), len(terms), len(dst))
	return true
}

var hasAVX2 = cpu.X86.HasAVX2

// takeRowsFast is takeRows, if there are instructions for it.
func takeRowsFast(dst []float32, dstPitch int, src []float32, srcPitch, rows, n, step int) bool {
	if !hasAVX2 || step > 2 {
		return false
	}
	to, from := unsafe.SliceData(dst), unsafe.SliceData(src)
	if step == 1 {
		copyRowsAVX2(to, from, dstPitch, srcPitch, rows, n)
	} else {
		evenRowsAVX2(to, from, dstPitch, srcPitch, rows, n)
	}
	return true
}

// interleaveRowsFast writes the pairs of interleaveRows, if there are instructions
// for it.
func interleaveRowsFast(dst []float32, dstPitch int, even []float32, evenPitch int, odd []float32,
	oddPitch, rows, pairs int) bool {
	if !hasAVX2 {
		return false
	}
	interleaveRowsAVX2(unsafe.SliceData(dst), unsafe.SliceData(even), unsafe.SliceData(odd),
		dstPitch, evenPitch, oddPitch, rows, pairs)
	return true
}
