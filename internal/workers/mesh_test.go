package workers

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// dividing is a small problem whose sizes can be divided, of two layers with Adam.
func dividing(t *testing.T) train.Options {
	t.Helper()
	const n, width, batch = 96, 8, 8
	x, y := tensor.New(tensor.Of(graph.F32, n, width)), tensor.New(tensor.Of(graph.I32, n))
	for i := range x.F32() {
		x.F32()[i] = float32(i*i%17)/8 - 1 + float32(i/width%4)
		y.I32()[i/width] = int32(i / width % 4)
	}
	m := nn.NewModel()
	x0, y0 := m.Input("x", graph.F32, batch, width), m.Input("y", graph.I32, batch)
	net := func(c *nn.Ctx) graph.Value {
		return nn.Linear(c.In("out"), nn.Tanh(nn.Linear(c.In("in"), x0, 8)), 4)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), y0), nn.Adam{}, nn.MinimizeOptions{
		Rate: nn.Constant(0.05)})
	m.Evaluate(nn.CrossEntropy(net(m.Evaluation()), y0))
	l, err := data.FromTensors(data.ExamplesOptions{Batch: batch, HeldOut: 16}, x, y)
	if err != nil {
		t.Fatal(err)
	}
	return train.Options{Model: m, Loader: l, Seed: 5, EvalEvery: 1, SaveEvery: 2,
		Patience: train.Patience{Evaluations: 100}}
}

// overMesh has the processes of a mesh, or one of none, train up to a step, and is the
// directory with what was saved.
func overMesh(t *testing.T, axes, layout string, steps int, resume string) string {
	t.Helper()
	dir := t.TempDir()
	options := func() train.Options {
		o := dividing(t)
		o.Steps, o.Save, o.Resume = steps, dir, resume
		o.Session = gomem.Options{Threads: 1, Policy: planner.Vanilla}
		return o
	}
	if axes == "" {
		if _, err := train.Run(t.Context(), options()); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	spec, err := mesh.Parse(axes, layout)
	if err != nil {
		t.Fatal(err)
	}
	g := inGrid(t, collective.Mesh{Shape: spec.Mesh.Cluster, Names: spec.Mesh.Axes})
	errs := make([]error, len(g.members))
	var all sync.WaitGroup
	for rank, m := range g.members {
		o := options()
		o.Session.Mesh, o.Session.Rank, o.Session.Network = spec, rank, m.Network()
		if o.Parallel, err = m.Parallel(o.Model.Graph); err != nil {
			t.Fatal(err)
		}
		o.Parallel.Mesh = true
		all.Go(func() { _, errs[rank] = train.Run(t.Context(), o) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("%s: %v", axes, err)
	}
	return dir
}

// variables are what the checkpoint of a step has, in order of names, and its file.
func variables(t *testing.T, dir string, step int) (values []gomem.Tensor, file string) {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("step-%08d.safetensors", step))
	bytes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, e := range f.Entries() {
		x, err := f.Get(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, x)
	}
	return values, string(bytes)
}

// TestAnyMeshGoesOn: a run that is cut in two has, in the same mesh, the bytes of the one that
// was not; in any other mesh, and in none, it has the same variables up to rounding. What an
// evaluation finds to be the best is saved, too.
func TestAnyMeshGoesOn(t *testing.T) {
	meshes := [][2]string{{"", ""}, {"a:4x1", "in/weight:1=a,out/weight:0=a"}, {"b:2x1", "x:0=b"},
		{"a:2x2,b:2x1", "in/weight:1=a,out/weight:0=a,x:0=b"}}
	want, _ := variables(t, overMesh(t, "", "", 4, ""), 4)
	for _, m := range meshes {
		half := overMesh(t, m[0], m[1], 3, "")
		whole := overMesh(t, m[0], m[1], 4, "")
		variables(t, whole, 3)
		_, uncut := variables(t, whole, 4)
		for _, next := range meshes {
			have, file := variables(t, overMesh(t, next[0], next[1], 4, half), 4)
			if next == m && file != uncut {
				t.Errorf("%q: a run that was cut in two has other bytes", m)
			}
			for i, x := range have {
				for k, v := range x.F32() {
					if math.Abs(float64(v-want[i].F32()[k])) > 1e-5 {
						t.Fatalf("%q, and then %q: variable %d is %v, not %v", m, next, i, v,
							want[i].F32()[k])
					}
				}
			}
		}
	}
}
