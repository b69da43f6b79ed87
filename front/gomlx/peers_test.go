package gomlx_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gomem/gomem/front/gomlx"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// open makes a backend, which ends with the test.
func open(t *testing.T, config string) *gomlx.Backend {
	b, err := gomlx.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// drawn is whole numbers from -lo to hi as elements of a type.
func drawn(seed uint64, d dtypes.DType, lo, hi int, sizes ...int) *tensors.Tensor {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := tensors.FromShape(shapes.Make(d, sizes...))
	out.MustMutableFlatData(func(flat any) {
		x := reflect.ValueOf(flat)
		for i := range x.Len() {
			x.Index(i).Set(reflect.ValueOf(rng.IntN(hi+lo+1) - lo).Convert(d.GoType()))
		}
	})
	return out
}

// peer is GoMLX's own backend, in Go, which operations are compared with.
var peer = func() backends.Backend {
	b, err := simplego.New("")
	if err != nil {
		panic(err)
	}
	return b
}()

// copyOf is a tensor of no backend.
func copyOf(x *tensors.Tensor) *tensors.Tensor {
	out, err := x.LocalClone()
	if err != nil {
		panic(err)
	}
	return out
}

// same compares what a computation of two values gives on both backends.
func same(t *testing.T, name string, f func(x, y *Node) *Node, x, y *tensors.Tensor) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		want, err := MustNewExec(peer, f).Exec(copyOf(x), copyOf(y))
		if err != nil {
			t.Fatal(err)
		}
		have, err := MustNewExec(backends.Backend(open(t, "")), f).Exec(copyOf(x), copyOf(y))
		if err != nil {
			t.Fatal(err)
		}
		if !have[0].Shape().Equal(want[0].Shape()) || !have[0].InDelta(want[0], 1e-5) {
			t.Errorf("%s, want %s", have[0].GoStr(), want[0].GoStr())
		}
	})
}

// numbers are the element types that the peer has arithmetic of.
var numbers = []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int8, dtypes.Int16,
	dtypes.Int32, dtypes.Int64, dtypes.Uint8, dtypes.Uint16, dtypes.Uint32, dtypes.Uint64}

// TestNumbersLikeGoMLX: arithmetic, comparisons, reductions and products of all types of numbers
// are GoMLX's.
func TestNumbersLikeGoMLX(t *testing.T) {
	for i, d := range numbers {
		lo := 5
		if d.IsUnsigned() {
			lo = 0
		}
		x, y := drawn(uint64(i), d, lo, 7, 3, 4), drawn(uint64(i+100), d, -1, 3, 3, 4)
		for name, f := range map[string]func(x, y *Node) *Node{
			"add": Add, "sub": func(x, y *Node) *Node { return Sub(Add(x, y), y) }, "mul": Mul,
			"div": Div, "mod": Mod, "max": Max, "min": Min, "less": LessThan, "equal": Equal,
			"sum":     func(x, y *Node) *Node { return ReduceSum(Mul(x, y), 0) },
			"product": func(x, y *Node) *Node { return ReduceMultiply(y, 1) },
			"largest": func(x, _ *Node) *Node { return ReduceMax(x, 0) },
			"argmin":  func(x, _ *Node) *Node { return ArgMin(x, 1) },
			"dot":     func(x, y *Node) *Node { return EinsumAxes(x, y, [][2]int{{1, 1}}, nil) },
			"outer": func(x, y *Node) *Node {
				return ReduceSum(Mul(InsertAxes(x, -1), InsertAxes(y, 1)), 0)
			},
			"window": func(x, _ *Node) *Node { return windows(x) },
		} {
			if d == dtypes.Int8 && (name == "largest" || name == "window") {
				continue // the peer takes an int16 for the lowest
			}
			same(t, fmt.Sprint(d, "/", name), f, x, y)
		}
	}
}

// windows are the largest and the sum of windows, side by side.
func windows(x *Node) *Node {
	x = Reshape(x, 1, 3, 4, 1)
	return Concatenate([]*Node{MaxPool(x).Window(2).Strides(1).Done(),
		SumPool(x).Window(2).Strides(1).Done()}, -1)
}

// TestSumsOfProducts: sums of products of what is repeated are those of products of matrices,
// whichever axes each has.
func TestSumsOfProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 60 {
		full := []int{2, 3, 4, 2}
		a, b := make([]int, 4), make([]int, 4)
		var axes []int
		for k, n := range full {
			a[k], b[k] = n, n
			switch rng.IntN(4) {
			case 0:
				a[k] = 1
			case 1:
				b[k] = 1
			}
			if rng.IntN(2) == 0 {
				axes = append(axes, k)
			}
		}
		if len(axes) == 0 {
			axes = []int{i % 4}
		}
		x, y := drawn(uint64(i), dtypes.Float32, 9, 9, a...), drawn(uint64(i+1), dtypes.Float32,
			9, 9, b...)
		same(t, fmt.Sprint(a, b, axes), func(x, y *Node) *Node {
			return ReduceSum(Mul(x, y), axes...)
		}, x, y)
	}
}

// TestIndicesLikeGoMLX: gathers and scatters are GoMLX's.
func TestIndicesLikeGoMLX(t *testing.T) {
	x, at := drawn(1, dtypes.Float32, 9, 9, 5, 3, 2), drawn(2, dtypes.Int32, 0, 2, 6, 2)
	same(t, "gather", func(x, at *Node) *Node { return Gather(x, at) }, x, at)
	same(t, "scatter", func(x, at *Node) *Node {
		return ScatterSum(x, at, Gather(x, at), false, false)
	}, x, at)
	same(t, "largest", func(x, at *Node) *Node {
		return ScatterMax(x, at, Neg(Gather(x, at)), false, false)
	}, x, at)
	same(t, "convolution", func(x, k *Node) *Node {
		return Convolve(x, k).Strides(2).PadSame().Done()
	}, drawn(3, dtypes.Float32, 3, 3, 2, 7, 6, 3), drawn(4, dtypes.Float32, 3, 3, 3, 3, 3, 4))
	same(t, "convolution of f64 over three axes", func(x, k *Node) *Node {
		return Convolve(x, k).Strides(1).NoPadding().Done()
	}, drawn(3, dtypes.Float64, 3, 3, 2, 4, 5, 3, 2), drawn(4, dtypes.Float64, 3, 3, 2, 2, 2, 2, 3))
}

// TestRandomLikeGoMLX: from one state both draw the same.
func TestRandomLikeGoMLX(t *testing.T) {
	state := tensors.FromFlatDataAndDimensions([]uint64{3, 5, 7}, 3)
	same(t, "normal", func(state, _ *Node) *Node {
		state, x := RandomNormal(state, shapes.Make(dtypes.Float32, 5, 3))
		_, y := RandomUniform(state, shapes.Make(dtypes.Float32, 5, 3))
		return Add(x, y)
	}, state, state)
}
