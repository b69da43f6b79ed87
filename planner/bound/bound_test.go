package bound

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
)

// box is an operation of any operands and results.
type box struct {
	name    string
	size    int // elements of each result
	results int
	cost    graph.Cost // FLOPs are nanoseconds
	inPlace bool
}

func (b box) Name() string { return b.name }

func (b box) Infer([]graph.Type) ([]graph.Type, error) {
	return slices.Repeat([]graph.Type{tensor.Of(graph.F32, b.size)}, b.results), nil
}

func (b box) Cost(_, _ []graph.Type) graph.Cost { return b.cost }
func (box) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

func (b box) InPlace(in, out []graph.Type) []int {
	var list []int
	for k := range in {
		if b.inPlace && len(out) > 0 && in[k].Bytes() == out[0].Bytes() {
			list = append(list, k)
		}
	}
	return list
}

// prices are a machine's, in nanoseconds a byte and a copy.
type prices struct{ in, out, latency int64 }

func (prices) Name() string    { return "test" }
func (prices) Shared() float64 { return 0 }
func (prices) Kappa() float64  { return 1 }

func (prices) Time(n *graph.Node, in space.ID) time.Duration {
	if in == space.Host {
		return time.Duration(n.Cost().Bytes)
	}
	return time.Duration(n.Cost().FLOPs)
}

func (p prices) Copy(from, _ space.ID, bytes int64) time.Duration {
	rate := p.out
	if from == space.Host {
		rate = p.in
	}
	return time.Duration(p.latency + rate*bytes)
}

// training draws a step of up to n boxes forward, which are read again on the way back,
// with variables that are updated from gradients, some of which are shared.
func training(t *rapid.T, n int) *program.Program {
	g := graph.New()
	number := func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
	size := func() int { return 16 * (1 + number(8)) }
	apply := func(in ...graph.Value) graph.Value {
		b := box{name: "box", size: size(), results: 1 + number(5)/5,
			cost:    graph.Cost{FLOPs: int64(number(3000)), Scratch: int64(number(4)/4) * 256},
			inPlace: number(1) == 0}
		return g.Apply(b, in...).Value(b.results - 1)
	}
	x := g.Input("x", tensor.Of(graph.F32, size()))
	values, vars := []graph.Value{x}, []graph.Value{}
	for i := range 1 + number(n-1) {
		in := []graph.Value{values[len(values)-1]}
		if number(2) == 0 {
			in = append(in, values[number(len(values)-1)])
		}
		switch k := number(3); {
		case k == 0:
			w := g.Variable(fmt.Sprint("w", i), tensor.Of(graph.F32, 2, size()), graph.Init{})
			vars = append(vars, w)
			in = append(in, ops.Unstack(w)[number(1)])
		case k == 1 && len(vars) > 0:
			in = append(in, vars[number(len(vars)-1)])
		}
		values = append(values, apply(in...))
	}
	d := values[len(values)-1]
	var updates []graph.NodeID
	for i := len(values) - 1; i > 0; i-- {
		d = apply(d, values[i], values[number(i)])
		if k := len(vars) - 1; k >= 0 && number(2) == 0 {
			updates = append(updates, update(t, g, vars[k], apply(d, vars[k])))
			vars = vars[:k]
		}
	}
	p := program.New(g, []graph.Value{d}, updates)
	return decided(t, p, rapid.SampledFrom([]string{"none", "host"}).Draw(t, "place"))
}

// update is that of a variable with a state, by way of an operation of its own or not.
func update(t *rapid.T, g *graph.Graph, w, dw graph.Value) graph.NodeID {
	cost := graph.Cost{FLOPs: int64(rapid.IntRange(0, 500).Draw(t, "update")),
		Bytes: int64(rapid.IntRange(0, 5000).Draw(t, "host"))}
	s := g.State(w.Node.Name+"/state", tensor.Of(graph.F32,
		16*rapid.IntRange(1, 20).Draw(t, "state")), graph.Init{})
	var n *graph.Node
	g.InPhase(graph.Update, func() {
		if rapid.Bool().Draw(t, "composed") {
			dw = g.Apply(box{name: "half", size: 16, results: 1, cost: cost}, dw).Value(0)
		}
		n = g.Update(box{name: "update", cost: cost}, []graph.Value{w, s}, dw)
	})
	return n.ID
}

// decided is the program with places and an order.
func decided(t interface{ Fatal(...any) }, p *program.Program, place string) *program.Program {
	passes := []program.Pass{program.DeadCode(), placement.Pass(true), order.Creation()}
	if place == "none" {
		passes = []program.Pass{program.DeadCode(), order.Creation()}
	}
	for _, ps := range passes {
		if err := ps.Run(p); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestBelowEveryPlan: no plan of many that are drawn at random, and carried out with
// clocks for every engine and books for every byte, is faster than the bound, and none
// runs in less than the least.
func TestBelowEveryPlan(t *testing.T) {
	var ratios []float64
	rapid.Check(t, func(t *rapid.T) {
		p := training(t, 7)
		m := prices{rapid.Int64Range(0, 12).Draw(t, "in"), rapid.Int64Range(0, 12).Draw(t, "out"),
			rapid.Int64Range(0, 50).Draw(t, "latency")}
		b := New(p, m)
		least := b.Least().Bytes
		most := order.Peak(p) + int64(p.Graph.Len())*64
		budget := least + rapid.Int64Range(-64, (most-least)/2).Draw(t, "budget")
		bound, best := b.Time(budget), time.Duration(math.MaxInt64)
		draw := rapid.Uint64().Draw(t, "plans")
		for i := range uint64(longtest.Count(60, 300)) {
			s := newSimulation(p, m, budget, draw+i)
			if took, ok := s.step(); ok {
				best = min(best, took)
			}
			if best < bound {
				t.Fatalf("budget %d: a step takes %v, the bound is %v\n%s", budget, best, bound,
					s.log.String())
			}
		}
		if best < math.MaxInt64 {
			ratios = append(ratios, float64(best)/float64(max(bound, 1)))
		}
		if b.Time(least-1) != Never || b.Time(least) == Never {
			t.Fatal("the least budget is not where plans begin")
		}
	})
	slices.SortFunc(ratios, cmp.Compare[float64])
	t.Logf("%d budgets; the best plan is %.2f times the bound in the middle, %.2f in nine of ten",
		len(ratios), ratios[len(ratios)/2], ratios[len(ratios)*9/10])
}

// TestMonotone: with more memory no bound is larger, and with all of it nothing need be
// absent and only what must be copied is.
func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New(training(t, 12), prices{2, 3, 1})
		if b.Overlapped().Bytes < b.Least().Bytes {
			t.Fatalf("overlapped %v, least %v", b.Overlapped(), b.Least())
		}
		last, absent := Never, int64(math.MaxInt64)
		for budget := b.Least().Bytes; budget < 40_000; budget += budget/8 + 1 {
			now, a := b.Time(budget), b.Absent(budget)
			if now > last || a > absent || now < time.Duration(b.compute) {
				t.Fatalf("budget %d: %v after %v, absent %d after %d", budget, now, last, a, absent)
			}
			last, absent = now, a
		}
		if peak := order.Peak(b.of.p); b.Absent(peak) > 0 {
			t.Fatalf("%d bytes are absent in %d, which hold all", b.Absent(peak), peak)
		}
	})
}

// TestPalindrome: weights that are read forward and backward are streamed twice, but for
// those that are kept across the turn.
func TestPalindrome(t *testing.T) {
	const layers, bytes = 20, 1024
	g := graph.New()
	h := g.Input("x", tensor.Of(graph.F32, 16))
	apply := func(in ...graph.Value) graph.Value {
		return g.Apply(box{name: "box", size: 16, results: 1}, in...).Value(0)
	}
	var weights []graph.Value
	for i := range layers {
		w := g.Variable(fmt.Sprint("w", i), tensor.Of(graph.F32, bytes/4), graph.Init{})
		weights = append(weights, w)
		h = apply(h, w)
	}
	h = apply(h) // the turn
	for _, w := range slices.Backward(weights) {
		h = apply(h, w)
	}
	p := decided(t, program.New(g, []graph.Value{h}, nil), "host")
	b := New(p, prices{in: 1})
	// At the turn there are 128 bytes of its operand and result, or 64 in place.
	for _, kept := range []int64{1, 5, 19} {
		budget := 128 + kept*bytes
		// Weights that have no update and are kept cost nothing at all.
		want := 64 + 2*layers*bytes - 2*kept*bytes
		if got := b.Time(budget); got != time.Duration(want) {
			t.Errorf("%d kept: %d ns, want %d", kept, got, want)
		}
	}
}

// TestFloors: what sets the least budget, by hand.
func TestFloors(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 16))
	w := g.Variable("w", tensor.Of(graph.F32, 4, 16), graph.Init{})
	parts := ops.Unstack(w)
	a := g.Apply(box{name: "a", size: 32, results: 1}, x, parts[0], parts[1], parts[0]).Value(0)
	b := g.Apply(box{name: "b", size: 32, results: 1, inPlace: true,
		cost: graph.Cost{Scratch: 100}}, ops.ReshapeSizes(a, 2, 16), parts[1], x).Value(0)
	c := g.Apply(box{name: "c", size: 16, results: 2}, b, w, w).Value(0)
	for _, place := range []string{"host", "none"} {
		p := decided(t, program.New(g, []graph.Value{c}, nil), place)
		got := New(p, prices{})
		// c reads 128 and the variable, 256, and makes 128; before it b has 128 for its
		// operand and its result, 128 of workspace, 64 of x and 64 of the variable.
		least, overlapped := int64(512), int64(384+256)
		if place == "none" {
			least, overlapped = 256+320, 256+320
		}
		if f := got.Least(); f.Bytes != least {
			t.Errorf("%s: least %d at %s, want %d", place, f.Bytes, f.Node.Name, least)
		}
		if f := got.Overlapped(); f.Bytes != overlapped {
			t.Errorf("%s: overlapped %d at %s, want %d", place, f.Bytes, f.Node.Name, overlapped)
		}
	}
}

// TestRandom: bounds of graphs with everything that graphs can have.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") },
			rapid.SampledFrom([]int{3, 12, 40}).Draw(t, "size"))
		p := decided(t, program.New(m.Graph, m.Fetches, m.Updates),
			rapid.SampledFrom([]string{"none", "host"}).Draw(t, "place"))
		b := New(p, prices{1, 1, 10})
		if least, peak := b.Least().Bytes, order.Peak(p); least > peak {
			t.Fatalf("least %d, but %d hold all", least, peak)
		}
		if b.Time(b.Least().Bytes) < b.Time(math.MaxInt64/2) {
			t.Fatal("the least budget is faster than all")
		}
	})
}

// TestKnapsack: what can be gained, against filling by the piece.
func TestKnapsack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item {
			return item{rapid.Int64Range(0, 5).Draw(t, "weight"),
				rapid.Int64Range(0, 9).Draw(t, "gain")}
		}), 0, 6).Draw(t, "items")
		capacity := rapid.Int64Range(0, 20).Draw(t, "capacity")
		k := newKnapsack(slices.Clone(items))
		best, all := int64(0), int64(0)
		for set := range 1 << len(items) {
			var sum item
			for i, it := range items {
				if set>>i&1 == 1 {
					sum.weight += it.weight
					sum.gain += it.gain
				}
			}
			all = max(all, sum.gain)
			if sum.weight <= capacity {
				best = max(best, sum.gain)
			}
		}
		got := k.most(capacity)
		if got < best || got > all || got > best+9 {
			t.Fatalf("%d, undivided %d, all %d", got, best, all)
		}
	})
	huge := newKnapsack([]item{{math.MaxInt64 / 2, math.MaxInt64 / 2}, {1, 1}})
	if got := huge.most(math.MaxInt64 / 4); got != math.MaxInt64/4 {
		t.Errorf("half of what is huge is %d", got)
	}
}

// TestNothing: a program that executes nothing on the device.
func TestNothing(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 16))
	w := g.Variable("w", tensor.Of(graph.F32, 16), graph.Init{})
	up := ops.Assign(w, x)
	b := New(decided(t, program.New(g, nil, []graph.NodeID{up.ID}), "host"), prices{1, 1, 1})
	if b.Least() != (Floor{}) || b.Overlapped() != (Floor{}) || b.Absent(0) != 0 ||
		b.Time(-1) != Never {
		t.Errorf("%v %v %d %v", b.Least(), b.Overlapped(), b.Absent(0), b.Time(-1))
	}
}

// TestModels: bounds of all models, one budget after the other.
func TestModels(t *testing.T) {
	for _, m := range testmodels(t) {
		p := decided(t, program.New(m.Graph, m.Fetches, m.Updates), "host")
		b := New(p, prices{in: 1, out: 2})
		least, peak := b.Least(), order.Peak(p)
		last := Never
		for k := range int64(8) {
			budget := least.Bytes + (peak-least.Bytes)*k/8
			now := b.Time(budget)
			if now > last || now < time.Duration(b.compute) || now == Never {
				t.Errorf("%s: %v within %d bytes after %v", m.Graph.Node(0).Name, now, budget, last)
			}
			last = now
		}
		if least.Node == nil || b.Overlapped().Bytes < least.Bytes || b.Absent(peak) > 0 {
			t.Errorf("least %v, overlapped %v, absent %d", least, b.Overlapped(), b.Absent(peak))
		}
	}
}

// testmodels are training steps of all models in small.
func testmodels(t *testing.T) []*randgraph.Model {
	transformer, _ := models.NewTransformerConfig("s64")
	moe, _ := models.NewMoEConfig("s64")
	resnet, _ := models.NewResNetConfig("s64")
	wgan, _ := models.NewWGANConfig("s64")
	speech, _ := models.NewDeepSpeechConfig("s64")
	var out []*randgraph.Model
	for _, build := range []func() (*models.Model, error){
		func() (*models.Model, error) { return models.Transformer(transformer) },
		func() (*models.Model, error) { return models.MoE(moe) },
		func() (*models.Model, error) { return models.ResNet(resnet) },
		func() (*models.Model, error) { return models.WGAN(wgan) },
		func() (*models.Model, error) { return models.DeepSpeech(speech) },
	} {
		m, err := build()
		if err != nil {
			t.Fatal(err)
		}
		r := &randgraph.Model{Graph: m.Graph, Fetches: []graph.Value{m.Objectives[0].Loss}}
		for _, n := range m.Objectives[0].Updates {
			r.Updates = append(r.Updates, n.ID)
		}
		out = append(out, r)
	}
	return out
}
