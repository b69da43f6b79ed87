package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/reference"
)

//go:embed operations.py
var operationsSource string

// operation is an operation as both have it.
type operation struct {
	expression string // PyTorch's
	build      func(in []graph.Value) graph.Value
	in         []tensor.View
	firstOnly  bool // second gradients differ, or there are none
}

// TestOperations: values, gradients and second gradients of operations are PyTorch's.
func TestOperations(t *testing.T) {
	longtest.Skip(t)
	p := startOperations(t)
	for _, o := range operations() {
		t.Run(o.expression, func(t *testing.T) {
			want := p.ask(t, o)
			got, err := o.compute()
			if err != nil {
				t.Fatal(err)
			}
			compareBits(t, "value", got.value, want.Value)
			for i := range got.first {
				compareBits(t, fmt.Sprint("gradient ", i), got.first[i], want.First[i])
			}
			for i := range got.second {
				compareBits(t, fmt.Sprint("second gradient ", i), got.second[i], want.Second[i])
			}
		})
	}
}

// torchOperations is the process that is asked.
type torchOperations struct{ *torch.Process }

func startOperations(t *testing.T) *torchOperations {
	t.Helper()
	p, err := torch.Start(context.Background(), "/usr/bin/python3", operationsSource)
	if missing, ok := errors.AsType[*torch.ErrMissing](err); ok {
		t.Skip("nothing to compare with: ", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &torchOperations{p}
}

// elements are of a value, floats as their bits, and how PyTorch is given them.
type elements struct {
	Type  string  `json:"type"`
	Shape []int   `json:"shape"`
	Bits  []int32 `json:"bits"`
}

func elementsOf(v tensor.View) elements {
	e := elements{v.Type.DType.String(), v.Type.Sizes(), make([]int32, v.Type.Elems())}
	for i := range e.Bits {
		switch v.Type.DType {
		case graph.F32:
			e.Bits[i] = int32(math.Float32bits(v.F32()[i]))
		case graph.I32:
			e.Bits[i] = v.I32()[i]
		default:
			e.Bits[i] = int32(v.Data[i])
		}
	}
	return e
}

// torchAnswer is what PyTorch computes.
type torchAnswer struct {
	Value         []int32
	Shape         []int
	First, Second [][]int32 // nil where there is no gradient
}

func (p *torchOperations) ask(t *testing.T, o operation) torchAnswer {
	t.Helper()
	question := struct {
		Expression string     `json:"expression"`
		In         []elements `json:"in"`
		Wrt        []int      `json:"wrt"`
		Second     bool       `json:"second"`
	}{o.expression, nil, o.wrt(), !o.firstOnly}
	for _, v := range o.in {
		question.In = append(question.In, elementsOf(v))
	}
	line, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	var a torchAnswer
	if err := p.Ask(string(line), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// wrt are the operands that the gradients are by.
func (o operation) wrt() []int {
	list := []int{}
	for i, v := range o.in {
		if v.Type.DType == graph.F32 {
			list = append(list, i)
		}
	}
	return list
}

// computed is what an operation gives; a gradient without a type is none.
type computed struct {
	value         tensor.View
	first, second []tensor.View
}

func (o operation) compute() (c computed, err error) {
	g := graph.New()
	var in, wrt []graph.Value
	for i, v := range o.in {
		in = append(in, g.Constant(fmt.Sprint("x", i), v))
	}
	for _, i := range o.wrt() {
		wrt = append(wrt, in[i])
	}
	y := o.build(in)
	first := gradientsOf(g, []graph.Value{y}, wrt)
	var second []graph.Value
	if !o.firstOnly {
		second = gradientsOf(g, first, wrt)
	}
	if g.Err() != nil {
		return c, g.Err()
	}
	var roots []graph.NodeID
	for _, v := range append(append([]graph.Value{y}, first...), second...) {
		if v.Valid() {
			roots = append(roots, v.Node.ID)
		}
	}
	m, err := reference.New(g, g.Ancestors(roots), nil)
	if err != nil {
		return c, err
	}
	if err := m.Step(); err != nil {
		return c, err
	}
	view := func(list []graph.Value) (views []tensor.View) {
		for _, v := range list {
			x := tensor.View{}
			if v.Valid() {
				x = m.Value(v)
			}
			views = append(views, x)
		}
		return views
	}
	return computed{m.Value(y), view(first), view(second)}, nil
}

// gradientsOf are those of a weighted sum of values; operations.py has the weights.
func gradientsOf(g *graph.Graph, ys, wrt []graph.Value) []graph.Value {
	var total graph.Value
	for _, y := range ys {
		if !y.Valid() || y.Type().DType != graph.F32 {
			continue
		}
		w := tensor.New(y.Type())
		for i := range w.F32() {
			w.F32()[i] = float32(math.Cos(float64(i)))
		}
		part := ops.Sum(ops.Mul(y, g.Constant("weights", w)))
		if total.Valid() {
			part = ops.Add(total, part)
		}
		total = part
	}
	return autodiff.Grad(total, wrt...)
}

// compareBits compares elements with PyTorch's; no gradient is one of zeros.
func compareBits(t *testing.T, what string, got tensor.View, want []int32) {
	t.Helper()
	n := max(len(want), len(got.Data)/max(1, int(got.Type.DType.Size())))
	if len(want) != n && want != nil || got.Data != nil && got.Type.Elems() != n {
		t.Fatalf("%s: %s has not %d elements", what, got.Type, n)
	}
	floats := got.Data == nil || got.Type.DType == graph.F32
	for i := range n {
		var g, w float64
		if want != nil {
			if w = float64(want[i]); floats {
				w = float64(math.Float32frombits(uint32(want[i])))
			}
		}
		if got.Data != nil {
			if g = float64(elementsOf(got).Bits[i]); floats {
				g = float64(got.F32()[i])
			}
		}
		if g != w && (g == g || w == w) && !(math.Abs(g-w) <= 2e-5*(1+math.Abs(w))) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, g, w)
		}
	}
}
