package opstest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// checkNothing checks kernel and gradient on operands without elements. A kernel may refuse them
// by an error: indices into nothing have no meaning.
func (s Sample) checkNothing(t *testing.T) {
	for _, in := range s.emptied() {
		if !s.accepts(t, in) {
			continue
		}
		s.In = in
		t.Run(fmt.Sprint(in), s.ofNothing)
	}
}

func (s Sample) ofNothing(t *testing.T) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("of %v it panics: %v", s.In, p)
		}
	}()
	if _, view := s.Op.(graph.Viewer); !view {
		out, err := s.try(t, s.operands(1), memory{poison: 0xff})
		if err != nil {
			return
		}
		s.checkKernel(t)
		if slices.ContainsFunc(out, noNumber) { // such as a mean of nothing: there is no slope
			return
		}
	}
	if s.Update == 0 {
		s.checkGradients(t)
	}
}

// noNumber reports whether a value has an element that is none.
func noNumber(v tensor.View) bool {
	return v.Type.DType == graph.F32 && slices.ContainsFunc(v.F32(), func(x float32) bool {
		return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0)
	})
}

// emptied are operands of which axes have size zero: those of one size of one operand, or of all
// that have that size, or those that come first, or any two.
func (s Sample) emptied() (list [][]graph.Type) {
	seen := map[string]bool{fmt.Sprint(s.In): true}
	try := func(zero func(operand, axis int) bool) {
		var in []graph.Type
		for i, u := range s.In {
			u.Shape = slices.Clone(u.Shape)
			for a := range u.Shape {
				if zero(i, a) {
					u.Shape[a].Size = 0
				}
			}
			in = append(in, u)
		}
		if text := fmt.Sprint(in); !seen[text] {
			seen[text] = true
			list = append(list, in)
		}
	}
	for i, u := range s.In {
		for a, d := range u.Shape {
			size := func(j, b int) bool { return s.In[j].Shape[b].Size == d.Size }
			try(func(j, b int) bool { return i == j && a == b })
			try(func(j, b int) bool { return a == b && size(j, b) })
			try(size)
			for j, u := range s.In {
				for b := range u.Shape {
					try(func(k, c int) bool { return k == i && c == a || k == j && c == b })
				}
			}
		}
	}
	return list
}
