//go:build !amd64 || portable

package fewbits

import "github.com/gomem/gomem/internal/quant"

// available lists the instruction sets that this processor has.
func available() []isa { return []isa{portable} }

func (isa) unpackBlocks(quant.Format, *blockArgs) { panic("fewbits: no kernels") }
func (isa) multiply(quant.Format, *blockArgs)     { panic("fewbits: no kernels") }

// availableIntegers lists the instruction sets with kernels of integers.
func availableIntegers() []integers { return []integers{plain} }

func (integers) roundBlocks(*groupArgs)            { panic("fewbits: no kernels") }
func (integers) bytes(*groupArgs)                  { panic("fewbits: no kernels") }
func (integers) products(quant.Format, *groupArgs) { panic("fewbits: no kernels") }
func (integers) fours(quant.Format, *groupArgs)    { panic("fewbits: no kernels") }
func (integers) group(quant.Format, *groupArgs)    { panic("fewbits: no kernels") }
func (integers) transpose(*groupArgs)              { panic("fewbits: no kernels") }
func (integers) tile(*groupArgs)                   { panic("fewbits: no kernels") }
func (integers) add(*groupArgs)                    { panic("fewbits: no kernels") }
