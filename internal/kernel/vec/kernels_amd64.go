//go:build !portable

package vec

//go:generate go run ./gen

import "golang.org/x/sys/cpu"

// available lists the implementations that this processor has, fastest first.
func available() []kernels {
	list := []kernels{portable()}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C && cpu.X86.HasBMI2 {
		list = append([]kernels{complete(avx2())}, list...)
		if cpu.X86.HasAVX512F {
			list = append([]kernels{avx512()}, list...)
		}
	}
	return list
}

// storeFence waits until stores that bypassed the caches are visible to other threads.
func storeFence()

// wholeDrawn is whole for kernels that round by random words.
func wholeDrawn[D any](blocks, rest func(dst []D, x []float32, words []uint32)) func(dst []D,
	x []float32, words []uint32) {
	return func(dst []D, x []float32, words []uint32) {
		n := len(dst) &^ 31
		blocks(dst[:n], x[:n], words[:n])
		rest(dst[n:], x[n:], words[n:])
	}
}

// whole makes a kernel of one that processes only blocks of 32 elements, and one
// for the rest.
func whole[D, S any](blocks, rest func(dst []D, x []S)) func(dst []D, x []S) {
	return func(dst []D, x []S) {
		n := len(dst) &^ 31
		blocks(dst[:n], x[:n])
		rest(dst[n:], x[n:])
	}
}
