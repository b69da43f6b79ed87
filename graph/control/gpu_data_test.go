//go:build linux && amd64 && !nocuda

package control_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/planner"
)

// emulated has sessions find an emulated GPU, if one can be built.
func emulated(t *testing.T) bool {
	t.Helper()
	dir := emu.Dir(t)
	if dir == "" {
		return false
	}
	t.Setenv("GOMEM_CUDA_PATH", dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return true
}

// TestNestedOnGPU: loops and branches within one another come to the same bits on an emulated GPU
// by plans of two policies, in one of which what can be is captured; to the host's, with their
// gradients, where all operations have these.
func TestNestedOnGPU(t *testing.T) {
	if !emulated(t) {
		return
	}
	exact := 0
	for seed := range uint64(longtest.Count(6, 100)) {
		p := drawn(seed, 4, []graph.DType{graph.F32, graph.F64, graph.I32, graph.Bool})
		g, feeds := graph.New(), gomem.Feeds{}
		var in, values []value
		for i, x := range p.in {
			v := g.Input(fmt.Sprint("x", i), x.Type)
			in, feeds[v] = append(in, v), x
		}
		for _, v := range p.Build(in) {
			values = append(values, ops.Scale(ops.Cast(v, graph.F64), 2))
		}
		loss := randgraph.NestedLoss(values)
		values = append(values, loss)
		for _, d := range autodiff.Grad(loss, in...) {
			if d.Valid() {
				values = append(values, d)
			}
		}
		o := gomem.Options{Device: gomem.CUDA, Policy: planner.Thesis, Partition: 2, Effort: 100,
			NoCUDAGraphs: true}
		thesis, err := fetched(t, o, g, values, feeds)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o.Policy, o.NoCUDAGraphs = planner.Auto, false
		auto, err := fetched(t, o, g, values, feeds)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o.Device = gomem.CPU
		want, err := fetched(t, o, g, values, feeds)
		if err != nil {
			t.Fatal(err)
		}
		same := true
		for _, n := range g.Nodes() {
			if _, view := n.Op.(graph.Viewer); !n.Leaf() && !view {
				same = same && cuda.IsExact(n.Op)
			}
		}
		if same {
			exact++
		}
		for i := range want {
			if !bytes.Equal(thesis[i], auto[i]) || same && !bytes.Equal(auto[i], want[i]) {
				t.Errorf("seed %d: value %d of %d differs", seed, i, len(values))
			}
		}
	}
	if exact == 0 {
		t.Error("no program has the host's bits")
	}
}

// TestCountOnGPU: a scan with a count, in two segments, in either direction, has the host's bits
// for every count.
func TestCountOnGPU(t *testing.T) {
	if !emulated(t) {
		return
	}
	for _, reverse := range []bool{false, true} {
		g := graph.New()
		x, k := g.Input("x", f32(3, 2)), g.Input("k", graph.Of(graph.I32))
		last, ys := control.Scan(nil, []value{ops.Zeros(g, f32(2))}, []value{x},
			func(_, s, xs []value) (next, ys []value) {
				next = []value{ops.Sub(ops.Square(xs[0]), s[0])}
				return next, []value{next[0], ops.Greater(next[0], xs[0])}
			}, control.Options{Count: ops.Sub(ops.Add(k, k), k), Reverse: reverse,
				Segments: 2})
		d := autodiff.Grad(ops.Sum(last[0]), x)[0]
		values := []value{last[0], ys[0], ys[1], d}
		for n := range int32(5) {
			feeds := gomem.Feeds{x: tensor.FromF32([]float32{1, 2, 3, 4, 5, 6}, 3, 2),
				k: tensor.FromI32([]int32{n})}
			want, errWant := fetched(t, gomem.Options{}, g, values, feeds)
			got, err := fetched(t, gomem.Options{Device: gomem.CUDA}, g, values, feeds)
			if (err == nil) != (n <= 3) || (errWant == nil) != (n <= 3) {
				t.Errorf("%d iterations of 3: %v, and on the host %v", n, err, errWant)
			}
			for i := range got {
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("%d iterations, reverse %t: value %d differs", n, reverse, i)
				}
			}
		}
	}
}

// TestFaultsOnGPU: a loop that goes on beyond its bound, and a launch within a loop that fails, are
// errors of the step that name the loop.
func TestFaultsOnGPU(t *testing.T) {
	if !emulated(t) {
		return
	}
	run := func(bound int) error {
		g := graph.New()
		x := g.Input("x", f32(3))
		r, _ := root(x, bound)
		_, err := fetched(t, gomem.Options{Device: gomem.CUDA}, g, []value{r},
			gomem.Feeds{x: tensor.FromF32([]float32{4, 9, 100}, 3)})
		return err
	}
	if err := run(50); err != nil {
		t.Fatal(err)
	}
	const want = "the loop is not over after 3 iterations, its bound"
	if err := run(3); err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "while") {
		t.Errorf("beyond its bound: %v", err)
	}
	t.Setenv("EMU_FAIL", "20")
	if err := run(50); err == nil || !strings.Contains(err.Error(), "while") {
		t.Errorf("a launch that fails: %v", err)
	}
}

// TestRecurseOnGPU: a function that calls itself comes to the host's numbers, up to rounding, and a
// call that is too deep is an error that names it.
func TestRecurseOnGPU(t *testing.T) {
	if !emulated(t) {
		return
	}
	tr, depth := newTree(1)
	values, feeds := tr.network(depth)
	want, err := fetched(t, gomem.Options{}, values[0].Graph(), values, feeds)
	if err != nil {
		t.Fatal(err)
	}
	got, err := fetched(t, gomem.Options{Device: gomem.CUDA}, values[0].Graph(), values, feeds)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		near(t, fmt.Sprint("value ", i), got[i], want[i], 1e-5)
	}
	values, feeds = tr.network(depth - 1)
	_, err = fetched(t, gomem.Options{Device: gomem.CUDA}, values[0].Graph(), values, feeds)
	if err == nil || !strings.Contains(err.Error(), "its bound") ||
		!strings.Contains(err.Error(), "call") {
		t.Errorf("beyond its bound: %v", err)
	}
}

// TestWhileInPartsOnGPU: a loop that is cut into parts has the host's bits, whichever part it ends
// in, and the whole loop's bound.
func TestWhileInPartsOnGPU(t *testing.T) {
	if !emulated(t) {
		return
	}
	const width = 200
	start := make([]float32, width)
	for i := range start {
		start[i] = float32(i%7)/2 - 1.5
	}
	for n := range 9 {
		g := graph.New()
		x := g.Input("x", f32(width))
		last, count := control.While(nil, []value{x, ops.Zeros(g, f32())}, 7,
			func(_, s []value) value {
				return ops.Less(s[1], ops.Full(s[1].Graph(), f32(), float32(n)))
			},
			func(_, s []value) []value {
				return []value{ops.Sin(ops.Scale(s[0], 1.5)), ops.AddScalar(s[1], 1)}
			})
		whole := []value{last[0], count, autodiff.Grad(ops.Sum(ops.Square(last[0])), x)[0]}
		parts, _, _ := cut(t, 3, whole)
		if made := loops(parts[0].Graph()); made < 6 {
			t.Errorf("%d loops", made)
		}
		of := func(device string, values []value) ([][]byte, error) {
			g := values[0].Graph()
			return fetched(t, gomem.Options{Device: device}, g, values, gomem.Feeds{
				g.Inputs()[0].Value(0): tensor.FromF32(start, width)})
		}
		want, errWant := of(gomem.CPU, whole)
		got, err := of(gomem.CUDA, parts)
		if (err == nil) != (n <= 7) || (errWant == nil) != (n <= 7) {
			t.Errorf("%d iterations of 7: %v, and on the host %v", n, err, errWant)
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%d iterations: value %d differs", n, i)
			}
		}
	}
}
