//go:build !portable

package fewbits

import (
	"golang.org/x/sys/cpu"

	"github.com/gomem/gomem/internal/quant"
)

//go:generate go run ./gen

// available lists the instruction sets that this processor has, fastest first.
func available() []isa {
	var sets []isa
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasF16C {
		sets = append(sets, avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasF16C {
		sets = append(sets, avx2)
	}
	return append(sets, portable)
}

// kernel says whether there is a kernel of a format, and calls it.
func (s isa) kernel(f quant.Format, args *blockArgs) bool {
	if s == avx512 {
		return avx512Unpack(f, args)
	}
	return avx2Unpack(f, args)
}
