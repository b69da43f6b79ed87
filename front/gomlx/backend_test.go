package gomlx_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	root "github.com/gomem/gomem"
	"github.com/gomem/gomem/front/gomlx"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/notimplemented"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// TestConfigurations: a backend is made by its name, and what is no setting is refused by what
// there is.
func TestConfigurations(t *testing.T) {
	b, err := backends.NewWithConfig("gomem:device=64MiB,host=1GiB,policy=auto,effort=10")
	if err != nil || b.Description() != "gomem: planned memory, within 67108864 bytes" {
		t.Errorf("%v, %v", b, err)
	}
	for config, want := range map[string]string{
		"memory=1GiB":           `no setting is called "memory"; there are device=64MiB`,
		"device=much":           `"much" is no size such as 64MiB`,
		"device=0":              `"0" is no size`,
		"device=1MiB,device=2g": "device is set twice",
		"threads=none":          `"none" is no whole number`,
		"policy=best":           "best",
		"device=1MiB,":          `no setting is called ""`,
	} {
		if _, err := gomlx.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
	}
}

// TestRefusals: an operation is refused by its name with GoMLX's error if and only if it is no
// capability, and so are element types.
func TestRefusals(t *testing.T) {
	b := open(t, "")
	builder := b.Builder("refused")
	x, err := builder.Parameter("x", shapes.Make(dtypes.Float32, 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = builder.Complex(x, x)
	var refused *gomlx.ErrRefused
	if !errors.Is(err, notimplemented.NotImplementedError) || !errors.As(err, &refused) ||
		refused.Op != backends.OpTypeComplex || b.Capabilities().Operations[refused.Op] {
		t.Errorf("%v", err)
	}
	_, err = builder.Parameter("y", shapes.Make(dtypes.Complex64, 2), nil)
	var element *gomlx.ErrElement
	if !errors.As(err, &element) || element.DType != dtypes.Complex64 {
		t.Errorf("%v", err)
	}
	if err := builder.DistributedSPMD(2); !errors.Is(err, notimplemented.NotImplementedError) {
		t.Errorf("%v", err)
	}
}

// TestOutOfMemory: a budget that cannot be met is gomem's own error.
func TestOutOfMemory(t *testing.T) {
	b := open(t, "device=1KiB")
	_, err := NewExec(backends.Backend(b), func(x *Node) *Node { return Dot(x, x) })
	if err == nil {
		exec := MustNewExec(backends.Backend(b), func(x *Node) *Node { return Dot(x, x) })
		_, err = exec.Exec(tensors.FromShape(shapes.Make(dtypes.Float32, 64, 64)))
	}
	var short *root.ErrOutOfMemory
	if !errors.As(err, &short) {
		t.Errorf("%v", err)
	}
}

// TestBudgetOfAll: the budget holds for all computations together, however many there are, and
// each has its results again after others were executed.
func TestBudgetOfAll(t *testing.T) {
	b := open(t, "device=40KiB")
	x := drawn(1, dtypes.Float32, 3, 3, 32, 32)
	want := [][]float32{}
	var execs []*Exec
	for i := range 4 {
		execs = append(execs, MustNewExec(backends.Backend(b), func(x *Node) *Node {
			return ReduceSum(AddScalar(MatMul(x, x), float64(i)), 0)
		}))
	}
	for round := range 3 {
		for i, e := range execs {
			have := tensors.MustCopyFlatData[float32](e.MustExec(x)[0])
			if round == 0 {
				want = append(want, have)
			} else if !slices.Equal(have, want[i]) {
				t.Errorf("computation %d has %v, had %v", i, have, want[i])
			}
		}
	}
	if p := b.Peak(); p.Device == 0 || p.Device > 40<<10 {
		t.Errorf("peak %d", p.Device)
	}
}

// TestDonation: a buffer that is donated is gone, and others stay.
func TestDonation(t *testing.T) {
	b := open(t, "")
	builder := b.Builder("sum")
	shape := shapes.Make(dtypes.Int64, 3)
	x, _ := builder.Parameter("x", shape, nil)
	y, _ := builder.Parameter("y", shape, nil)
	sum, err := builder.Add(x, y)
	if err != nil {
		t.Fatal(err)
	}
	e, err := builder.Compile([]backends.Op{sum, x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	given, err1 := b.BufferFromFlatData(0, []int64{1, 2, 3}, shape)
	kept, data, err2 := b.NewSharedBuffer(0, shape)
	copy(data.([]int64), []int64{10, 20, 30})
	out, err3 := e.Execute([]backends.Buffer{given, kept}, []bool{true, false}, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]int64{{11, 22, 33}, {1, 2, 3}} {
		if have, err := b.BufferData(out[i]); err != nil || !slices.Equal(have.([]int64), want) {
			t.Errorf("result %d is %v, %v; want %v", i, have, err, want)
		}
	}
	if _, err := b.BufferShape(given); err == nil {
		t.Error("the donated buffer is there")
	}
	if _, err := b.BufferShape(kept); err != nil {
		t.Error(err)
	}
	if _, err := e.Execute([]backends.Buffer{given, kept}, nil, 0); err == nil {
		t.Error("a donated buffer was an input")
	}
}

// TestBudgetDoesNotAffectResults: steps of training within two thirds of the memory have the bits
// of those without a budget.
func TestBudgetDoesNotAffectResults(t *testing.T) {
	step := func(w, v, x *Node) []*Node {
		y := MatMul(Tanh(MatMul(Tanh(MatMul(x, w)), w)), v)
		grads := Gradient(ReduceAllMean(Square(y)), w, v)
		return []*Node{Sub(w, MulScalar(grads[0], 0.1)), Sub(v, MulScalar(grads[1], 0.1))}
	}
	train := func(b *gomlx.Backend) (w, v []float32) {
		exec := MustNewExec(backends.Backend(b), step)
		state := []any{drawn(1, dtypes.Float32, 1, 1, 16, 16),
			drawn(2, dtypes.Float32, 1, 1, 16, 2)}
		x := drawn(3, dtypes.Float32, 2, 2, 256, 16)
		for range 3 {
			out := exec.MustExec(append(slices.Clone(state), x)...)
			state = []any{out[0], out[1]}
		}
		return tensors.MustCopyFlatData[float32](state[0].(*tensors.Tensor)),
			tensors.MustCopyFlatData[float32](state[1].(*tensors.Tensor))
	}
	free := open(t, "policy=vanilla")
	w, v := train(free)
	budget := free.Peak().Device * 2 / 3
	tight := open(t, fmt.Sprintf("device=%d,policy=auto,effort=10", budget))
	if w2, v2 := train(tight); !slices.Equal(w, w2) || !slices.Equal(v, v2) {
		t.Errorf("within %d bytes %v, without a budget %v", budget, v2, v)
	}
	if p := tight.Peak().Device; p > budget {
		t.Errorf("peak %d, budget %d", p, budget)
	}
}
