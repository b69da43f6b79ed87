package workers

import (
	"math"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// TestReceive: what is pushed of a variable is the worker's share of the sum of the products of all
// executions, scaled as the last of them says; and of what was undone nothing is left.
func TestReceive(t *testing.T) {
	for _, size := range [][2]int{{3, 2}, {2, 3}} {
		w := graph.New().Variable("w", graph.Of(graph.F32, size[0], size[1]), graph.Init{})
		o := nn.Objective{Factors: []nn.Factored{{Parameter: w}}}
		b := &between{}
		p := &distrib.Param{Name: w.Node.Name, Rows: size[0], Cols: size[1]}
		want := make([]float64, size[0]*size[1])
		for execution := range 3 {
			left := gomem.NewTensor(graph.Of(graph.F32, 4, size[0]))
			right := gomem.NewTensor(graph.Of(graph.F32, 4, size[1]))
			whole(left, execution, 1)
			whole(right, execution, 2)
			err := b.Receive(o, []gomem.Tensor{left, right, gomem.Scalar(float32(execution))})
			if err != nil {
				t.Fatal(err)
			}
			for r := range 4 {
				for i := range want {
					want[i] += 2 * 0.25 * float64(left.F32()[r*size[0]+i/size[1]]) *
						float64(right.F32()[r*size[1]+i%size[1]])
				}
			}
		}
		u := b.given[w.Node.Name].update(0.25, p)
		if got := distrib.Bytes(u); got != 4*12*5 || distrib.Check(u, size[0], size[1]) != nil {
			t.Errorf("%d bytes of factors, %v", got, distrib.Check(u, size[0], size[1]))
		}
		for i, x := range distrib.AsDense(u) {
			if d := math.Abs(float64(x) - want[i]); !(d <= 1e-4*(1+math.Abs(want[i]))) {
				t.Errorf("element %d is %v, want %v", i, x, want[i])
			}
		}
		if err := b.Receive(o, nil); err == nil {
			t.Error("no tensors for a variable's factors")
		}
		if err := b.Back(nil); err != nil || b.given != nil {
			t.Errorf("%v; factors of %v are left", err, b.given)
		}
	}
}

// TestGiven: factors are for schemes whose workers have all of what others push, as it is.
func TestGiven(t *testing.T) {
	for name, want := range map[string]bool{"svb": true, "orpheus": true, "lossy": true,
		"exponential": true, "halton": true, "ring": false, "hybrid": false, "bsp": false,
		"bosen": false, "pf": false, "easgd": false, "average": false} {
		s, err := ParseScheme(name, SchemeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if given := s.Given(); (given != nil) != want {
			t.Errorf("%s: %v", name, given)
		} else if want && (given.Factors(8, 8) || !given.Factors(8, 7)) {
			t.Errorf("%s takes factors of as many bytes", name)
		}
	}
	s, err := ParseScheme("svb", SchemeOptions{Filter: "fp16"})
	if err != nil || s.Given() != nil {
		t.Errorf("%v, %v with a filter", err, s.Given())
	}
}
