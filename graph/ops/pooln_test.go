package ops_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// moves are how windows or filters move along spatial axes.
type moves struct{ size, stride, dilation, before, after []int }

// drawMoves draws those of a window that has an element inside wherever it is.
func drawMoves(t *rapid.T, axes, gap int) (m moves) {
	draw := func(lo, hi int, what string) int { return rapid.IntRange(lo, hi).Draw(t, what) }
	for range axes {
		size, dilation := draw(1, 3, "size"), draw(1, gap, "dilation")
		m.size, m.dilation = append(m.size, size), append(m.dilation, dilation)
		m.stride = append(m.stride, draw(1, 3, "stride"))
		m.before = append(m.before, draw(0, size-1, "before"))
		m.after = append(m.after, draw(0, size-1, "after"))
	}
	return m
}

// drawSpatial are sizes of so many axes that windows fit.
func drawSpatial(t *rapid.T, axes int) (sizes []int) {
	for range axes {
		sizes = append(sizes, rapid.IntRange(5, 8).Draw(t, "spatial"))
	}
	return sizes
}

// inside visits the elements of a window or filter at a place: f gets the indices of those of
// x along the spatial axes, and of the window's; beyond says whether those outside are, too.
func (m moves) inside(place, spatial []int, beyond bool, f func(of, tap []int)) {
	of, tap := make([]int, len(spatial)), make([]int, len(spatial))
	var visit func(axis int)
	visit = func(axis int) {
		if axis == len(spatial) {
			f(of, tap)
			return
		}
		for k := range m.size[axis] {
			of[axis] = place[axis]*m.stride[axis] - m.before[axis] + k*m.dilation[axis]
			tap[axis] = k
			in := of[axis] >= 0 && of[axis] < spatial[axis]
			padded := of[axis] >= -m.before[axis] && of[axis] < spatial[axis]+m.after[axis]
			if in || beyond && padded {
				visit(axis + 1)
			}
		}
	}
	visit(0)
}

func (m moves) pool() ops.Pool {
	return ops.Pool{Size: m.size, Stride: m.stride, Dilation: m.dilation, Before: m.before,
		After: m.after}
}

// windowsOf is how many windows there are along an axis of so many elements: those that begin
// inside or before it, and end inside or in the padding, unless the last may reach out.
func (m moves) windowsOf(axis, size int, ceil bool) (n int) {
	for {
		first := n*m.stride[axis] - m.before[axis]
		last := first + (m.size[axis]-1)*m.dilation[axis]
		full := last < size+m.after[axis]
		partial := ceil && first < size && n > 0 &&
			last-size-m.after[axis]+1 < m.stride[axis]
		if !full && !partial {
			return n
		}
		n++
	}
}

// TestPoolN compares with loops over windows, of one to three axes.
func TestPoolN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.IntRange(1, 3).Draw(t, "axes")
		m, spatial := drawMoves(t, axes, 2), drawSpatial(t, axes)
		p := m.pool()
		p.Ceil, p.CountPad = rapid.Bool().Draw(t, "ceil"), rapid.Bool().Draw(t, "counted")
		x := random(append([]int{2, 3}, spatial...)...)
		check := func(what string, y tensor.View, want func(elements []float64, n int) float64) {
			for i := range axes {
				if n := m.windowsOf(i, spatial[i], p.Ceil); y.Type.Size(2+i) != n {
					t.Fatalf("%s: %d windows along axis %d, want %d", what, y.Type.Size(2+i), i, n)
				}
			}
			expect(t, what, y, func(i int) float64 {
				index, n := indexOf(y.Type, i), 0
				var elements []float64
				m.inside(index[2:], spatial, p.CountPad, func(_, _ []int) { n++ })
				m.inside(index[2:], spatial, false, func(of, _ []int) {
					elements = append(elements, float64(x.F32()[at(x.Type,
						append(index[:2:2], of...))]))
				})
				return want(elements, n)
			})
		}
		check("max", compute(t, func(in []graph.Value) graph.Value {
			return ops.MaxPool(in[0], p)
		}, x), func(elements []float64, _ int) float64 {
			most := math.Inf(-1)
			for _, v := range elements {
				most = math.Max(most, v)
			}
			return most
		})
		check("mean", compute(t, func(in []graph.Value) graph.Value {
			return ops.AvgPool(in[0], p)
		}, x), func(elements []float64, n int) float64 {
			sum := 0.0
			for _, v := range elements {
				sum += v
			}
			return sum / float64(n)
		})
		norm := rapid.IntRange(1, 3).Draw(t, "norm")
		check("norm", compute(t, func(in []graph.Value) graph.Value {
			return ops.LpPool(in[0], norm, p)
		}, x), func(elements []float64, _ int) float64 {
			sum := 0.0
			for _, v := range elements {
				sum += math.Pow(math.Abs(v), float64(norm))
			}
			return math.Pow(sum, 1/float64(norm))
		})
	})
}

// TestConvN compares with loops over filters, of one to three axes, and the transpose by the
// inner product that defines it.
func TestConvN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.IntRange(1, 3).Draw(t, "axes")
		m, spatial := drawMoves(t, axes, 2), drawSpatial(t, axes)
		groups := rapid.IntRange(1, 2).Draw(t, "groups")
		c := ops.ConvOptions{Stride: m.stride, Dilation: m.dilation, Before: m.before,
			After: m.after, Groups: groups}
		x := random(append([]int{2, 2 * groups}, spatial...)...)
		w := random(append([]int{3 * groups, 2}, m.size...)...)
		y := compute(t, func(in []graph.Value) graph.Value {
			return ops.ConvN(in[0], in[1], c)
		}, x, w)
		want, magnitude := make([]float64, y.Type.Elems()), make([]float64, y.Type.Elems())
		for i := range want {
			index := indexOf(y.Type, i)
			m.inside(index[2:], spatial, false, func(of, tap []int) {
				for ch := range 2 {
					a := x.F32()[at(x.Type, append([]int{index[0], index[1]/3*2 + ch}, of...))]
					b := w.F32()[at(w.Type, append([]int{index[1], ch}, tap...))]
					want[i] += float64(a) * float64(b)
					magnitude[i] += math.Abs(float64(a) * float64(b))
				}
			})
		}
		expectSum(t, "convolution", y, want, magnitude)

		more := make([]int, axes) // elements behind the last window that the stride leaves out
		for i := range more {
			more[i] = (spatial[i] + m.before[i] + m.after[i] -
				(m.size[i]-1)*m.dilation[i] - 1) % m.stride[i]
		}
		d := random(y.Type.Sizes()...)
		back := compute(t, func(in []graph.Value) graph.Value {
			return ops.ConvTransposeN(in[0], in[1], c, more)
		}, d, w)
		grad := compute(t, func(in []graph.Value) graph.Value {
			return autodiff.Grad(ops.Sum(ops.Mul(ops.ConvN(in[0], in[1], c), in[2])), in[0])[0]
		}, x, w, d)
		if !back.Type.SameShape(x.Type) {
			t.Fatalf("the transpose is %s, want %s", back.Type, x.Type)
		}
		expect(t, "transpose", back, func(i int) float64 { return float64(grad.F32()[i]) })
	})
}

// TestConvTransposeMore: elements that no window reaches are zeros.
func TestConvTransposeMore(t *testing.T) {
	c := ops.ConvOptions{Stride: []int{1}, After: []int{1}}
	y := compute(t, func(in []graph.Value) graph.Value {
		return ops.ConvTransposeN(in[0], in[1], c, []int{3})
	}, counted(1, 1, 1, 2), counted(1, 1, 1, 2))
	expect(t, "transpose", y, func(i int) float64 { return []float64{1, 4, 4, 0, 0}[i] })
}

// TestSpatialRejects: what does not fit is an error of the graph.
func TestSpatialRejects(t *testing.T) {
	for want, build := range map[string]func(x, w graph.Value){
		"windows of [2 2]": func(x, _ graph.Value) {
			ops.MaxPool(ops.Squeeze(ops.Slice(x, 2, 0, 1), 0, 2), ops.Pool{Size: []int{2, 2}})
		},
		"windows by [2]": func(x, _ graph.Value) {
			ops.AvgPool(x, ops.Pool{Size: []int{2, 2}, Stride: []int{2}})
		},
		"padding 2 and 0": func(x, _ graph.Value) {
			ops.AvgPool(x, ops.Pool{Size: []int{2, 2}, Before: []int{2, 0}})
		},
		"do not fit along axis 3": func(x, _ graph.Value) {
			ops.MaxPool(x, ops.Pool{Size: []int{2, 7}})
		},
		"the 0-norm": func(x, _ graph.Value) { ops.LpPool(x, 0, ops.Pool{Size: []int{2, 2}}) },
		"a convolution by [1]": func(x, w graph.Value) {
			ops.ConvN(x, w, ops.ConvOptions{Stride: []int{1}})
		},
		"a convolution of f32[1 2 5 6]": func(x, _ graph.Value) {
			ops.ConvN(x, ops.Squeeze(x, 0), ops.ConvOptions{})
		},
		"more elements by [1]": func(x, w graph.Value) {
			ops.ConvTransposeN(x, w, ops.ConvOptions{}, []int{1})
		},
		"spans 3 elements along axis 2": func(x, w graph.Value) {
			ops.ConvN(ops.ExpandDims(x, 2), ops.Tile(ops.ExpandDims(w, 2), 1, 1, 3, 1, 1),
				ops.ConvOptions{})
		},
	} {
		g := graph.New()
		build(g.Input("x", tensor.Of(graph.F32, 1, 2, 5, 6)),
			g.Input("w", tensor.Of(graph.F32, 2, 2, 1, 1)))
		if g.Err() == nil || !strings.Contains(g.Err().Error(), want) {
			t.Errorf("want %q, have %v", want, g.Err())
		}
	}
}
