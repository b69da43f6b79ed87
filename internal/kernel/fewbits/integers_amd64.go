//go:build !portable

package fewbits

import (
	"golang.org/x/sys/cpu"

	"github.com/gomem/gomem/internal/quant"
)

// availableIntegers lists the instruction sets with kernels of integers that this processor has,
// fastest first.
func availableIntegers() []integers {
	var sets []integers
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512VL && x.HasAVX512VNNI && x.HasAVX2 && x.HasF16C {
		sets = append(sets, summed)
	}
	if x.HasAVX2 && x.HasF16C {
		sets = append(sets, words)
	}
	return append(sets, plain)
}

// roundBlocks calls the kernel that rounds blocks of a group, until one of them is not ordinary.
func (s integers) roundBlocks(args *groupArgs) {
	if s == summed {
		avx512Round(args)
	} else {
		avx2Round(args)
	}
}

// bytes calls the kernel that makes groups in bytes of rounded ones.
func (s integers) bytes(args *groupArgs) {
	if s == summed {
		avx512Bytes(args)
	} else {
		avx2Bytes(args)
	}
}

// products calls the kernel that adds to sums the products of a rounded row and packed rows.
func (s integers) products(f quant.Format, args *groupArgs) {
	if s == summed {
		avx512Products(f, args)
	} else {
		avx2Products(f, args)
	}
}

// fours calls the kernel that does so for 4 rounded rows.
func (s integers) fours(f quant.Format, args *groupArgs) {
	if s == summed {
		avx512Fours(f, args)
	} else {
		avx2Fours(f, args)
	}
}

// group calls the kernel that unpacks a group.
func (s integers) group(f quant.Format, args *groupArgs) {
	if s == summed {
		avx512Group(f, args)
	} else {
		avx2Group(f, args)
	}
}

// transpose calls the kernel that makes 8 rows of a panel of as many groups.
func (s integers) transpose(args *groupArgs) {
	if s == summed {
		avx512Transpose(args)
	} else {
		avx2Transpose(args)
	}
}

// tile calls the kernel that adds to sums the products of 8 rounded rows and a panel.
func (s integers) tile(args *groupArgs) {
	if s == summed {
		avx512Tile(args)
	} else {
		avx2Tile(args)
	}
}

// add calls the kernel that adds up the sums of a tile.
func (s integers) add(args *groupArgs) {
	if s == summed {
		avx512Add(args)
	} else {
		avx2Add(args)
	}
}
