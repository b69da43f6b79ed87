package fewbits

// isa is an instruction set that has kernels.
type isa uint8

const (
	portable isa = iota // none: package quant's functions
	avx2
	avx512
)

// best is the fastest that this processor has; it never changes.
var best = available()[0]
