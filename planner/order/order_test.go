package order

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// passes run on a program, with its tables checked after each.
func run(t interface{ Fatal(...any) }, p *program.Program, passes ...program.Pass) {
	if _, err := program.Run(context.Background(), p, passes); err != nil {
		t.Fatal(err)
	}
}

// undecided is a program in which only the order is undecided. A place is "none" where
// nothing is placed.
func undecided(t interface{ Fatal(...any) }, m *randgraph.Model, place string) *program.Program {
	p := program.New(m.Graph, m.Fetches, m.Updates)
	run(t, p, program.DeadCode())
	if place != "none" {
		run(t, p, placement.Pass(place == "host"))
	}
	return p
}

var places = rapid.SampledFrom([]string{"none", "device", "host"})

// box is an operation of any operands and results, which may work in place of those of
// its operands that are as large as its first result.
type box struct {
	name    string
	sizes   [3]int // elements of its results
	results int
	scratch int64
	inPlace bool
}

func (b box) Name() string { return b.name }

func (b box) Infer([]graph.Type) ([]graph.Type, error) {
	var out []graph.Type
	for _, n := range b.sizes[:b.results] {
		out = append(out, tensor.Of(graph.F32, n))
	}
	return out, nil
}

func (b box) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{Scratch: b.scratch} }
func (box) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

func (b box) InPlace(in, out []graph.Type) []int {
	var list []int
	for k := range in {
		if b.inPlace && in[k].Bytes() == out[0].Bytes() {
			list = append(list, k)
		}
	}
	return list
}

// boxes draws a graph of up to n boxes and some views; what nobody reads is fetched.
func boxes(t *rapid.T, n int) *randgraph.Model {
	g := graph.New()
	number := func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
	size := func() int { return 1 + 15*number(4) }
	values := []graph.Value{g.Input("x", tensor.Of(graph.F32, size())),
		g.Input("y", tensor.Of(graph.F32, size())),
		g.Variable("w", tensor.Of(graph.F32, size()), graph.Init{})}
	read := map[graph.Value]bool{}
	for i := range 1 + number(n-1) {
		b := box{name: fmt.Sprint("op", i), sizes: [3]int{size(), size(), size()},
			results: 1 + number(5)/4, scratch: int64(number(3)/3) * 300, inPlace: number(1) == 0}
		var in []graph.Value
		for range 1 + number(2) {
			v := values[len(values)-1-number(min(len(values)-1, 4))]
			root, _ := v.Resolve()
			read[root] = true
			in = append(in, v)
		}
		node := g.Apply(b, in...)
		for k := range b.results {
			values = append(values, node.Value(k))
		}
		if number(4) == 0 {
			values = append(values, ops.ReshapeSizes(node.Value(0), 1, b.sizes[0]))
		}
	}
	m := &randgraph.Model{Graph: g}
	for _, v := range values[3:] {
		if root, _ := v.Resolve(); !read[root] {
			m.Fetches = append(m.Fetches, v)
		}
	}
	return m
}

// plainPeak works the load out from nothing at every position of an order: what has
// been made, or read, and is still to be read.
func plainPeak(p *program.Program) int64 {
	at := func(n *graph.Node) bool {
		return n.Executes() && (p.Place == nil || p.Place[n.ID] == space.Device)
	}
	up := func(b int64) int64 { return (b + 63) / 64 * 64 }
	type life struct{ first, last int }
	lives := map[graph.Value]life{}
	touch := func(v graph.Value, pos int) {
		l, ok := lives[v]
		if !ok {
			l.first = pos
		}
		l.last = pos
		lives[v] = l
	}
	var fixed int64
	for _, n := range p.Graph.Nodes() {
		if k := n.Kind; (k == graph.KindVariable || k == graph.KindConstant) &&
			(p.Place == nil || p.Place[n.ID] == space.Device) {
			fixed += up(n.Out[0].Bytes())
		}
	}
	for pos, id := range p.Order {
		n := p.Graph.Node(id)
		for i := range n.Out {
			if at(n) {
				touch(n.Value(i), pos)
			}
		}
		for _, v := range n.In {
			root, _ := v.Resolve()
			k := root.Node.Kind
			if at(n) && (k == graph.KindInput || k == graph.KindCompute) {
				touch(root, pos)
			}
		}
	}
	peak := fixed
	for pos, id := range p.Order {
		n := p.Graph.Node(id)
		if !at(n) {
			continue
		}
		load := fixed + up(n.Cost().Scratch)
		for v, l := range lives {
			if l.first <= pos && pos <= l.last {
				load += up(v.Type().Bytes())
			}
		}
		seen := map[string]int64{}
		for _, v := range n.In {
			root, off := v.Resolve()
			k := root.Node.Kind
			if p.Place != nil && p.Place[root.Node.ID] == space.Host &&
				(k == graph.KindVariable || k == graph.KindConstant) {
				seen[fmt.Sprint(root, off, v.Type().Bytes())] = up(v.Type().Bytes())
			}
		}
		for _, b := range seen {
			load += b
		}
		if op, ok := n.Op.(graph.InPlacer); ok {
			for _, k := range op.InPlace(n.InTypes(), n.Out) {
				root, _ := n.In[k].Resolve()
				times := 0
				for _, v := range n.In {
					if other, _ := v.Resolve(); other == root {
						times++
					}
				}
				l, ok := lives[root]
				if ok && l.last == pos && times == 1 &&
					root.Type().Bytes() == n.Out[0].Bytes() {
					load -= up(n.Out[0].Bytes())
					break
				}
			}
		}
		peak = max(peak, load)
	}
	return peak
}

func checkOrder(t interface{ Fatalf(string, ...any) }, p *program.Program) {
	for _, n := range p.Graph.Nodes() {
		if runs := p.Live[n.ID] && !n.Leaf(); runs != (p.Pos(n.ID) >= 0) ||
			runs != (p.Part[n.ID] == 0) || !runs && p.Part[n.ID] != -1 {
			t.Fatalf("%s: position %d, partition %d", n.Name, p.Pos(n.ID), p.Part[n.ID])
		}
	}
}

// TestOrders: every order has every live operation once, after those that it needs
// (which running the pass proves), it is the same every time, and its peak is what one
// gets by adding up what lives at every position.
func TestOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") },
			rapid.SampledFrom([]int{3, 12, 40}).Draw(t, "size"))
		p := undecided(t, m, places.Draw(t, "place"))
		checkPortfolio(t, p)
	})
}

func checkPortfolio(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, p *program.Program) (peaks []int64) {
	for _, ps := range Portfolio() {
		run(t, p, ps)
		checkOrder(t, p)
		order, peak := slices.Clone(p.Order), Peak(p)
		if want := plainPeak(p); peak != want {
			t.Fatalf("%s: peak %d, want %d", ps.Name, peak, want)
		}
		if run(t, p, ps); !slices.Equal(p.Order, order) {
			t.Fatalf("%s: another order the second time", ps.Name)
		}
		peaks = append(peaks, peak)
	}
	if last := len(peaks) - 1; peaks[last] > slices.Min(peaks) {
		t.Fatalf("the beam's peak is above another: %v", peaks)
	}
	return peaks
}

// TestBoxes: so have those of graphs of unequal sizes and several results.
func TestBoxes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkPortfolio(t, undecided(t, boxes(t, 30), places.Draw(t, "place")))
	})
}

// optimum is the least peak of all orders, by trying them.
func optimum(p *program.Program) int64 {
	a := NewAccount(p)
	succ := p.Successors()
	pending := succ.InDegrees()
	best := int64(1 << 62)
	var order []graph.NodeID
	var try func()
	try = func() {
		done := true
		for _, n := range p.Graph.Nodes() {
			if n.Leaf() || !p.Live[n.ID] || pending[n.ID] != 0 {
				continue
			}
			done = false
			order = append(order, n.ID)
			pending[n.ID] = -1
			for _, s := range succ.Of(n.ID) {
				pending[s]--
			}
			try()
			for _, s := range succ.Of(n.ID) {
				pending[s]++
			}
			pending[n.ID] = 0
			order = order[:len(order)-1]
		}
		if done {
			best = min(best, a.Peak(order))
		}
	}
	try()
	return best
}

// TestOptimum: where a stretch is the whole graph and the beam is wide, no order has a
// lower peak. The others come near.
func TestOptimum(t *testing.T) {
	var cases, worst, sum [4]float64
	rapid.Check(t, func(t *rapid.T) {
		p := undecided(t, boxes(t, longtest.Count(7, 8)), places.Draw(t, "place"))
		want := optimum(p)
		for i, ps := range append(Portfolio()[:3], Beam(1<<20)) {
			run(t, p, ps)
			got := float64(Peak(p)) / float64(max(want, 1))
			if got < 1 || got > 1 && i == 3 {
				t.Fatalf("%s: peak %d, least %d", ps.Name, Peak(p), want)
			}
			cases[i]++
			worst[i] = max(worst[i], got)
			sum[i] += got
		}
	})
	for i, ps := range Portfolio() {
		mean := sum[i] / cases[i]
		t.Logf("%s: mean %.4f, worst %.3f", ps.Name, mean, worst[i])
		if mean > 1.1 {
			t.Errorf("%s: %.3f of the optimum in the mean", ps.Name, mean)
		}
	}
}

// TestLeastPeakIsGreedy: least-peak-first takes at every position what the rule says,
// found by looking at all that is ready.
func TestLeastPeakIsGreedy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := undecided(t, boxes(t, 40), places.Draw(t, "place"))
		run(t, p, LeastPeak())
		a := NewAccount(p)
		s := a.begin()
		for v, input := range a.Input {
			if input { // the rule takes inputs to be there
				s.live += a.Bytes[v]
			}
		}
		s.Input = make([]bool, len(a.Input))
		s.peak = s.live
		pending := p.Successors().InDegrees()
		for _, id := range p.Order {
			if need, leaves := s.need(id); a.Runs[id] {
				for _, n := range p.Graph.Nodes() {
					if pending[n.ID] != 0 || !p.Live[n.ID] || n.Leaf() || p.Pos(n.ID) < p.Pos(id) {
						continue
					}
					other, after := s.need(n.ID)
					x, y := max(s.peak, s.live+need), max(s.peak, s.live+other)
					if !a.Runs[n.ID] || y < x || y == x && (after < leaves ||
						after == leaves && n.ID < id) {
						t.Fatalf("%s before %s", p.Graph.Node(id).Name, n.Name)
					}
				}
			}
			s.run(id)
			for _, next := range p.Successors().Of(id) {
				pending[next]--
			}
		}
	})
}

// TestUpdatesAtOnce: in creation order an update follows the last that it needs, even
// if that is created after it, and what leads to it does not wait for its own turn.
func TestUpdatesAtOnce(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4))
	w := g.Variable("w", tensor.Of(graph.F32, 4), graph.Init{})
	dw := ops.Relu(x)
	later := ops.Tanh(dw)
	var half graph.Value
	var up *graph.Node
	g.InPhase(graph.Update, func() {
		half = ops.Scale(dw, 0.5)
		up = ops.Assign(w, half)
	})
	reads := ops.Add(later, w)
	m := &randgraph.Model{Graph: g, Fetches: []graph.Value{ops.Sum(reads)},
		Updates: []graph.NodeID{up.ID}}
	p := undecided(t, m, "none")
	run(t, p, Creation())
	var names []string
	for _, id := range p.Order {
		names = append(names, g.Node(id).Name)
	}
	want := []string{dw.String(), half.String(), later.String(), reads.String(), up.Name, "sum"}
	if !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// step is a step of a model in small.
func step(name string) (*randgraph.Model, error) {
	var m *models.Model
	var err error
	switch name {
	case "transformer":
		c, _ := models.NewTransformerConfig("s64")
		m, err = models.Transformer(c)
	case "moe":
		c, _ := models.NewMoEConfig("s64")
		m, err = models.MoE(c)
	case "resnet":
		c, _ := models.NewResNetConfig("s64")
		m, err = models.ResNet(c)
	case "wgan":
		c, _ := models.NewWGANConfig("s64")
		m, err = models.WGAN(c)
	case "deepspeech":
		c, _ := models.NewDeepSpeechConfig("s64")
		c.Unrolled = true
		m, err = models.DeepSpeech(c)
	}
	if err != nil {
		return nil, err
	}
	o := m.Objectives[0]
	r := &randgraph.Model{Graph: m.Graph, Fetches: []graph.Value{o.Loss}}
	for _, n := range o.Updates {
		r.Updates = append(r.Updates, n.ID)
	}
	return r, nil
}

// TestModels: orders of all models, and how their peaks compare.
func TestModels(t *testing.T) {
	for _, name := range []string{"transformer", "moe", "resnet", "wgan", "deepspeech"} {
		m, err := step(name)
		if err != nil {
			t.Fatal(err)
		}
		p := undecided(t, m, "host")
		var peaks []int64
		for _, ps := range Portfolio() {
			run(t, p, ps)
			checkOrder(t, p)
			peaks = append(peaks, Peak(p))
		}
		t.Logf("%s: %d operations, peaks %d", name, len(p.Order), peaks)
		if peaks[3] > slices.Min(peaks) {
			t.Errorf("%s: the beam's peak is above another: %v", name, peaks)
		}
	}
}

// TestLarge: orders of many operations, of which many are ready at once.
func TestLarge(t *testing.T) {
	n := longtest.Count(6_000, 70_000)
	models := map[string]*randgraph.Model{"synthetic": randgraph.Synthetic(n)}
	for _, s := range randgraph.Shapes() {
		models[s.Name] = s.Build(n / 10)
	}
	for name, m := range models {
		p := undecided(t, m, "host")
		for _, ps := range Portfolio() {
			timings, err := program.Run(context.Background(), p, []program.Pass{ps})
			if err != nil {
				t.Fatal(err)
			}
			if name == "synthetic" {
				t.Logf("%s: %d operations, %s took %v", name, len(p.Order), ps.Name,
					timings[0].Took)
			}
		}
	}
}

// TestNothing: a program of one operation, and one that only reads a view.
func TestNothing(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 64))
	y := ops.ReshapeSizes(ops.Relu(x), 8, 8)
	p := undecided(t, &randgraph.Model{Graph: g, Fetches: []graph.Value{y}}, "none")
	for _, peak := range checkPortfolio(t, p) {
		if peak != 256 { // in place of the input
			t.Errorf("peak %d, want 256", peak)
		}
	}
}
