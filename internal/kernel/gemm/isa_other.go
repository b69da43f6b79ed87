//go:build !amd64

package gemm

// available lists the instruction sets that this processor has.
func available() []*isa { return []*isa{portable} }
