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

// unpackBlocks calls the kernel that unpacks a format of blocks.
func (s isa) unpackBlocks(f quant.Format, args *blockArgs) {
	if s == avx512 {
		avx512Unpack(f, args)
	} else {
		avx2Unpack(f, args)
	}
}

// multiply calls the kernel that multiplies by pairs of rows of a format of blocks.
func (s isa) multiply(f quant.Format, args *blockArgs) {
	if s == avx512 {
		avx512Dots(f, args)
	} else {
		avx2Dots(f, args)
	}
}
