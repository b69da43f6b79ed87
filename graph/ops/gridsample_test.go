package ops_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// reflectedPlace is a place as in mirrors at low and high.
func reflectedPlace(v, low, high float64) float64 {
	if low == high {
		return low
	}
	for v < low || v > high {
		if v < low {
			v = 2*low - v
		} else {
			v = 2*high - v
		}
	}
	return v
}

// gridWeights are the elements and weights along an axis of n, in a loop over all elements near.
func gridWeights(o ops.Grid, g float64, n int) map[int]float64 {
	v, low, high := (g+1)/2*float64(n-1), 0.0, float64(n-1)
	if !o.AlignCorners {
		v, low, high = ((g+1)*float64(n)-1)/2, -0.5, float64(n)-0.5
	}
	inside := func(v float64) float64 {
		if o.Outside == ops.GridZeros {
			return v
		}
		if o.Outside == ops.GridReflection {
			v = reflectedPlace(v, low, high)
		}
		return min(float64(n-1), max(0, v))
	}
	list := map[int]float64{}
	add := func(at, w float64) {
		if at >= 0 && at < float64(n) {
			list[int(at)] += w
		}
	}
	if o.Mode != ops.GridBicubic {
		v = inside(v)
	}
	for k := math.Floor(v) - 1; k <= math.Floor(v)+2; k++ {
		switch d := math.Abs(v - k); {
		case o.Mode == ops.GridNearest:
			if k == math.RoundToEven(v) {
				add(k, 1)
			}
		case o.Mode == ops.GridBilinear:
			add(k, max(0, 1-d))
		case d <= 1:
			add(inside(k), (1.25*d-2.25)*d*d+1)
		default:
			add(inside(k), ((-0.75*d+3.75)*d-6)*d+3)
		}
	}
	return list
}

// TestGridSample compares with loops over the elements around each place.
func TestGridSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(what string, most int) int { return rapid.IntRange(0, most).Draw(t, what) }
		o := ops.Grid{Mode: ops.GridMode(n("mode", 2)), Outside: ops.GridOutside(n("outside", 2)),
			AlignCorners: rapid.Bool().Draw(t, "align")}
		h, w := 1+n("h", 4), 1+n("w", 4)
		x, grid := random(2, 3, h, w), random(2, 3, 2, 2)
		y := compute(t, func(in []graph.Value) graph.Value {
			return ops.GridSample(in[0], in[1], o)
		}, x, grid)
		for i, got := range y.F32() {
			index, want := indexOf(y.Type, i), 0.0
			place := func(k int) float64 {
				return float64(grid.F32()[at(grid.Type, []int{index[0], index[2], index[3], k})])
			}
			for row, a := range gridWeights(o, place(1), h) {
				for column, b := range gridWeights(o, place(0), w) {
					want += a * b * float64(x.F32()[at(x.Type, []int{index[0], index[1], row,
						column})])
				}
			}
			if !(math.Abs(float64(got)-want) < 1e-4) {
				t.Fatalf("%+v: element %d is %g, want %g", o, i, got, want)
			}
		}
	})
}

// TestGridSampleRejects: what does not fit is an error of the graph.
func TestGridSampleRejects(t *testing.T) {
	for _, o := range []ops.Grid{{}, {Mode: 9}, {Outside: 9}} {
		g := graph.New()
		last := 2
		if o == (ops.Grid{}) {
			last = 3
		}
		ops.GridSample(g.Input("x", tensor.Of(graph.F32, 1, 1, 2, 2)),
			g.Input("grid", tensor.Of(graph.F32, 1, 2, 2, last)), o)
		err := g.Err()
		if err == nil || !strings.Contains(err.Error(), "at the places of f32[1 2 2") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
