package ops

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// made reports whether an operation is made by gradients and rewrites alone.
func made(op graph.Op) bool {
	for _, end := range []string{"-grad", "-part", "-add", "-rows"} {
		if strings.HasSuffix(op.Name(), end) {
			return true
		}
	}
	return false
}

// TestOtherElementTypes: an operand whose element type alone is wrong is refused in one
// line that says how to convert it.
func TestOtherElementTypes(t *testing.T) {
	for _, s := range Samples() {
		if made(s.Op) {
			continue
		}
		for i, own := range s.In {
			for _, d := range tensor.DTypes() {
				in := slices.Clone(s.In)
				in[i] = graph.Type{DType: d, Shape: own.Shape}
				_, err := s.Op.Infer(in)
				if d == own.DType || err == nil {
					continue
				}
				msg := err.Error()
				if !strings.Contains(msg, "Cast") || strings.Contains(msg, "\n") {
					t.Errorf("%s%v: operand %d: %s", s.Op.Name(), in, i, msg)
				}
			}
		}
	}
}
