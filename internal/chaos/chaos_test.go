package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fuse"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/chaos"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/reference"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner"
)

// schedules is how many orders an accepted mutant is run in.
const schedules = 20

// subject is a target whose plans are mutated.
type subject struct {
	name   string
	graph  *graph.Graph
	target planner.Target
	want   [][]byte // what a step leaves: fetches, then variables and constants
}

// newSubject runs a step in the plainest way to know what is right.
func newSubject(t *testing.T, name string, g *graph.Graph, target planner.Target) subject {
	t.Helper()
	roots := slices.Clone(target.Updates)
	for _, f := range target.Fetches {
		roots = append(roots, f.Node.ID)
	}
	live := g.Ancestors(roots)
	for _, n := range g.Nodes() {
		live[n.ID] = live[n.ID] || n.Leaf()
	}
	m, err := reference.New(g, live, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes() {
		if n.Leaf() {
			start(n, m.Value(n.Value(0)))
		}
	}
	if err := m.Step(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s := subject{name: name, graph: g, target: target}
	for _, f := range target.Fetches {
		s.want = append(s.want, m.Value(f).Data)
	}
	for _, n := range g.Nodes() {
		if n.Kind == graph.KindVariable || n.Kind == graph.KindConstant {
			s.want = append(s.want, m.Value(n.Value(0)).Data)
		}
	}
	return s
}

// start gives a leaf a value that depends on its name alone.
func start(n *graph.Node, v tensor.View) {
	h := fnv.New64a()
	h.Write([]byte(n.Name))
	rng := rand.New(rand.NewPCG(3, h.Sum64()))
	switch {
	case n.Kind == graph.KindConstant:
		copy(v.Data, n.Data.Data)
	case v.Type.DType == graph.F32 && v.Type.Rank() == 0:
		v.F32()[0] = 1 + rng.Float32() // a step is 1 or more
	case v.Type.DType == graph.F32:
		for i := range v.F32() {
			v.F32()[i] = 0.2 + 0.3*rng.Float32() // positive: second moments among them
		}
	case v.Type.DType == graph.I32:
		for i := range v.I32() {
			v.I32()[i] = int32(1 + rng.IntN(2))
		}
	default:
		for i := range v.Data {
			v.Data[i] = byte(rng.IntN(2))
		}
	}
}

// run runs a plan of the subject in an order, and says what is wrong: a panic or
// an error of a kernel, other bits, or another peak than predicted.
func (s subject) run(p *plan.Plan, seed uint64) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprint(r)
		}
	}()
	m := chaos.New(p, s.graph)
	for _, b := range slices.Concat(p.Variables, p.Feeds) {
		n := s.graph.Node(b.Node)
		start(n, tensor.View{Type: n.Out[0], Data: m.Slot(b.Slot)})
	}
	if err := m.Run(rand.New(rand.NewPCG(seed, 1))); err != nil {
		return err.Error()
	}
	var got [][]byte
	for _, f := range p.Fetches {
		got = append(got, m.Fetch(f))
	}
	for _, b := range p.Variables {
		got = append(got, m.Slot(b.Slot))
	}
	if !slices.EqualFunc(got, s.want, bytes.Equal) {
		return "other bits"
	}
	for i, used := range m.Used() {
		if used != p.Spaces[i].Bytes {
			return fmt.Sprintf("%d bytes used, %d predicted", used, p.Spaces[i].Bytes)
		}
	}
	return ""
}

// options are ways to plan a subject: every policy, with and without budgets.
func (s subject) options(t *testing.T, rng *rand.Rand) []planner.Options {
	t.Helper()
	list := []planner.Options{
		{Policy: planner.Vanilla},
		{Policy: planner.Vanilla, Streams: 2},
		{Partition: 1 + rng.IntN(3)},
		{Partition: 5, Lookahead: 1, Streams: 2},
		{Partition: 20},
		{Partition: 5, NoPlacement: true},
		{Partition: 3, Policy: planner.Auto},
		{Policy: planner.Grappler},
	}
	for _, o := range []planner.Options{{Partition: 3, Lookahead: 1}, {Partition: 2},
		{Partition: 3, Policy: planner.Auto}, {Policy: planner.Grappler}} {
		least, err := planner.MinDevice(context.Background(), s.graph, s.target, o)
		if err != nil {
			t.Fatal(err)
		}
		o.DeviceBytes = least + least/8*int64(rng.IntN(3))
		list = append(list, o)
	}
	return list
}

func (s subject) plan(t *testing.T, o planner.Options) *plan.Plan {
	t.Helper()
	r, err := planner.Compile(context.Background(), s.graph, s.target, o)
	if err != nil {
		t.Fatalf("%s %s: %v", s.name, o, err)
	}
	for seed := range uint64(schedules) {
		if wrong := s.run(r.Plan, seed); wrong != "" {
			t.Fatalf("%s %s: order %d of the plan as made: %s", s.name, o, seed, wrong)
		}
	}
	return r.Plan
}

func (s subject) verify(p *plan.Plan) error {
	return plan.Verify(p, s.graph, s.target.Fetches, s.target.Updates)
}

// tally counts the mutants of a kind.
type tally struct{ drawn, refused, harmless int }

// hunt mutates plans and keeps count.
type hunt struct {
	kinds []kind
	count map[string]*tally
	rng   *rand.Rand
	next  int // kind, in turn
}

func newHunt(seed uint64) *hunt {
	h := &hunt{kinds: kinds(), count: map[string]*tally{}, rng: rand.New(rand.NewPCG(seed, 2))}
	for _, k := range h.kinds {
		h.count[k.name] = &tally{}
	}
	h.count["two at once"] = &tally{}
	return h
}

// mutant is a mutant of a plan and the name of what was done: one kind after the
// other, every fourth time together with another, and every other time with a
// header that says the peak of what became of the slots.
func (h *hunt) mutant(p *plan.Plan, g *graph.Graph) (*plan.Plan, string) {
	for {
		k := h.kinds[h.next%len(h.kinds)]
		h.next++
		m := mutant{clone(p), g, h.rng}
		if !k.apply(m) {
			continue
		}
		name := k.name
		if h.rng.IntN(4) == 0 && len(m.Steps) > 0 && len(m.Slots) > 0 && len(m.Fetches) > 0 &&
			len(m.Streams) > 1 && len(m.Spaces) > 1 && len(m.Variables) > 0 {
			if h.kinds[h.rng.IntN(len(h.kinds))].apply(m) {
				name = "two at once"
			}
		}
		if h.rng.IntN(2) == 0 && k.name != "peak" {
			m.fix()
		}
		return m.Plan, name
	}
}

// chase draws so many mutants of a plan. The law: Verify refuses it, or it has
// the right bits and peaks in every order, and survives its text.
func (h *hunt) chase(t *testing.T, s subject, p *plan.Plan, mutants int) {
	t.Helper()
	for range mutants {
		q, name := h.mutant(p, s.graph)
		c := h.count[name]
		c.drawn++
		err := s.verify(q)
		if err != nil {
			c.refused++
			again := s.verify(q)
			if _, ok := err.(*plan.Error); !ok || again.Error() != err.Error() {
				t.Fatalf("%s: %T %v, then %v", name, err, err, again)
			}
			continue
		}
		c.harmless++
		for seed := range uint64(schedules) {
			if wrong := s.run(q, seed); wrong != "" {
				t.Errorf("%s, %s, %s: accepted, but in order %d: %s", s.name, p.Title, name, seed,
					wrong)
				break
			}
		}
		var text bytes.Buffer
		if _, err := q.WriteTo(&text); err != nil {
			t.Error(err)
		} else if back, err := plan.Parse(&text); err != nil || !cmp.Equal(q, back) {
			t.Errorf("%s, %s: reads back as another plan: %v\n%s", s.name, name, err,
				cmp.Diff(q, back))
		}
	}
}

// report prints the counts. Every kind must have been refused at least once,
// unless it is known to harm nobody.
func (h *hunt) report(t *testing.T) {
	t.Helper()
	var sum tally
	for _, k := range append(h.kinds, kind{name: "two at once"}) {
		c := h.count[k.name]
		t.Logf("%-24s drawn %6d  refused %6d  harmless %6d", k.name, c.drawn, c.refused,
			c.harmless)
		if c.drawn == 0 || (c.refused == 0) != k.harmless {
			t.Errorf("%s: %+v", k.name, *c)
		}
		sum.drawn, sum.refused = sum.drawn+c.drawn, sum.refused+c.refused
		sum.harmless += c.harmless
	}
	t.Logf("%d kinds: drawn %d, refused %d, harmless %d", len(h.kinds), sum.drawn, sum.refused,
		sum.harmless)
}

// TestMutants: of random training steps, planned in every way, no mutant is
// accepted that gives other bits or another peak in any order.
func TestMutants(t *testing.T) {
	h := newHunt(1)
	const each = 40
	for i := range longtest.Count(70, 1000) {
		m := randgraph.Random(h.rng.IntN, 12)
		switch i % 6 {
		case 0:
			m = randgraph.Exchanging(h.rng.IntN, 12)
		case 3:
			m = randgraph.Collective(h.rng.IntN, 12)
		}
		if m.Graph.Err() != nil {
			t.Fatal(m.Graph.Err())
		}
		s := newSubject(t, fmt.Sprintf("random %d", i), m.Graph,
			planner.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
		list := s.options(t, h.rng)
		p := s.plan(t, list[i%len(list)])
		if h.rng.IntN(3) > 0 {
			p = s.variant(t, p, h.rng)
		}
		h.chase(t, s, p, each)
	}
	h.report(t)
}

// model is a small configuration of a model.
type model struct {
	name  string
	build func() (*models.Model, error)
}

func small() []model {
	return []model{
		{"transformer", func() (*models.Model, error) {
			c, _ := models.NewTransformerConfig("s512")
			c.Pairs, c.Length, c.Layers, c.Width, c.Hidden, c.Vocab = 2, 4, 1, 8, 8, 16
			return models.Transformer(c)
		}},
		{"moe", func() (*models.Model, error) {
			c, _ := models.NewMoEConfig("s512")
			c.Pairs, c.Length, c.Layers, c.Width, c.HeadWidth, c.Vocab = 2, 4, 1, 8, 4, 16
			c.Experts, c.ExpertHidden = 2, 8
			return models.MoE(c)
		}},
		{"resnet", func() (*models.Model, error) {
			c, _ := models.NewResNetConfig("s512")
			c.Images, c.Classes, c.Width = 2, 5, 2
			c.Training.Workers = 2
			return models.ResNet(c)
		}},
		{"wgan", func() (*models.Model, error) {
			c, _ := models.NewWGANConfig("s512")
			c.Images, c.Pixels = 2, 16
			return models.WGAN(c)
		}},
		{"deepspeech", func() (*models.Model, error) {
			c, _ := models.NewDeepSpeechConfig("s512")
			c.Utterances, c.Width, c.Frames = 2, 4, 8
			return models.DeepSpeech(c)
		}},
	}
}

// TestForgottenWaitsShow: the orders are bad enough. Of the waits that Verify
// demands, most show in the bits if they are forgotten; the others only keep
// partitions apart.
func TestForgottenWaitsShow(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	needed, shown := 0, 0
	for i := range 6 {
		m := randgraph.Random(rng.IntN, 8)
		if i >= 4 {
			m = randgraph.Exchanging(rng.IntN, 8)
		}
		s := newSubject(t, "random", m.Graph,
			planner.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
		p := s.plan(t, planner.Options{Policy: planner.Vanilla, Streams: 2})
		for i := range p.Steps {
			for k := range p.Steps[i].Wait {
				q := clone(p)
				q.Steps[i].Wait = slices.Delete(slices.Clone(p.Steps[i].Wait), k, k+1)
				if s.verify(q) == nil {
					t.Errorf("%s waits for nothing", p.StepString(i))
				}
				needed++
				for seed := range uint64(schedules) {
					if s.run(q, seed) != "" {
						shown++
						break
					}
				}
			}
		}
	}
	t.Logf("of %d forgotten waits %d show", needed, shown)
	if shown < needed*9/10 {
		t.Errorf("of %d forgotten waits only %d show", needed, shown)
	}
}

// TestMutantsOfModels is the same as TestMutants for the objectives of all models, fused.
func TestMutantsOfModels(t *testing.T) {
	longtest.Skip(t)
	h := newHunt(5)
	for _, m := range small() {
		built, err := m.build()
		if err != nil {
			t.Fatal(err)
		}
		objectives := built.Objectives
		if !longtest.Enabled() {
			objectives = objectives[:1]
		}
		for _, o := range objectives {
			target := planner.Target{Name: o.Name, Fetches: []graph.Value{o.Loss}}
			for _, x := range o.Metrics {
				target.Fetches = append(target.Fetches, x.Value)
			}
			for _, n := range o.Updates {
				target.Updates = append(target.Updates, n.ID)
			}
			s := fused(t, m.name+" "+o.Name, built.Graph, target)
			list := s.options(t, h.rng)
			if !longtest.Enabled() {
				i := h.rng.IntN(len(list))
				list = list[i : i+1]
			}
			for _, o := range list {
				p := s.plan(t, o)
				h.chase(t, s, p, longtest.Count(6, 60))
				h.chase(t, s, s.variant(t, p, h.rng), longtest.Count(3, 60))
			}
		}
	}
	if longtest.Enabled() {
		h.report(t)
	}
}

// fused is a subject as it runs: with its operations fused.
func fused(t *testing.T, name string, g *graph.Graph, target planner.Target) subject {
	t.Helper()
	r, err := fuse.Fuse(g, target.Fetches, target.Updates)
	if err != nil {
		t.Fatal(err)
	}
	moved := planner.Target{Name: target.Name}
	for _, v := range target.Fetches {
		moved.Fetches = append(moved.Fetches, r.Value(v))
	}
	for _, id := range target.Updates {
		moved.Updates = append(moved.Updates, r.Node(id).ID)
	}
	return newSubject(t, name, r.Graph, moved)
}
