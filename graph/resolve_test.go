package graph_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// window is a view of two rows of its operand, which counts how often it is asked
// where they are.
type window struct {
	join
	first, second int64
	asked         *int
}

func (w window) Infer([]graph.Type) ([]graph.Type, error) {
	return []graph.Type{f32(1), f32(1)}, nil
}

func (w window) View(_, _ []graph.Type) []int64 {
	*w.asked++
	return []int64{w.first, w.second}
}

// TestResolve: a value resolves to what views read in the end, at the sum of their
// offsets, and every view is asked once for where its results are, however many
// views there are of it and however often they are resolved.
func TestResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct {
			root graph.Value
			off  int64
		}
		g, asked, views := graph.New(), 0, 0
		values := []graph.Value{g.Input("x", f32(64)), g.Variable("w", f32(64), graph.Init{})}
		want := []place{{values[0], 0}, {values[1], 0}}
		for range rapid.IntRange(1, 40).Draw(t, "nodes") {
			k := rapid.IntRange(0, len(values)-1).Draw(t, "operand")
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				v := g.Apply(join{}, values[k], values[k]).Value(0)
				values, want = append(values, v), append(want, place{v, 0})
				continue
			}
			op := window{asked: &asked, first: rapid.Int64Range(0, 9).Draw(t, "first"),
				second: rapid.Int64Range(0, 9).Draw(t, "second")}
			n, at := g.Apply(op, values[k]), want[k]
			views++
			values = append(values, n.Value(0), n.Value(1))
			want = append(want, place{at.root, at.off + op.first},
				place{at.root, at.off + op.second})
		}
		for i, v := range values {
			if root, off := v.Resolve(); root != want[i].root || off != want[i].off {
				t.Fatalf("%s is at %s+%d, want %+v", v, root, off, want[i])
			}
		}
		if asked != views {
			t.Fatalf("%d views are asked %d times", views, asked)
		}
		if root, off := (graph.Value{}).Resolve(); root.Valid() || off != 0 {
			t.Fatalf("no value is at %s+%d", root, off)
		}
	})
}

// TestCopyResolves: a copy that is a view lies in the copy of what the first lay
// in, and a copy whose operation is no view in itself.
func TestCopyResolves(t *testing.T) {
	asked := 0
	from, to := graph.New(), graph.New()
	x, y := from.Input("x", f32(8)), to.Input("y", f32(8))
	view := from.Apply(window{asked: &asked, second: 4}, x)
	moved, err := to.Copy(view, view.Op, y)
	if err != nil {
		t.Fatal(err)
	}
	if root, off := moved.Value(1).Resolve(); root != y || off != 4 {
		t.Errorf("the copy lies in %s+%d", root, off)
	}
	other := graph.New()
	z := other.Input("z", f32(1))
	if moved, err = other.Copy(view, join{}, z, z); err != nil {
		t.Fatal(err)
	}
	if root, _ := moved.Value(0).Resolve(); root != moved.Value(0) {
		t.Errorf("a copy without a view lies in %s", root)
	}
}

// TestAbsurdSizes: a graph whose bytes could overflow when they are added up is
// refused by the name of the node at which that is so.
func TestAbsurdSizes(t *testing.T) {
	vast := tensor.Of(graph.F32, 1<<60) // 4 EiB: one such value can still be counted
	build := func(variables int, size int) *graph.Graph {
		g := graph.New()
		for _, name := range []string{"a", "b", "c", "d"}[:variables] {
			g.Variable(name, tensor.Of(graph.F32, size), graph.Init{})
		}
		return g
	}
	wide := graph.New()
	x := wide.Input("x", tensor.Of(graph.F32, 1<<56))
	wide.Apply(join{}, x, x, x, x)
	for name, c := range map[string]struct {
		g  *graph.Graph
		at string
	}{
		"four of 4 EiB":      {build(4, vast.Size(0)), "a: "},
		"four of 512 PiB":    {build(4, 1<<57), "c: "},
		"operands":           {wide, "join: "},
		"as large as can be": {build(1, math.MaxInt64/4), "a: "},
	} {
		err := c.g.Verify()
		var typed *graph.Error
		if !errors.As(err, &typed) || !strings.HasPrefix(err.Error(), c.at) ||
			!strings.Contains(err.Error(), "more than 1 EiB") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := build(2, 1<<57).Verify(); err != nil {
		t.Errorf("1 EiB: %v", err)
	}
}
