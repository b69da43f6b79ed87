package kernel

import "github.com/gomem/gomem/internal/kernel/gemm"

// InstructionSet names what the bits of the CPU device's results depend on besides
// the graph: the instructions that matrix products use, "avx512", "avx2" or
// "portable". Everything else rounds alike on every machine, and so does portable
// on every architecture. Built with the tag portable the name is always that.
func InstructionSet() string { return gemm.InstructionSet() }
