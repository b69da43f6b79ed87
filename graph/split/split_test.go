package split_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/fuse"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/reference"
)

// step is a graph with what is wanted of it.
type step struct {
	g       *graph.Graph
	fetches []graph.Value
	updates []graph.NodeID
}

// rewritten says where values and nodes went.
type rewritten interface {
	Value(graph.Value) graph.Value
	Node(graph.NodeID) *graph.Node
}

// moved is what is wanted, in another graph.
func (s step) moved(g *graph.Graph, r rewritten) step {
	out := step{g: g}
	for _, v := range s.fetches {
		out.fetches = append(out.fetches, r.Value(v))
	}
	for _, id := range s.updates {
		out.updates = append(out.updates, r.Node(id).ID)
	}
	return out
}

// fatal is what a failed check needs.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// split splits a step and checks that the graph is well formed.
func (s step) split(t fatal, limit int64) step {
	t.Helper()
	r, err := split.Split(s.g, s.fetches, s.updates, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s.checked(t, r.Graph, r)
}

// checked is what is wanted in a new graph, which must be well formed.
func (s step) checked(t fatal, g *graph.Graph, r rewritten) step {
	t.Helper()
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	out := s.moved(g, r)
	for i, v := range out.fetches {
		if was := s.fetches[i]; !named(v, was) || v.Type().String() !=
			was.Type().String() || v.Node.Phase != was.Node.Phase || v.Node.Pos != was.Node.Pos {
			t.Fatalf("%s %s at %s is %s %s at %s", was, was.Type(), was.Node.Pos, v, v.Type(),
				v.Node.Pos)
		}
	}
	if !slices.Equal(leaves(g), leaves(s.g)) {
		t.Fatalf("leaves %v of %v", leaves(g), leaves(s.g))
	}
	return out
}

// named reports whether a value has the name of what it stands for; that of a result of
// several may be longer.
func named(v, was graph.Value) bool {
	return v.Node.Name == was.Node.Name ||
		len(was.Node.Out) > 1 && strings.HasPrefix(v.Node.Name, was.Node.Name+"/result")
}

func (s step) fused(t fatal) step {
	t.Helper()
	r, err := fuse.Fuse(s.g, s.fetches, s.updates)
	if err != nil {
		t.Fatal(err)
	}
	return s.moved(r.Graph, r)
}

func (s step) most() int64 { return slices.Max(split.Needs(s.g, s.fetches, s.updates)) }

// leaves are the names of the leaves.
func leaves(g *graph.Graph) []string {
	var list []string
	for _, n := range g.Nodes() {
		if n.Leaf() {
			list = append(list, n.Name)
		}
	}
	return list
}

func (s step) text(t fatal) string {
	t.Helper()
	var b strings.Builder
	if _, err := s.g.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// run is what two steps leave behind. ids bounds i32 inputs.
func (s step) run(t fatal, ids int32) []byte {
	t.Helper()
	out, err := reference.Trial(s.g, s.fetches, s.updates, ids)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRandomGraphs: a random graph that is split is well formed, gives the bits of the
// whole, and needs no more; split again, it stays.
func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
		s := step{m.Graph, m.Fetches, m.Updates}
		if rapid.Bool().Draw(t, "fused") {
			s = s.fused(t)
		}
		limit := s.most() * rapid.Int64Range(1, 10).Draw(t, "limit") / 10
		after := s.split(t, limit)
		if after.most() > s.most() {
			t.Fatalf("an operation needs %d bytes, and split %d", s.most(), after.most())
		}
		if !bytes.Equal(s.run(t, 1<<30), after.run(t, 1<<30)) {
			t.Fatal("the split graph gives other bits")
		}
		if again := after.split(t, max(limit, after.most())); again.text(t) != after.text(t) {
			t.Fatalf("split again it is\n%safter\n%s", again.text(t), after.text(t))
		}
	})
}

// TestFloors: what is foretold of a number of parts is what becomes of it.
func TestFloors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := head(t)
		survey, err := split.NewSurvey(s.g, s.fetches, s.updates, s.most()/3)
		if err != nil {
			t.Fatal(err)
		}
		parts := rapid.IntRange(0, 6).Draw(t, "parts")
		counts, needs, err := survey.Floors(parts)
		if err != nil {
			t.Fatal(err)
		}
		r, err := survey.Build(slices.Repeat([]int{parts}, len(counts)))
		if err != nil {
			t.Fatal(err)
		}
		have := s.moved(r.Graph, r).most()
		for i, n := range counts {
			if n > max(1, parts) || n > survey.Regions()[i].Most {
				t.Errorf("%d parts of %d", n, parts)
			}
			if needs[i] > have || needs[i] == 0 {
				t.Errorf("an operation needs %d bytes of %d", needs[i], have)
			}
		}
	})
}

// TestNeeds: a row for each rule.
func TestNeeds(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 8, 4)) // 128 bytes
	w := g.Variable("w", tensor.Of(graph.F32, 2, 4, 4), graph.Init{})
	y := ops.MatMul(x, ops.Unstack(w)[1])
	half := ops.Split(y, 2)
	z := ops.Mul(half[0], half[1])
	twice := ops.Add(z, z)
	over := ops.Tanh(twice)
	fetched := ops.Sigmoid(over)
	soft := ops.Softmax(fetched)
	ops.SGD(w, w, g.Constant("lr", tensor.FromF32([]float32{1})))
	sgd := graph.NodeID(g.Len() - 1)
	unread := ops.Neg(over)
	needs := split.Needs(g, []graph.Value{fetched, soft}, []graph.NodeID{sgd})
	for v, want := range map[graph.Value]int64{
		y:       128 + 64 + 128, // a part of a variable
		half[0]: 0,              // a view
		z:       128 + 64,       // two views of one value, too large to take over
		twice:   64 + 64,        // read twice
		over:    64,             // in place
		fetched: 64,             // so is this, after which only what nothing needs reads
		unread:  0,
		soft:    64 + 64, // its operand is fetched
	} {
		if got := needs[v.Node.ID]; got != want {
			t.Errorf("%s needs %d bytes, want %d", v, got, want)
		}
	}
	if got := needs[sgd]; got != 0 {
		t.Errorf("the update needs %d", got)
	}
}

// TestBadArguments: what does not belong to the graph is an error.
func TestBadArguments(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4))
	y := ops.Tanh(x)
	other := graph.New().Input("x", tensor.Of(graph.F32, 4))
	for want, attempt := range map[string]func() error{
		"fetch x is no value of the graph": func() error {
			_, err := split.Split(g, []graph.Value{other}, nil, 1)
			return err
		},
		"fetch tanh:7 is no value of the graph": func() error {
			_, err := split.Split(g, []graph.Value{{Node: y.Node, Index: 7}}, nil, 1)
			return err
		},
		"fetch none is no value": func() error {
			_, err := split.Accumulate(g, []graph.Value{{}}, nil)
			return err
		},
		"node 99 is no update": func() error {
			_, err := split.Split(g, nil, []graph.NodeID{99}, 1)
			return err
		},
		fmt.Sprintf("node %d is no update", y.Node.ID): func() error {
			_, err := split.Accumulate(g, nil, []graph.NodeID{y.Node.ID})
			return err
		},
		"the graph is nil": func() error {
			_, err := split.NewSurvey(nil, nil, nil, 1)
			return err
		},
		"2 numbers of parts for 0 regions": func() error {
			s, err := split.NewSurvey(g, []graph.Value{y}, nil, 1000)
			if err != nil {
				return err
			}
			_, err = s.Build([]int{1, 2})
			return err
		},
	} {
		if err := attempt(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

// speech builds dense layers over all frames, a recurrent one that takes them apart
// and joins them, and dense layers again, with gradients.
func speech(t *rapid.T) step {
	g := graph.New()
	frames, batch := rapid.IntRange(2, 9).Draw(t, "frames"), rapid.IntRange(1, 40).Draw(t, "batch")
	width := rapid.SampledFrom([]int{8, 130}).Draw(t, "width")
	rows := frames * batch
	x := g.Input("x", tensor.Of(graph.F32, rows, 6))
	labels := g.Input("labels", tensor.Of(graph.I32, rows))
	weights := func(name string, sizes ...int) graph.Value {
		return g.Variable(name, tensor.Of(graph.F32, sizes...), graph.Init{})
	}
	vars := []graph.Value{weights("w", 6, width), weights("b", width), weights("u", width, width),
		weights("v", width, 12)}
	dense := ops.ClippedRelu(ops.Add(ops.MatMul(x, vars[0]), vars[1]), 20)
	steps := ops.Split(dense, frames)
	if rapid.Bool().Draw(t, "stacked") {
		steps = ops.Unstack(ops.ReshapeSizes(dense, frames, batch, width))
	}
	h := steps[0]
	var out []graph.Value
	for _, s := range steps {
		h = ops.Tanh(ops.Add(ops.MatMul(h, vars[2]), s))
		out = append(out, h)
	}
	joined := ops.Concat(0, out...)
	if rapid.Bool().Draw(t, "reshaped") {
		joined = ops.ReshapeSizes(ops.Stack(out...), rows, width)
	}
	losses := ops.CrossEntropy(ops.MatMul(joined, vars[3]), labels, 0)
	s := step{g: g, fetches: []graph.Value{ops.Mean(losses)}}
	if rapid.Bool().Draw(t, "fetched step") {
		s.fetches = append(s.fetches, steps[len(steps)-1])
	}
	if rapid.Bool().Draw(t, "fetched frames") {
		s.fetches = append(s.fetches, joined)
	}
	lr := g.Constant("lr", tensor.FromF32([]float32{0.5}))
	for i, d := range autodiff.Grad(s.fetches[0], vars...) {
		s.updates = append(s.updates, ops.SGD(vars[i], d, lr).ID)
	}
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	return s
}

// TestSpeech: where parts are taken apart and joined in other places than they are
// cut, the bits are the same.
func TestSpeech(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := speech(t)
		if rapid.Bool().Draw(t, "fused") {
			s = s.fused(t)
		}
		limit := s.most() / rapid.Int64Range(1, 8).Draw(t, "limit")
		after := s.split(t, limit)
		if !bytes.Equal(s.run(t, 12), after.run(t, 12)) {
			t.Fatal("the split graph gives other bits")
		}
		if after.most() > s.most() {
			t.Fatalf("an operation needs %d bytes, and split %d", s.most(), after.most())
		}
	})
}
