//go:build !portable

package gemm

import "golang.org/x/sys/cpu"

//go:generate go run ./gen

// available lists the instruction sets that this processor has, best first.
func available() []*isa {
	var sets []*isa
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL {
		sets = append(sets, avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, avx2)
	}
	return append(sets, portable)
}
