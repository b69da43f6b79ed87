//go:build !amd64 || portable

package gemm

// available lists the instruction sets that this processor has.
func available() []*isa { return []*isa{portable} }
