//go:build !amd64 || portable

package fewbits

import "github.com/gomem/gomem/internal/quant"

// available lists the instruction sets that this processor has.
func available() []isa { return []isa{portable} }

// kernel says that there is no kernel of a format.
func (isa) kernel(quant.Format, *blockArgs) bool { return false }
