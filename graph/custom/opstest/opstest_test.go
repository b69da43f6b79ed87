package opstest

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// broken is x itself, but for a fault.
type broken struct{ Fault string }

func (broken) Name() string { return "broken" }

func (o broken) Infer(in []graph.Type) ([]graph.Type, error) {
	if o.Fault != "panics" && (len(in) != 1 || in[0].DType != graph.F32 || in[0].Rank() == 0) {
		return nil, errors.New("want one operand")
	}
	return []graph.Type{in[0]}, nil
}

func (o broken) Cost(in, _ []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2 * in[0].Bytes(), Scratch: 4}
}

func (o broken) InPlace(_, _ []graph.Type) []int {
	if o.Fault == "in place" {
		return []int{0}
	}
	return nil
}

func (o broken) VJP(_ *graph.Node, dout []graph.Value) []graph.Value {
	switch o.Fault {
	case "gradient":
		return []graph.Value{ops.Scale(dout[0], 1.1)}
	case "type":
		return []graph.Value{ops.Sum(dout[0])}
	}
	return dout
}

func brokenCPU(o broken, c *custom.Call) error {
	x, y := c.In[0].F32(), c.Out[0].F32()
	c.For(len(y), 1<<10, func(lo, hi int) {
		copy(y[lo:hi], x[lo:hi])
		if o.Fault == "threads" {
			y[lo]++
		}
	})
	last := len(y) - 1
	switch o.Fault {
	case "unwritten":
		y[last] = tensor.FromBF16(uint16(c.Scratch[0])) // what was there
	case "operand":
		x[0] = 7
	case "in place":
		for i := range y {
			y[i] = x[last-i]
		}
	case "random":
		y[0] = rand.Float32()
	case "error":
		return errors.New("it does not work")
	case "value":
		y[last] *= 1.001
	}
	return nil
}

// lastOf is the last element of x, f32[n], and 0 where there is none, but for a fault.
type lastOf struct{ Fault string }

func (lastOf) Name() string { return "last-of" }

func (lastOf) Infer(in []graph.Type) ([]graph.Type, error) {
	if len(in) != 1 || in[0].DType != graph.F32 || in[0].Rank() != 1 {
		return nil, errors.New("want one operand of one axis")
	}
	return []graph.Type{graph.Of(graph.F32)}, nil
}

func (lastOf) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{Bytes: 8} }

func (o lastOf) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0]
	size := x.Type().Size(0)
	if size == 0 && o.Fault != "gradient of nothing" {
		return []graph.Value{ops.Zeros(x.Graph(), x.Type())}
	}
	return []graph.Value{ops.Pad(ops.ReshapeSizes(dout[0], 1), 0, size-1, 0)}
}

func lastOfCPU(o lastOf, c *custom.Call) error {
	x, y := c.In[0].F32(), c.Out[0].F32()
	switch {
	case len(x) > 0 || o.Fault == "last of nothing":
		y[0] = x[len(x)-1]
	case o.Fault == "value of nothing":
		y[0] = 1
	case o.Fault != "unwritten of nothing":
		y[0] = 0
	}
	return nil
}

func init() {
	custom.Register(brokenCPU)
	custom.Register(lastOfCPU)
}

// faults are what is wrong with the operation, and what the check says of it.
var faults = map[string]string{
	"panics":    "it panics",
	"unwritten": "depend on what was in memory",
	"operand":   "operand 0 was written",
	"threads":   "threads give other bits",
	"in place":  "over operand 0 the result differs",
	"random":    "a second run gives other bits",
	"error":     "the kernel: it does not work",
	"value":     "element 4 of result 0 is",
	"gradient":  "gradient 1 along a direction",
	"type":      "gradient of operand 0 of broken is f32[], the operand is f32[5]",

	"last of nothing":      "of [f32[0]] it panics: runtime error: index out of range [-1]",
	"value of nothing":     "element 0 of result 0 is 1, want 0",
	"unwritten of nothing": "depend on what was in memory",
	"gradient of nothing":  "padded",
}

// TestBroken fails, and is run by TestFaultsAreFound.
func TestBroken(t *testing.T) {
	if os.Getenv("GOMEM_BROKEN") == "" {
		t.Skip("it is run by TestFaultsAreFound")
	}
	for fault := range faults {
		t.Run(strings.ReplaceAll(fault, " ", "-"), func(t *testing.T) {
			s := Sample{Op: broken{fault}, In: []graph.Type{graph.Of(graph.F32, 5)}}
			if fault == "value" {
				s.Want = func(in, out []tensor.View) { copy(out[0].Data, in[0].Data) }
			}
			if strings.HasSuffix(fault, "of nothing") {
				s.Op, s.Want = lastOf{fault}, wantLast
			}
			Check(t, s)
		})
	}
}

// TestFaultsAreFound: every check fails where there is something to be found.
func TestFaultsAreFound(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestBroken$", "-test.v")
	cmd.Env = append(os.Environ(), "GOMEM_BROKEN=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("all is found to be right")
	}
	said := map[string]string{}
	for part := range strings.SplitSeq(string(out), "=== RUN   TestBroken/") {
		name, text, _ := strings.Cut(part, "/")
		said[strings.TrimSpace(strings.SplitN(name, "\n", 2)[0])] += text
	}
	for fault, want := range faults {
		if text := said[strings.ReplaceAll(fault, " ", "-")]; !strings.Contains(text, want) {
			t.Errorf("%s: want %q, have %q", fault, want, text)
		}
	}
}

// TestNothingIsFound where nothing is to be found.
func TestNothingIsFound(t *testing.T) {
	in := []graph.Type{graph.Of(graph.F32, 5)}
	one := func(rng *rand.Rand, v tensor.View) { v.F32()[rng.IntN(len(v.F32()))] = 1 }
	Check(t, Sample{Op: broken{}, In: in, Second: true},
		Sample{Op: broken{}, In: in, Fill: map[int]func(*rand.Rand, tensor.View){0: one}},
		Sample{Op: lastOf{}, In: in, Second: true, Want: wantLast})
}

func wantLast(in, out []tensor.View) {
	if x := in[0].F32(); len(x) > 0 {
		out[0].F32()[0] = x[len(x)-1]
	}
}
