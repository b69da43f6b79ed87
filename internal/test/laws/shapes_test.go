package laws_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// shaped is a perceptron that is trained on batches of several sizes, with Adam.
type shaped struct {
	graph   *graph.Graph
	targets []gomem.Target
	inputs  map[int][2]graph.Value // by size
}

// newShaped builds it for some sizes of batches.
func newShaped(sizes ...int) shaped {
	g := graph.New()
	normal := graph.Init{Dist: graph.Normal, Scale: 0.3}
	w := []graph.Value{g.Variable("w1", graph.Of(graph.F32, 6, 40), normal),
		g.Variable("w2", graph.Of(graph.F32, 40, 3), normal)}
	var first, second []graph.Value
	for _, v := range w {
		first = append(first, g.State(v.Node.Name+"/first", v.Type(), graph.Init{}))
		second = append(second, g.State(v.Node.Name+"/second", v.Type(), graph.Init{}))
	}
	lr, step := ops.Full(g, graph.Of(graph.F32), 0.01), ops.Full(g, graph.Of(graph.F32), 3)
	s := shaped{graph: g, inputs: map[int][2]graph.Value{}}
	for _, n := range sizes {
		name := fmt.Sprint("batch", n)
		leave := g.Scope(name)
		x, y := g.Input("x", graph.Of(graph.F32, n, 6)), g.Input("y", graph.Of(graph.F32, n, 3))
		h := ops.Tanh(ops.MatMul(x, w[0]))
		loss := ops.Mean(ops.Square(ops.Sub(ops.MatMul(h, w[1]), y)))
		var updates []*graph.Node
		for i, d := range autodiff.Grad(loss, w...) {
			updates = append(updates, ops.Adam(w[i], first[i], second[i], d, lr, step, 0.9, 0.999,
				1e-8))
		}
		leave()
		s.targets = append(s.targets, gomem.Updating(name, updates, loss, h))
		s.inputs[n] = [2]graph.Value{x, y}
	}
	return s
}

// feeds are the batch of a step.
func (s shaped) feeds(size, step int) gomem.Feeds {
	rng := rand.New(rand.NewPCG(uint64(size), uint64(step)))
	f := gomem.Feeds{}
	for _, v := range s.inputs[size] {
		x := gomem.NewTensor(v.Type())
		for i := range x.F32() {
			x.F32()[i] = float32(rng.NormFloat64())
		}
		f[v] = x
	}
	return f
}

// TestOneSessionForAllShapes: a session for batches of several sizes gives the bits that
// sessions of one size each give that hand their variables on, and takes of every space
// what its largest plan needs, not the sum.
func TestOneSessionForAllShapes(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfNDistinct(rapid.IntRange(0, 70), 2, 4, rapid.ID[int]).Draw(t, "sizes")
		o := trial.RandomOptions(t)
		o.Seed = 5
		all := newShaped(sizes...)
		if rapid.Bool().Draw(t, "tight") {
			var err error
			if o.DeviceBytes, err = gomem.MinDevice(ctx, all.graph, o, all.targets...); err != nil {
				t.Fatal(err)
			}
		}
		one, err := gomem.Compile(ctx, all.graph, o, all.targets...)
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		singles := map[int]*gomem.Session{}
		models := map[int]shaped{}
		for _, n := range sizes {
			m := newShaped(n)
			s, err := gomem.Compile(ctx, m.graph, gomem.Options{Seed: 5, Policy: planner.Vanilla},
				m.targets...)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			singles[n], models[n] = s, m
		}
		var last *gomem.Session
		for step := range 5 {
			n := rapid.SampledFrom(sizes).Draw(t, "size")
			name := fmt.Sprint("batch", n)
			if s := singles[n]; last != nil && last != s {
				handOn(t, last, s)
			}
			last = singles[n]
			want, errWant := last.Step(ctx, name, models[n].feeds(n, step))
			got, err := one.Step(ctx, name, all.feeds(n, step))
			if err != nil || errWant != nil {
				t.Fatal(err, errWant)
			}
			for i := range want {
				if !bytes.Equal(got[i].Data, want[i].Data) {
					t.Fatalf("step %d of %d gives %v, want %v", step, n, got[i], want[i])
				}
			}
		}
		largest(t, one, all.targets)
	})
}

// handOn gives a session another's variables.
func handOn(t *rapid.T, from, to *gomem.Session) {
	for _, v := range from.Variables() {
		x, err := from.Get(v)
		i := slices.IndexFunc(to.Variables(), func(u graph.Value) bool {
			return u.Node.Name == v.Node.Name
		})
		if err == nil {
			err = to.Set(to.Variables()[i], x)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// largest demands that a session has taken of a space what one of its plans needs.
func largest(t *rapid.T, s *gomem.Session, targets []gomem.Target) {
	for id, u := range s.Usage() {
		var most, sum int64
		for _, target := range targets {
			bytes := s.Plan(target.Name).Spaces[space.ID(id)].Bytes
			most, sum = max(most, bytes), sum+bytes
		}
		if u.Taken != most || u.Actual > most {
			t.Fatalf("%s: %d bytes are taken, the largest plan needs %d, all %d", u.Space, u.Taken,
				most, sum)
		}
	}
}

// layered is a network of package nn, trained on batches of several sizes with one
// optimizer state.
func layered(sizes ...int) (*nn.Model, []gomem.Target) {
	m := nn.NewModel()
	var targets []gomem.Target
	for i, n := range sizes {
		name := fmt.Sprint("batch", n)
		c := m.Pass(nn.Pass{Name: name, Training: true})
		x, y := m.Input("x"+name, graph.F32, n, 5), m.Input("y"+name, graph.I32, n)
		h := nn.BatchNorm(c.In("norm"), nn.Linear(c.In("hidden"), x, 16))
		h = nn.Dropout(c.In("dropout"), nn.Relu(h), 0.25)
		o := nn.MinimizeOptions{Name: name, Clip: 0.5}
		if i > 0 {
			o.Shares = m.Objectives[0].Name
		}
		m.Minimize(nn.CrossEntropy(nn.Linear(c.In("out"), h, 3), y), nn.AdamW{}, o)
		if m.Err() != nil {
			return m, nil
		}
		targets = append(targets, gomem.Updating(name, m.Objectives[i].Updates,
			m.Objectives[i].Loss))
	}
	return m, targets
}

// TestLayersForAllShapes: objectives that share their optimizer's state, and running
// averages, are steps of one training, as plain loops over the graph compute them.
func TestLayersForAllShapes(t *testing.T) {
	ctx := context.Background()
	m, targets := layered(8, 5, 2)
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	if n := len(m.Graph.Variables()); n != 4+2+2+2*6 {
		t.Errorf("%d variables: parameters, averages and states are not shared", n)
	}
	s, err := gomem.Compile(ctx, m.Graph, gomem.Options{Policy: planner.Auto, Seed: 3}, targets...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	loop, err := loops(m.Graph, s, targets)
	if err != nil {
		t.Fatal(err)
	}
	for step, i := range []int{0, 0, 1, 0, 2, 1, 0} {
		in := gomem.Feeds{m.Seed: gomem.Pair(7, int32(step)), m.LearningRate: gomem.Scalar(0.1),
			m.Step: gomem.Scalar(float32(step + 1))}
		for _, v := range m.Data {
			in[v] = gomem.NewTensor(v.Type())
			for k := range in[v].Data {
				if in[v].Data[k] = byte(1 + step); v.Type().DType == graph.I32 {
					in[v].Data[k] = 0
				}
			}
		}
		want, errWant := loop(targets[i], in)
		got, err := s.Step(ctx, targets[i].Name, in)
		if err != nil || errWant != nil || !bytes.Equal(got[0].Data, want[0].Data) {
			t.Fatalf("step %d gives %v, want %v: %v, %v", step, got, want, err, errWant)
		}
	}
}

// TestSharesWhatThereIs: state of no objective, or of another optimizer, is not shared.
func TestSharesWhatThereIs(t *testing.T) {
	for want, build := range map[string]func(m *nn.Model, loss graph.Value){
		`shares the state of "none", which there is not`: func(m *nn.Model, loss graph.Value) {
			m.Minimize(loss, nn.Adam{}, nn.MinimizeOptions{Shares: "none"})
		},
		"w/first: variable[]: the name is taken": func(m *nn.Model, loss graph.Value) {
			m.Minimize(loss, nn.Adam{})
			m.Minimize(loss, nn.Adam{}, nn.MinimizeOptions{Name: "again"})
		},
		"": func(m *nn.Model, loss graph.Value) {
			m.Minimize(loss, nn.Adam{})
			m.Minimize(loss, nn.Adam{}, nn.MinimizeOptions{Name: "again", Shares: "train"})
			m.Minimize(loss, nn.Adam{}, nn.MinimizeOptions{Name: "more", Shares: "again"})
		},
	} {
		m := nn.NewModel()
		w := m.Training().Param("w", nn.Ones, 3)
		build(m, ops.Sum(ops.Square(w)))
		if err := m.Err(); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}
