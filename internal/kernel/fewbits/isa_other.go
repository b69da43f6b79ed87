//go:build !amd64 || portable

package fewbits

import "github.com/gomem/gomem/internal/quant"

// available lists the instruction sets that this processor has.
func available() []isa { return []isa{portable} }

func (isa) unpackBlocks(quant.Format, *blockArgs) { panic("fewbits: no kernels") }
func (isa) multiply(quant.Format, *blockArgs)     { panic("fewbits: no kernels") }
