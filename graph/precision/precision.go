package precision

import (
	"fmt"
	"slices"
	"strings"
)

// Precision is in what numbers a graph is computed.
type Precision string

// The precisions.
const (
	F32 Precision = "f32" // as the graph says
	// TF32 rounds what a GPU multiplies as matrices to 10 bits behind the point; all else
	// is F32.
	TF32 Precision = "tf32"
	// BF16 computes and keeps in bfloat16 all but sums and losses: see [Lower].
	BF16 Precision = "bf16"
)

// All are the precisions, the exact one first.
func All() []Precision { return []Precision{F32, TF32, BF16} }

// Parse reads a precision; nothing is F32.
func Parse(s string) (Precision, error) {
	if p := Precision(s); s == "" {
		return F32, nil
	} else if slices.Contains(All(), p) {
		return p, nil
	}
	var names []string
	for _, p := range All() {
		names = append(names, string(p))
	}
	err := fmt.Errorf("unknown precision %.60q: want one of %s", s, strings.Join(names, ", "))
	if s == "f16" || s == "fp16" {
		return "", fmt.Errorf("%w; 16-bit floats of so small a range would need their losses "+
			"scaled", err)
	}
	return "", err
}

// Plain reports whether all is computed as the graph says: the zero value is F32.
func (p Precision) Plain() bool { return p == "" || p == F32 }
