package ops_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// counted is a value of 0, 1, 2, …, from a number on.
func counted(from int, sizes ...int) tensor.View {
	v := tensor.New(tensor.Of(graph.F32, sizes...))
	for i := range v.F32() {
		v.F32()[i] = float32(from + i)
	}
	return v
}

// growing is rows that are put into a value, and what it then is.
type growing struct {
	whole, rows, position, parent tensor.View
	axis                          int
}

// drawGrowing draws one with a position of each element of the batch, or of all.
func drawGrowing(t *rapid.T) growing {
	n := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
	sizes := []int{n("batch", 4), n("heads", 3), n("length", 5), n("width", 2000)}
	g := growing{axis: rapid.SampledFrom([]int{1, 2, -2}).Draw(t, "axis")}
	k := (g.axis + 4) % 4
	part := slices.Clone(sizes)
	part[k] = n("rows", sizes[k])
	g.whole, g.rows = counted(0, sizes...), counted(1e6, part...)
	batch := rapid.SampledFrom([]int{0, sizes[0]}).Draw(t, "positions")
	g.position = tensor.New(tensor.Of(graph.I32, []int{batch}[:min(batch, 1)]...))
	for i := range g.position.I32() {
		g.position.I32()[i] = int32(rapid.IntRange(0, sizes[k]-part[k]).Draw(t, "position"))
	}
	g.parent = tensor.New(tensor.Of(graph.I32, sizes[0]))
	for i := range g.parent.I32() {
		g.parent.I32()[i] = int32(rapid.IntRange(0, sizes[0]-1).Draw(t, "parent"))
	}
	return g
}

// want is the whole with its elements reordered, if so, and the rows written.
func (g growing) want(reordered bool) []float32 {
	out := make([]float32, g.whole.Type.Elems())
	k := (g.axis + 4) % 4
	for i := range out {
		index := indexOf(g.whole.Type, i)
		from := slices.Clone(index)
		if reordered {
			from[0] = int(g.parent.I32()[index[0]])
		}
		out[i] = g.whole.F32()[at(g.whole.Type, from)]
		p := int(g.position.I32()[index[0]%len(g.position.I32())])
		if row := index[k] - p; row >= 0 && row < g.rows.Type.Size(k) {
			index[k] = row
			out[i] = g.rows.F32()[at(g.rows.Type, index)]
		}
	}
	return out
}

// TestWriteAt: the update, with and without a new order, is what PutAt and Reorder are,
// and SliceAt reads the rows back.
func TestWriteAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawGrowing(t)
		for _, reordered := range []bool{false, true} {
			want := c.want(reordered)
			values := compute(t, func(in []graph.Value) graph.Value {
				if reordered {
					in[0] = ops.Reorder(in[0], in[3])
				}
				return ops.PutAt(in[0], in[1], in[2], c.axis)
			}, c.whole, c.rows, c.position, c.parent)
			if !slices.Equal(values.F32(), want) {
				t.Fatalf("PutAt, reordered %t: %v, want %v", reordered, values.F32(), want)
			}
			if got := c.written(t, reordered); !slices.Equal(got, want) {
				t.Fatalf("WriteAt, reordered %t: %v, want %v", reordered, got, want)
			}
		}
		n := c.rows.Type.Size((c.axis + 4) % 4)
		rows := compute(t, func(in []graph.Value) graph.Value {
			return ops.SliceAt(ops.PutAt(in[0], in[1], in[2], c.axis), in[2], c.axis, n)
		}, c.whole, c.rows, c.position)
		if !slices.Equal(rows.F32(), c.rows.F32()) {
			t.Fatalf("SliceAt: %v, want %v", rows.F32(), c.rows.F32())
		}
	})
}

// written is the variable after the update.
func (g growing) written(t fatal, reordered bool) []float32 {
	t.Helper()
	gr := graph.New()
	cache := gr.Variable("cache", g.whole.Type, graph.Init{})
	rows, position := gr.Constant("rows", g.rows), gr.Constant("position", g.position)
	var n *graph.Node
	if reordered {
		n = ops.ReorderWriteAt(cache, gr.Constant("parent", g.parent), rows, position, g.axis)
	} else {
		n = ops.WriteAt(cache, rows, position, g.axis)
	}
	if gr.Err() != nil {
		t.Fatalf("%v", gr.Err())
	}
	m, err := reference.New(gr, gr.Ancestors([]graph.NodeID{n.ID}), nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	copy(m.Value(cache).Data, g.whole.Data)
	if err := m.Step(); err != nil {
		t.Fatalf("%v", err)
	}
	return m.Value(cache).F32()
}

// TestRotary: the product of a turned query and a turned key depends on how far apart
// they are alone; position 0 is not turned; and each pair is turned by its angle.
func TestRotary(t *testing.T) {
	for _, r := range []ops.Rotation{{}, {Interleaved: true}, {Width: 4, Base: 500},
		{Width: 6, Interleaved: true}} {
		const length, width = 7, 8
		x := random(2, length, width)
		for _, p := range []tensor.View{
			tensor.FromI32([]int32{3}),
			tensor.FromI32([]int32{0, 9, 1, 4, 100000, 6, 1}, length),
			tensor.FromI32([]int32{0, 1, 2, 3, 4, 5, 6, 9, 8, 7, 6, 5, 4, 3}, 2, length),
		} {
			got := compute(t, func(in []graph.Value) graph.Value {
				return ops.Rotary(in[0], in[1], r)
			}, x, p)
			expect(t, fmt.Sprintf("%+v at %s", r, p.Type), got, func(i int) float64 {
				return rotated(r, x.F32(), p, i, length, width)
			})
		}
	}
}

// rotated is element i of x, turned.
func rotated(r ops.Rotation, x []float32, p tensor.View, i, length, width int) float64 {
	base, turned := 1e4, width
	if r.Base != 0 {
		base = float64(r.Base)
	}
	if r.Width != 0 {
		turned = r.Width
	}
	row, column := i/width, i%width
	if column >= turned {
		return float64(x[i])
	}
	pair, second := column%(turned/2), column >= turned/2
	other := turned / 2
	if r.Interleaved {
		pair, second, other = column/2, column%2 == 1, 1
	}
	position := 0.0
	switch p.Type.Rank() {
	case 0:
		position = float64(p.I32()[0]) + float64(row%length)
	case 1:
		position = float64(p.I32()[row%length])
	case 2:
		position = float64(p.I32()[row])
	}
	sin, cos := math.Sincos(position * math.Pow(base, -2*float64(pair)/float64(turned)))
	if second {
		return float64(x[i])*cos + float64(x[i-other])*sin
	}
	return float64(x[i])*cos - float64(x[i+other])*sin
}

// TestCausalMaskAt: from position 0 on it is the causal mask; elsewhere it is rows of it.
func TestCausalMaskAt(t *testing.T) {
	whole := compute(t, func(in []graph.Value) graph.Value {
		return ops.CausalMask(in[0].Graph(), 6)
	}, counted(0)).F32()
	got := compute(t, func(in []graph.Value) graph.Value {
		return ops.CausalMaskAt(in[0], 2, 6)
	}, tensor.FromI32([]int32{0, 3, 4}, 3))
	if got.Type.String() != "f32[3 1 2 6]" {
		t.Errorf("the mask is %s", got.Type)
	}
	for i, p := range []int{0, 3, 4} {
		if !slices.Equal(got.F32()[12*i:12*(i+1)], whole[6*p:6*(p+2)]) {
			t.Errorf("from %d: %v", p, got.F32()[12*i:12*(i+1)])
		}
	}
	far := compute(t, func(in []graph.Value) graph.Value {
		return ops.CausalMaskAt(in[0], 1, 4)
	}, tensor.FromI32([]int32{math.MinInt32, math.MaxInt32}, 2)).F32()
	if far[0] == 0 || far[4] != 0 || far[7] != 0 {
		t.Errorf("far positions: %v", far)
	}
}
