package mesh_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/tensor"
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
