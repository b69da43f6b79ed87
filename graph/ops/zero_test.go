package ops

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
)

// emptied are uses of a sample's operation in which axes have size zero: those of one
// size of one operand, or of all that have that size, or those that come first. What
// the operation refuses is not among them.
func (s Sample) emptied(t *testing.T) []Sample {
	var out []Sample
	seen := map[string]bool{}
	try := func(zero func(operand, axis int) bool) {
		e := s
		e.In = nil
		for i, u := range s.In {
			u.Shape = slices.Clone(u.Shape)
			for a := range u.Shape {
				if zero(i, a) {
					u.Shape[a].Size = 0
				}
			}
			e.In = append(e.In, u)
		}
		if text := fmt.Sprint(e.In); !seen[text] {
			seen[text] = true
			if s.accepts(t, e.In) {
				out = append(out, e)
			}
		}
	}
	seen[fmt.Sprint(s.In)] = true
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
	return out
}

// accepts reports whether an operation accepts operands, which it may not by panicking.
func (s Sample) accepts(t *testing.T, in []graph.Type) bool {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s%+v of %v panics: %v", s.Op.Name(), s.Op, in, p)
		}
	}()
	out, err := s.Op.Infer(in)
	if err != nil {
		return false
	}
	s.Op.Cost(in, out)
	if op, ok := s.Op.(graph.InPlacer); ok {
		op.InPlace(in, out)
	}
	op, view := s.Op.(graph.Viewer)
	if view {
		op.View(in, out)
	}
	return !view
}

// Emptied is emptied for other tests.
func (s Sample) Emptied(t *testing.T) []Sample { return s.emptied(t) }

// TestNothing: every operation works on operands without elements that it accepts, and
// what it makes of them does not depend on what was in memory.
func TestNothing(t *testing.T) {
	count := 0
	for _, whole := range Samples() {
		for _, s := range whole.emptied(t) {
			count++
			t.Run(s.name(), func(t *testing.T) {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("panics: %v", p)
					}
				}()
				var results [2][]string
				for i, poison := range []byte{0xff, 0} {
					out, err := s.run(t, s.operands(1), nil, memory{poison: poison})
					if err != nil { // indices into nothing
						continue
					}
					for _, v := range out {
						results[i] = append(results[i], string(v.Data))
					}
				}
				if !slices.Equal(results[0], results[1]) {
					t.Error("the results are not written")
				}
				c := s.Op.Cost(s.In, mustInfer(t, s))
				if c.FLOPs < 0 || c.Bytes < 0 || c.Scratch < 0 {
					t.Errorf("costs %+v", c)
				}
			})
		}
	}
	if count < 300 {
		t.Errorf("only %d cases", count)
	}
}

func mustInfer(t *testing.T, s Sample) []graph.Type {
	t.Helper()
	out, err := s.Op.Infer(s.In)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Runs reports whether the operation's kernel takes the sample's data.
func (s Sample) Runs(t *testing.T) bool {
	if op, ok := s.Op.(graph.Checker); ok && op.CheckData(s.operands(11)) != nil {
		return false
	}
	_, err := s.run(t, s.operands(11), nil, memory{})
	return err == nil
}
