package control_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/internal/reference"
)

// cut has sequences that need more than a share of what the neediest operation needs in parts, and
// says what an operation needs then, of what it needed before.
func cut(t *testing.T, share int64, fetches []value) (after []value, need, whole int64) {
	t.Helper()
	g := fetches[0].Graph()
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	whole = slices.Max(split.Needs(g, fetches, nil))
	r, err := split.Split(g, fetches, nil, whole/share)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range fetches {
		after = append(after, r.Value(v))
	}
	return after, slices.Max(split.Needs(r.Graph, after, nil)), whole
}

// loops is how many nodes are loops.
func loops(g *graph.Graph) (n int) {
	for _, node := range g.Nodes() {
		if name := node.OpName(); name == "scan" || name == "while" {
			n++
		}
	}
	return n
}

// TestScanInParts: a scan and its gradient have the same bits in any number of parts, in either
// direction, with a count that ends in any of them, and whatever is recorded; and need less.
func TestScanInParts(t *testing.T) {
	const steps = 40
	for _, reverse := range []bool{false, true} {
		for _, forward := range []bool{false, true} {
			for _, count := range []int{-1, 0, 1, 17, 20, 40} {
				r := newRecurrent(steps)
				o := control.Options{Reverse: reverse, Forward: forward}
				if count >= 0 {
					o.Count = r.g.Input("count", graph.Of(graph.I32))
				}
				r.scanned(o)
				fetches := r.fetches()
				want := compute(t, 1, counted(fetches, count), fetches...)
				for _, share := range []int64{2, 3, 8} {
					after, need, whole := cut(t, share, fetches)
					if n := loops(after[0].Graph()); n < 2*int(share) || need >= whole {
						t.Errorf("%d loops need %d bytes, before %d", n, need, whole)
					}
					got := compute(t, 2, counted(after, count), after...)
					for i := range want {
						if !bytes.Equal(got[i], want[i]) {
							t.Errorf("%+v, count %d, 1/%d: value %d differs", o, count, share, i)
						}
					}
				}
			}
		}
	}
}

// counted sets the input that is a number of iterations, if there is one.
func counted(fetches []value, count int) func(m *reference.Machine) {
	return func(m *reference.Machine) {
		for _, n := range fetches[0].Graph().Inputs() {
			if n.Name == "count" {
				m.Value(n.Value(0)).I32()[0] = int32(count)
			}
		}
	}
}

// TestWhileInParts: a loop of any number of iterations within its bound has the same states, count
// and gradient in parts, and is refused beyond its bound as before.
func TestWhileInParts(t *testing.T) {
	for n := range 9 {
		g := graph.New()
		x := g.Input("x", f32(600))
		last, count := control.While(nil, []value{x, ops.Scale(ops.Sum(ops.Square(x)), 0)}, 7,
			func(_, s []value) value {
				return ops.Less(s[1], ops.Full(s[1].Graph(), f32(), float32(n)-0.5))
			},
			func(_, s []value) []value {
				one := ops.Full(s[1].Graph(), f32(), 1)
				return []value{ops.Sin(ops.Scale(s[0], 1.5)), ops.Add(s[1], one)}
			})
		fetches := []value{last[0], count, autodiff.Grad(ops.Sum(ops.Square(last[0])), x)[0]}
		after, need, whole := cut(t, 3, fetches)
		if made := loops(after[0].Graph()); made < 6 || need >= whole {
			t.Errorf("%d loops need %d bytes, before %d", made, need, whole)
		}
		if n > 7 {
			err := fails(t, after)
			if err == nil || !strings.Contains(err.Error(), "not over after 7 iterations") {
				t.Errorf("beyond its bound: %v", err)
			}
			continue
		}
		want, got := compute(t, 1, nil, fetches...), compute(t, 2, nil, after...)
		if int(want[1][0]) != n {
			t.Fatalf("%d iterations, not %d", want[1][0], n)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%d iterations: value %d differs", n, i)
			}
		}
	}
}

// fails executes a graph and says why it cannot.
func fails(t *testing.T, fetches []value) error {
	t.Helper()
	g := fetches[0].Graph()
	m, err := reference.New(g, slices.Repeat([]bool{true}, g.Len()), nil)
	if err != nil {
		t.Fatal(err)
	}
	fill(m, g, 7)
	return m.Step()
}

// TestSegmentsOfCount: a scan with a count may have segments, too, and so may its gradient.
func TestSegmentsOfCount(t *testing.T) {
	for n := range 12 {
		var want [][]byte
		for _, segments := range []int{1, 4} {
			r := newRecurrent(11)
			count := r.g.Input("count", graph.Of(graph.I32))
			r.scanned(control.Options{Count: count, Segments: segments})
			got := compute(t, 1, func(m *reference.Machine) {
				m.Value(count).I32()[0] = int32(n)
			}, r.fetches()...)
			if want == nil {
				want = got
			}
			for i := range got {
				near(t, fmt.Sprint("value ", i), got[i], want[i], 1e-5)
			}
		}
	}
}
