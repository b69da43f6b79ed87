package predict

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// doubling is a function of two inputs of three rows, x[3 2] and y[3]: 2x, and, if it has one, an
// output without rows.
func doubling(t *testing.T, whole bool) *Function {
	t.Helper()
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, 3, 2), m.Input("y", graph.F32, 3)
	m.Output(ops.Scale(x, 2), ops.Scale(y, 3))
	if whole {
		m.Output(ops.Sum(x))
	}
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	p, err := gomem.Plan(context.Background(), m.Graph, gomem.Options{}, FunctionTarget(m))
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenFunction(p, gomem.Options{}, m,
		func(*gomem.Session, []graph.Value) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// counted are 1, 2, … of a shape.
func counted(sizes ...int) gomem.Tensor {
	v := tensor.New(tensor.Of(graph.F32, sizes...))
	for i := range v.F32() {
		v.F32()[i] = float32(i + 1)
	}
	return v
}

// TestFunction: any number of rows is answered, batch by batch.
func TestFunction(t *testing.T) {
	f := doubling(t, false)
	for rows := range 8 {
		x, y := counted(rows, 2), counted(rows)
		out, err := f.Apply(context.Background(), []gomem.Tensor{x, y})
		if err != nil {
			t.Fatal(err)
		}
		for k, by := range []float32{2, 3} {
			in := []gomem.Tensor{x, y}[k]
			want := make([]float32, len(in.F32()))
			for i, v := range in.F32() {
				want[i] = by * v
			}
			if !out[k].Type.Equal(in.Type) || !slices.Equal(out[k].F32(), want) {
				t.Errorf("%d rows: output %d is %v", rows, k, out[k])
			}
		}
	}
}

// TestFunctionRefusals: inputs that do not fit, and outputs that are not of rows, are refused.
func TestFunctionRefusals(t *testing.T) {
	f, whole := doubling(t, false), doubling(t, true)
	if _, err := whole.Apply(context.Background(), []gomem.Tensor{counted(3, 2),
		counted(3)}); err != nil {
		t.Error(err)
	}
	for says, c := range map[string]struct {
		f  *Function
		in []gomem.Tensor
	}{
		"1 inputs":                     {f, []gomem.Tensor{counted(3, 2)}},
		`input "x" is f32[3 3]`:        {f, []gomem.Tensor{counted(3, 3), counted(3)}},
		`input "x" is f32[]`:           {f, []gomem.Tensor{counted(), counted(3)}},
		`input "y" is f32[4] in place`: {f, []gomem.Tensor{counted(5, 2), counted(4)}},
		"has no axis of the 3 rows":    {whole, []gomem.Tensor{counted(6, 2), counted(6)}},
		`input "y" is f64[3], not f32[`: {f, []gomem.Tensor{counted(3, 2),
			counted(3).To(graph.F64)}},
	} {
		if _, err := c.f.Apply(context.Background(), c.in); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
