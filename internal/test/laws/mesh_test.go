package laws_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// randomMesh draws a mesh of one or two axes and a layout that divides axes of x and of
// variables of a random graph.
func randomMesh(t *rapid.T, m *randgraph.Model) *mesh.Spec {
	var spec mesh.Spec
	roots := slices.Clone(m.Updates)
	for _, v := range m.Fetches {
		roots = append(roots, v.Node.ID)
	}
	live := m.Graph.Ancestors(roots)
	leaves := slices.DeleteFunc(m.Graph.Variables(), func(n *graph.Node) bool {
		return !live[n.ID] || n.Out[0].Rank() == 0
	})
	if x := m.Inputs[0].Node; live[x.ID] {
		leaves = append([]*graph.Node{x, x, x}, leaves...)
	}
	for i := range 1 + rapid.IntRange(0, 1).Draw(t, "axes") {
		n := leaves[rapid.IntRange(0, len(leaves)-1).Draw(t, "leaf")]
		axis := rapid.IntRange(0, n.Out[0].Rank()-1).Draw(t, "axis")
		size := n.Out[0].Size(axis)
		parts := []int{1}
		for d := 2; d <= min(size, 4); d++ {
			if size%d == 0 {
				parts = append(parts, d)
			}
		}
		name := string(rune('a' + i))
		spec.Mesh.Axes = append(spec.Mesh.Axes, name)
		spec.Mesh.Cluster = append(spec.Mesh.Cluster, 1)
		spec.Mesh.Device = append(spec.Mesh.Device, rapid.SampledFrom(parts).Draw(t, "parts"))
		spec.Layout = append(spec.Layout, mesh.Assign{Name: fmt.Sprintf("%s:%d", n.Name, axis),
			Axis: name})
	}
	return &spec
}

// apart is how far two lists of bytes of f32 are apart, relative to the larger of their
// norms and one.
func apart(a, b []byte) float64 {
	x := tensor.View{Type: tensor.Of(graph.F32, len(a)/4), Data: a}.F32()
	y := tensor.View{Type: tensor.Of(graph.F32, len(b)/4), Data: b}.F32()
	diff, norm := 0.0, 1.0
	for i := range x {
		d := float64(x[i]) - float64(y[i])
		diff += d * d
		norm += float64(x[i]) * float64(x[i])
	}
	return math.Sqrt(diff / norm)
}

// TestMeshes: a random training step, of which workers may exchange values, divided over a
// random mesh by a random layout, under random options, at the smallest budget or more,
// fetches what the plain loop does and leaves the same variables: to the bit if nothing was
// summed in parts, and else within 1e-6, or ten times of what a unit in the last place of the
// weights comes to. There are optimizers that make much of a gradient which is nothing but
// rounding.
func TestMeshes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		draw := randgraph.Random
		if rapid.IntRange(0, 3).Draw(t, "exchanges") == 0 {
			draw = randgraph.Exchanging
		}
		m := draw(pick, 12)
		want, err := trial.Plain(m)
		if err != nil {
			t.Fatal(err)
		}
		o := trial.RandomOptions(t)
		o.Mesh = randomMesh(t, m)
		target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
		least, err := gomem.MinDevice(context.Background(), m.Graph, o, target)
		if err != nil {
			t.Fatalf("%s: %v", o.Mesh, err)
		}
		if rapid.Bool().Draw(t, "budget") {
			o.DeviceBytes = least + least/8*rapid.Int64Range(0, 4).Draw(t, "more")
		}
		got, err := trial.Trained(m, o)
		if err != nil {
			t.Fatalf("%s: %v", o.Planning(), err)
		}
		r, err := mesh.Lower(m.Graph, *o.Mesh, 0, m.Fetches, m.Updates)
		if err != nil {
			t.Fatal(err)
		}
		if _, sums := r.Copied(mesh.Sum); sums == 0 && !want.Equal(got) {
			t.Fatalf("%s sums nothing and gives other bits", o.Planning())
		}
		control, err := trial.Nudged(m)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			off, bound := apart(want[i], got[i]), max(1e-6, 10*apart(want[i], control[i]))
			if !(off < bound) {
				t.Fatalf("%s: value %d is off by %.1e, not %.1e", o.Planning(), i, off, bound)
			}
		}
	})
}

// TestMeshSaves: variables are saved and loaded whole, whatever the mesh: what one session
// saves in pieces another has in other pieces, or whole; and setting and reading them
// is of the whole.
func TestMeshSaves(t *testing.T) {
	g, targets := divisible(t)
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "weights")
	first := map[string]gomem.Tensor{}
	for i, text := range []string{"m:2", "", "m:4"} {
		o := gomem.Options{Seed: 5}
		if text != "" {
			s, err := mesh.Parse(text, "w:1=m")
			if err != nil {
				t.Fatal(err)
			}
			o.Mesh = s
		}
		s, err := gomem.Compile(ctx, g, o, targets)
		if err != nil {
			t.Fatal(err)
		}
		w := g.Node(graph.NodeID(slices.IndexFunc(g.Nodes(), func(n *graph.Node) bool {
			return n.Name == "w"
		}))).Value(0)
		if i == 0 {
			for _, v := range s.Variables() {
				x, err := s.Get(v)
				if err != nil {
					t.Fatal(err)
				}
				first[v.Node.Name] = x
			}
			if err := s.Save(path, gomem.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
		} else {
			if x, _ := s.Get(w); !slices.Equal(x.Data, first["w"].Data) {
				t.Errorf("mesh %q: another initial value", text)
			}
			if err := s.Set(w, gomem.NewTensor(w.Type())); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(path, gomem.LoadOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range s.Variables() {
			want := first[v.Node.Name]
			if x, err := s.Get(v); err != nil || !slices.Equal(x.Data, want.Data) {
				t.Errorf("mesh %q: %s is %v, want %v; %v", text, v, x, want, err)
			}
		}
		if err := s.Set(w, gomem.Scalar(1)); err == nil {
			t.Error("a variable in pieces is set to a scalar")
		}
		s.Close()
	}
}

// divisible is a training step of two layers whose weights divide along any axis by 4, and
// with an optimizer of three variables.
func divisible(t *testing.T) (*graph.Graph, gomem.Target) {
	g := graph.New()
	x := g.Input("x", graph.Named(graph.F32, graph.Dim{Name: "batch", Size: 8},
		graph.Dim{Size: 4}))
	lr, step := g.Input("lr", tensor.Of(graph.F32)), g.Input("step", tensor.Of(graph.F32))
	normal := graph.Init{Dist: graph.Normal, Scale: 0.5}
	w := g.Variable("w", tensor.Of(graph.F32, 4, 8), normal)
	u := g.Variable("u", tensor.Of(graph.F32, 8, 4), normal)
	y := ops.Tanh(ops.MatMul(ops.Tanh(ops.MatMul(x, w)), u))
	loss := ops.Mean(ops.Square(y))
	var updates []*graph.Node
	for i, d := range autodiff.Grad(loss, w, u) {
		v := []graph.Value{w, u}[i]
		state := func(name string) graph.Value {
			return g.State(v.Node.Name+"/"+name, v.Type(), graph.Init{})
		}
		updates = append(updates, ops.Adam(v, state("m"), state("v"), d, lr, step, 0.9, 0.99,
			1e-8))
	}
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	return g, gomem.Updating("train", updates, loss, y)
}

// meshesOf are meshes and layouts for the models, by name.
var meshesOf = map[string][][2]string{
	"transformer": {{"batch:2", ""}, {"batch:4", ""},
		{"b:2,m:2", "batch=b,*/ff/w0:1=m,*/ff/w1:0=m"}},
	"moe": {{"batch:2", ""}, {"experts:2", ""}, {"batch:2,experts:4", ""},
		{"m:2", "*/expert*/w0:1=m,*/expert*/w1:0=m"}},
	"moe sparse": {{"batch:2", ""}, {"experts:4", ""}},
	"gpt":        {{"batch:2", ""}},
	"lstm-lm":    {{"batch:2", ""}},
	"topic":      {{"batch:2", ""}},
	"resnet":     {{"batch:2", ""}, {"batch:4", ""}},
	"wgan":       {{"batch:2", ""}},
	"deepspeech": {{"batch:2", ""}},
}

// meshed builds one of the models of meshesOf.
func meshed(name, size string) (*models.Model, error) {
	switch name {
	case "transformer":
		c, err := models.NewTransformerConfig(size)
		return smallest(c, err, models.Transformer)
	case "moe", "moe sparse":
		c, err := models.NewMoEConfig(size)
		c.Sparse = name == "moe sparse"
		return smallest(c, err, models.MoE)
	case "gpt":
		c, err := models.NewGPTConfig(size, models.GPT2Blocks)
		return smallest(c, err, models.GPT)
	case "lstm-lm":
		c, err := models.NewLSTMLMConfig(size)
		return smallest(c, err, models.LSTMLM)
	case "topic":
		c, err := models.NewTopicConfig(size)
		return smallest(c, err, models.Topic)
	case "resnet":
		c, err := models.NewResNetConfig(size)
		return smallest(c, err, models.ResNet)
	case "wgan":
		c, err := models.NewWGANConfig(size)
		return smallest(c, err, models.WGAN)
	}
	c, err := models.NewDeepSpeechConfig(size)
	return smallest(c, err, models.DeepSpeech)
}

// stepped is what a step of every objective of a model and an evaluation fetch, and the
// variables after it, one after the other.
func stepped(m *models.Model, o gomem.Options) (losses, variables []byte, err error) {
	ctx := context.Background()
	o.Seed = 3
	s, err := gomem.Compile(ctx, m.Graph, o, train.Targets(&m.Model)...)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	feeds := thesis.Feeds(m)
	feeds[m.Seed], feeds[m.Step] = gomem.Pair(3, 0), gomem.Scalar(1)
	names := []string{"eval"}
	for _, objective := range m.Objectives {
		names = append(names, objective.Name)
	}
	for _, name := range names {
		out, err := s.Step(ctx, name, feeds)
		if err != nil {
			return nil, nil, err
		}
		losses = append(losses, out[0].Data...)
	}
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if err != nil {
			return nil, nil, err
		}
		variables = append(variables, x.Data...)
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			return nil, nil, fmt.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	return losses, variables, nil
}

// TestMeshesOfModels: an evaluation and a step of every model at s512, divided over meshes,
// under every policy and in the smallest budget of the thesis', give the losses and the
// variables of the whole within 1e-6.
func TestMeshesOfModels(t *testing.T) {
	for name, list := range meshesOf {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := meshed(name, "s512")
			if err != nil {
				t.Fatal(err)
			}
			losses, variables, err := stepped(m, gomem.Options{Policy: planner.Vanilla})
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range list {
				o := gomem.Options{Partition: []int{5, 20, 1}[i%3], Effort: longtest.Count(20, 0)}
				if o.Mesh, err = mesh.Parse(x[0], x[1]); err != nil {
					t.Fatal(err)
				}
				least, err := gomem.MinDevice(context.Background(), m.Graph, o,
					train.Targets(&m.Model)...)
				if err != nil {
					t.Fatalf("%s: %v", o.Mesh, err)
				}
				for _, policy := range planner.Policies() {
					o.Policy, o.DeviceBytes = policy, 0
					if policy == planner.Thesis {
						o.DeviceBytes = least
					}
					l, v, err := stepped(m, o)
					if err != nil {
						t.Fatalf("%s: %v", o.Planning(), err)
					}
					if d, e := apart(losses, l), apart(variables, v); !(d < 1e-6 && e < 1e-6) {
						t.Errorf("%s: losses are off by %.1e, variables by %.1e", o.Planning(),
							d, e)
					}
				}
			}
		})
	}
}

// TestSlicesRunWhatDoesNotFit: within less of the device than one operation of a model has at
// once, its step is refused, and runs in slices, with three quarters of that.
func TestSlicesRunWhatDoesNotFit(t *testing.T) {
	m, err := meshed("transformer", "s512")
	if err != nil {
		t.Fatal(err)
	}
	var fetches []graph.Value
	var updates []graph.NodeID
	for _, x := range train.Targets(&m.Model) {
		fetches, updates = append(fetches, x.Fetches...), append(updates, x.Updates...)
	}
	most := slices.Max(split.Needs(m.Graph, fetches, updates))
	o := gomem.Options{Partition: 5, DeviceBytes: most - 256}
	_, _, err = stepped(m, o)
	if _, short := errors.AsType[*gomem.ErrOutOfMemory](err); !short {
		t.Errorf("one operation has more than %d bytes: %v", o.DeviceBytes, err)
	}
	losses, _, err := stepped(m, gomem.Options{Policy: planner.Vanilla})
	if err != nil {
		t.Fatal(err)
	}
	if o.Mesh, err = mesh.Parse("batch:4", ""); err != nil {
		t.Fatal(err)
	}
	o.DeviceBytes -= o.DeviceBytes / 4
	got, _, err := stepped(m, o)
	if err != nil {
		t.Fatal(err)
	}
	if d := apart(losses, got); !(d < 1e-6) {
		t.Errorf("losses are off by %.1e", d)
	}
}
