package mesh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// tester is what a comparison needs of a test.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// compare runs steps of a graph whole and over a mesh, from the same variables, and wants
// every process to fetch what the whole does and all of them to leave its variables, within
// 1e-6, or to the bit if nothing was summed up. Updates of steps so small that rounding counts
// may be off by more. It returns the world.
func compare(t tester, g *graph.Graph, s mesh.Spec, targets []target,
	feeds map[graph.Value]tensor.View, off ...float64) *world {
	t.Helper()
	one := alone(g)
	all, err := over(g, s, targets)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	exact := true
	for _, c := range all.ranks[0].res.Conversions {
		exact = exact && c.Kind != mesh.Sum && c.Kind != mesh.Reduce && c.Kind != mesh.Scatter &&
			c.Kind != mesh.ScatterSome
	}
	for _, n := range g.Updates() {
		_, composes := n.Op.(graph.Composer)
		exact = exact && !composes // of operations that round elsewhere
	}
	limit, updated := 1e-6, append(off, 1e-6)[0]
	if exact {
		limit, updated = 0, 0
	}
	for i, x := range targets {
		want, err := one.step(x, feeds)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		clear(all.sent)
		got, err := all.step(x, feeds)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		all.counted(t, x)
		for rank := range got {
			for k, v := range x.fetches {
				if d := apart(want[0][k], got[rank][k]); d > limit || d != d {
					t.Fatalf("%s: target %d, %s at rank %d is off by %.1e", s, i, v, rank, d)
				}
			}
		}
	}
	for _, n := range g.Variables() {
		want, _ := one.get(n)
		got, err := all.get(n)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if d := apart(want, got); d > updated || d != d {
			t.Fatalf("%s: variable %s is off by %.1e", s, n.Name, d)
		}
	}
	return all
}

// counted wants what a step has sent to be what every rank's graph says of it, but for
// fractions of bytes; of some rows it is at most that.
func (w *world) counted(t tester, x target) {
	t.Helper()
	var sent, some float64
	for fold, bytes := range w.sent {
		if fold.Some() {
			some += bytes
		} else {
			sent += bytes
		}
	}
	for rank, p := range w.ranks {
		forecast, most, count := int64(0), int64(0), 0
		for _, of := range p.res.Traffic(x.fetches, x.updates) {
			if count += of.Count; of.Kind.Some() {
				most += of.Bytes
			} else {
				forecast += of.Bytes
			}
		}
		all, slack := float64(len(w.ranks)), float64(count*len(w.ranks))
		rest := sent - float64(forecast)*all
		if rest < 0 || rest > slack || some > float64(most)*all+slack || len(w.names) != count {
			t.Fatalf("rank %d says %d exchanges of %d bytes by each, and at most %d, there were "+
				"%d of %g and %g", rank, count, forecast, most, len(w.names), sent, some)
		}
	}
}

// randomSpec draws a mesh of one or two axes, with processes and slices, and a layout that
// divides axes of x and of variables of a random graph.
func randomSpec(t *rapid.T, m *randgraph.Model, live []bool) mesh.Spec {
	var spec mesh.Spec
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
		shapes := [][2]int{{1, 1}}
		for c := 1; c <= min(size, 4); c++ {
			for d := 1; d <= 2; d++ {
				if size%(c*d) == 0 {
					shapes = append(shapes, [2]int{c, d})
				}
			}
		}
		name := string(rune('a' + i))
		shape := rapid.SampledFrom(shapes).Draw(t, "shape")
		spec.Mesh.Axes = append(spec.Mesh.Axes, name)
		spec.Mesh.Cluster = append(spec.Mesh.Cluster, shape[0])
		spec.Mesh.Device = append(spec.Mesh.Device, shape[1])
		spec.Layout = append(spec.Layout, mesh.Assign{Name: fmt.Sprintf("%s:%d", n.Name, axis),
			Axis: name})
	}
	return spec
}

// TestProcesses: a random training step, divided over the processes and slices of a random
// mesh by a random layout, fetches on every process what the whole does, and leaves the same
// variables; all processes have the same exchanges in the same order.
func TestProcesses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, spec, feeds := randomStep(t)
		targets := []target{{m.Fetches, m.Updates}, {m.Fetches[:1], nil}}
		compare(t, m.Graph, spec, targets, feeds, 1e-4)
	})
}

// randomStep draws a training step, a mesh and a layout for it, and its data.
func randomStep(t *rapid.T) (m *randgraph.Model, spec mesh.Spec,
	feeds map[graph.Value]tensor.View) {
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
	m = randgraph.Random(pick, 12)
	roots := slices.Clone(m.Updates)
	for _, v := range m.Fetches {
		roots = append(roots, v.Node.ID)
	}
	// Some variables are elements of axes, and at places of the mesh.
	live := m.Graph.Ancestors(roots)
	spec = randomSpec(t, m, live)
	for i, n := range m.Graph.Variables() {
		if a := rapid.IntRange(0, 3).Draw(t, "member"); a < len(spec.Mesh.Axes) && live[n.ID] {
			size := spec.Mesh.Size(a)
			m.Graph.Place(n.Value(0), spec.Mesh.Axes[a], i%size, size)
			spec.Layout = append(spec.Layout, mesh.Assign{Name: spec.Mesh.Axes[a],
				Axis: spec.Mesh.Axes[a]})
		}
	}
	spec.Layout = compacted(spec.Layout)
	feeds = map[graph.Value]tensor.View{}
	for _, v := range m.Inputs {
		x := tensor.New(v.Type())
		if v.Type().DType == graph.F32 {
			for i := range x.F32() {
				x.F32()[i] = float32(1+i*7%5) / 8
			}
		}
		feeds[v] = x
	}
	for i, scalar := range []float32{0.01, 1} { // the learning rate and the step
		feeds[m.Inputs[2+i]].F32()[0] = scalar
	}
	return m, spec, feeds
}

// compacted is a layout without repetitions.
func compacted(l mesh.Layout) (out mesh.Layout) {
	for _, a := range l {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// stacked divides the weights of all experts of a layer.
const stacked = "*/experts/w0:0=experts,*/experts/w1:0=experts"

// modelMeshes are meshes and layouts for models at s512, by name.
var modelMeshes = map[string][][2]string{
	"transformer": {{"batch:2x1", ""}, {"b:2x1,m:2x1", "batch=b,*/ff/w0:1=m,*/ff/w1:0=m"},
		{"m:2x2", "*/q:1=m,*/k:1=m,*/v:1=m,*/o:0=m,*/ff/w0:1=m"},
		{"b:4x1", "batch=b,*/ff/w0:0=b,*/ff/w1:0=b,*/q:0=b,*/o:0=b,embedding:0=b"}},
	"moe": {{"experts:2x1", ""}, {"experts:4x1", ""}, {"batch:2x1,experts:2x2", ""},
		{"x:2x1", "experts=x,batch=x"}, {"x:2x2", "experts=x,batch=x"}},
	"moe sparse": {{"experts:2x2", ""}, {"experts:4x1", ""}, {"batch:2x1,experts:2x1", ""},
		{"x:2x1", "experts=x,batch=x"}, {"x:2x2", "experts=x,batch=x"},
		{"x:4x1", "experts=x,batch=x"},
		{"b:2x1,x:2x1", "embedding:1=b,*/qkvo:2=b,experts=x,batch=x"}},
	"moe stacked": {{"experts:4x1", stacked}, {"experts:2x1", stacked + ",batch=experts"}},
	"moe sparse stacked": {{"experts:2x2", stacked},
		{"batch:2x1,experts:4x1", stacked + ",batch=batch"},
		{"experts:2x1", stacked + ",batch=experts"}, {"experts:4x1", stacked + ",batch=experts"}},
	"gpt":        {{"batch:2x1", ""}, {"b:2x1", "batch=b,h/*/weight:0=b,wte/weight:0=b"}},
	"lstm-lm":    {{"batch:2x1", ""}},
	"resnet":     {{"batch:2x1", ""}},
	"wgan":       {{"batch:2x1", ""}},
	"deepspeech": {{"batch:2x1", ""}},
}

// built is a model at s512.
func built(t *testing.T, name string) *models.Model {
	t.Helper()
	m, err := model(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func model(name string) (*models.Model, error) {
	switch name {
	case "transformer":
		c, err := models.NewTransformerConfig("s512")
		return made(c, err, models.Transformer)
	case "moe", "moe sparse", "moe stacked", "moe sparse stacked":
		c, err := models.NewMoEConfig("s512")
		c.Sparse = strings.Contains(name, "sparse")
		c.Stacked = strings.Contains(name, "stacked")
		return made(c, err, models.MoE)
	case "gpt":
		c, err := models.NewGPTConfig("s512", models.GPT2Blocks)
		return made(c, err, models.GPT)
	case "lstm-lm":
		c, err := models.NewLSTMLMConfig("s512")
		return made(c, err, models.LSTMLM)
	case "resnet":
		c, err := models.NewResNetConfig("s512")
		return made(c, err, models.ResNet)
	case "wgan":
		c, err := models.NewWGANConfig("s512")
		return made(c, err, models.WGAN)
	}
	c, err := models.NewDeepSpeechConfig("s512")
	return made(c, err, models.DeepSpeech)
}

func made[C any](c C, err error, build func(C) (*models.Model, error)) (*models.Model, error) {
	if err != nil {
		return nil, err
	}
	return build(c)
}

// workload is what a model's session has: its targets, and data.
func workload(m *models.Model) (targets []target, feeds map[graph.Value]tensor.View) {
	for _, t := range train.Targets(&m.Model) {
		targets = append(targets, target{t.Fetches, t.Updates})
	}
	feeds = map[graph.Value]tensor.View{}
	for v, x := range thesis.Feeds(m) {
		feeds[v] = tensor.View(x)
	}
	return targets, feeds
}

// TestModelsOverProcesses: a step of every model and an evaluation, over meshes of processes.
func TestModelsOverProcesses(t *testing.T) {
	for name, list := range modelMeshes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := built(t, name)
			targets, feeds := workload(m)
			for _, x := range list {
				s, err := mesh.Parse(x[0], x[1])
				if err != nil {
					t.Fatal(err)
				}
				compare(t, m.Graph, *s, targets, feeds)
			}
		})
	}
}
