package mesh_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// bits are those of all variables, of which all who have the same part of one must have the
// same.
func (w *world) bits(t tester) (out []byte) {
	t.Helper()
	for _, n := range w.g.Variables() {
		x, err := w.get(n)
		if err != nil {
			t.Fatalf("%v", err)
		}
		out = append(out, x.Data...)
	}
	return out
}

// TestReplicasStayEqual: over a random mesh of two to four processes, many steps of a random
// graph leave what several processes have of a variable with the same bits on all of them, and
// on those of a second run.
func TestReplicasStayEqual(t *testing.T) {
	steps, runs := longtest.Count(10, 100), 0
	rapid.Check(t, func(t *rapid.T) {
		m, spec, feeds := randomStep(t)
		if n := spec.Mesh.Processes(); n < 2 || n > 4 {
			return
		}
		all := target{m.Fetches, m.Updates}
		var bits []string
		for range 2 {
			w, err := over(m.Graph, spec, []target{all})
			if err != nil {
				t.Fatal(err)
			}
			for step := range steps {
				feeds[m.Inputs[3]].F32()[0] = float32(1 + step)
				if _, err := w.step(all, feeds); err != nil {
					t.Fatal(err)
				}
			}
			bits = append(bits, string(w.bits(t)))
		}
		if runs++; bits[0] != bits[1] {
			t.Fatalf("%s: two runs of %d steps differ", spec, steps)
		}
	})
	if runs == 0 {
		t.Error("no mesh of two to four processes was drawn")
	}
}

// TestRunsOverProcesses: over two to four processes, what several have of a model's variables
// has the same bits on all of them after 100 steps, and on those of a second run; and after 30
// the weights are at most three times as far from those of the whole model as that one's own
// are, had they begun a unit in the last place beside.
func TestRunsOverProcesses(t *testing.T) {
	longtest.Skip(t)
	steps, middle := longtest.Count(4, 100), longtest.Count(3, 30)
	for name, list := range modelMeshes {
		if !longtest.Enabled() {
			list = list[:1]
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := built(t, name)
			targets, _ := workload(m)
			whole, beside := alone(m.Graph), alone(m.Graph)
			beside.nudge(t, m)
			whole.run(t, m, 0, middle)
			beside.run(t, m, 0, middle)
			want := whole.weights(t, m)
			control := off(want, beside.weights(t, m))
			for _, x := range list {
				s := parse(t, x[0], x[1])
				var bits []string
				for range 2 {
					w, err := over(m.Graph, s, targets)
					if err != nil {
						t.Fatal(err)
					}
					w.run(t, m, 0, middle)
					if got := off(want, w.weights(t, m)); !(got <= 3*control) {
						t.Errorf("%s: weights are off by %.1e after %d steps, a control run "+
							"by %.1e", s, got, middle, control)
					}
					w.run(t, m, middle, steps)
					bits = append(bits, string(w.bits(t)))
				}
				if bits[0] != bits[1] {
					t.Errorf("%s: two runs of %d steps differ", s, steps)
				}
			}
		})
	}
}

// run runs steps of all of a model's objectives.
func (w *world) run(t *testing.T, m *models.Model, from, to int) {
	t.Helper()
	targets, feeds := workload(m)
	for step := from; step < to; step++ {
		feeds[m.Seed].I32()[1], feeds[m.Step].F32()[0] = int32(step), float32(step+1)
		for _, x := range targets[:len(m.Objectives)] {
			if _, err := w.step(x, feeds); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// learnt are a model's variables but for the state of its optimizers.
func learnt(m *models.Model) []*graph.Node {
	is := train.Learnt(m.Graph)
	return slices.DeleteFunc(slices.Clone(m.Graph.Variables()), func(n *graph.Node) bool {
		return !is(n.Value(0))
	})
}

// nudge moves weights by a unit in the last place, up and down in turns.
func (w *world) nudge(t *testing.T, m *models.Model) {
	t.Helper()
	for i, n := range learnt(m) {
		x, err := w.get(n)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range x.F32() {
			x.F32()[k] = math.Nextafter32(v, float32(math.Inf(1-2*((i+k)%2))))
		}
		w.set(n, x)
	}
}

// weights are what a model has learnt.
func (w *world) weights(t *testing.T, m *models.Model) (list []tensor.View) {
	t.Helper()
	for _, n := range learnt(m) {
		x, err := w.get(n)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

// off is the distance of weights, relative to the norm of the first.
func off(a, b []tensor.View) float64 {
	diff, norm := 0.0, 0.0
	for i := range a {
		for k, x := range a[i].F32() {
			d := float64(x) - float64(b[i].F32()[k])
			diff, norm = diff+d*d, norm+float64(x)*float64(x)
		}
	}
	return math.Sqrt(diff / norm)
}

// TestGradientsOverProcesses: the gradients of all that a model learns, by every objective, as
// processes fetch them, are those of the whole: to the bit where nothing was summed up on the
// way, else within 1e-6 of their largest element.
func TestGradientsOverProcesses(t *testing.T) {
	longtest.Skip(t)
	for name, list := range modelMeshes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := built(t, name)
			targets, feeds := workload(m)
			var all target
			for _, o := range m.Objectives {
				all.fetches = append(all.fetches, gradients(m, o.Loss)...)
			}
			want, err := alone(m.Graph).step(all, feeds)
			if err != nil {
				t.Fatal(err)
			}
			s := parse(t, list[0][0], list[0][1])
			w, err := over(m.Graph, s, append(targets, all))
			if err != nil {
				t.Fatal(err)
			}
			got, err := w.step(all, feeds)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range all.fetches {
				limit := 1e-6
				if !w.summed(v) {
					limit = 0
				}
				for rank := range got {
					if d := astray(want[0][i].F32(), got[rank][i].F32()); !(d <= limit) {
						t.Errorf("%s: %s is off by %.1e at rank %d", s, v, d, rank)
					}
				}
			}
		})
	}
}

// TestNamesAfterUpdates: a graph may go on after its updates, with names like those of what these
// are composed of.
func TestNamesAfterUpdates(t *testing.T) {
	m := built(t, "moe sparse")
	targets, _ := workload(m)
	after := target{fetches: gradients(m, m.Objectives[0].Loss)}
	s := parse(t, "b:2x1,x:2x1", "embedding:1=b,*/qkvo:2=b,experts=x,batch=x")
	if _, err := over(m.Graph, s, append(targets, after)); err != nil {
		t.Error(err)
	}
}

// gradients are those of a loss by what a model learns.
func gradients(m *models.Model, loss graph.Value) []graph.Value {
	var of []graph.Value
	for _, n := range learnt(m) {
		of = append(of, n.Value(0))
	}
	return slices.DeleteFunc(autodiff.Grad(loss, of...), func(v graph.Value) bool {
		return !v.Valid()
	})
}

// summed reports whether a value of the first graph follows from one that is added up of parts.
func (w *world) summed(v graph.Value) bool {
	sums := map[string]bool{}
	for _, c := range w.ranks[0].res.Conversions {
		switch c.Kind {
		case mesh.Sum, mesh.Reduce, mesh.Scatter, mesh.ScatterSome:
			sums[c.Value] = true
		}
	}
	live := w.g.Ancestors([]graph.NodeID{v.Node.ID})
	return slices.ContainsFunc(w.g.Nodes(), func(n *graph.Node) bool {
		for i := range n.Out {
			if live[n.ID] && sums[n.Value(i).String()] {
				return true
			}
		}
		return false
	})
}

// astray is how far the worst of a gradient's elements is off, by the largest that there is.
func astray(want, got []float32) float64 {
	worst, largest := 0.0, 0.0
	for i, x := range want {
		d := math.Abs(float64(x) - float64(got[i]))
		if d != d {
			return d
		}
		worst, largest = max(worst, d), max(largest, math.Abs(float64(x)))
	}
	if worst == 0 {
		return 0
	}
	return worst / largest
}
