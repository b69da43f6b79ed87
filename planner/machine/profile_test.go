package machine_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

func builtin(t testing.TB, name string) *machine.Profile {
	t.Helper()
	p, err := machine.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBuiltin: the built-in profiles make sense and have the κ that is said of them.
func TestBuiltin(t *testing.T) {
	kappa := map[string]float64{machine.TitanX: 730, machine.TitanXThesis: 730,
		machine.H200: 3500, machine.GH200: 481.25, machine.RTX4090: 4588, machine.A100: 1083,
		machine.H100: 1858, machine.H200SXM: 1858}
	for _, name := range machine.Builtin() {
		p := builtin(t, name)
		m := p.For("", nil)
		if err := p.Check(); err != nil || m.Name() != name ||
			math.Abs(m.Kappa()-kappa[name]) > 1 {
			t.Errorf("%s: %v, named %s, κ %v", name, err, m.Name(), m.Kappa())
		}
	}
	if _, err := machine.Named("abacus"); err == nil {
		t.Error("an abacus is a profile")
	}
}

// TestPrecisions: a product that reads bfloat16 is at the rate of tensor cores, and one of a graph
// in TF32 at that; attention and experts' products in bfloat16 are at half of it; no other
// operation is, and what memory bounds is not, but for its bytes.
func TestPrecisions(t *testing.T) {
	g := graph.New()
	plain, half := g.Input("x", tensor.Of(graph.F32)), g.Input("h", tensor.Of(graph.BF16))
	p := builtin(t, machine.H100)
	by := func(name string, p *machine.Profile, x graph.Value, flops, bytes int64) float64 {
		n := g.Apply(named{worked{flops, bytes}, name}, x)
		return p.For("", nil).Time(n, space.Device).Seconds() - p.Device.Launch/1e9
	}
	time := func(p *machine.Profile, x graph.Value, flops, bytes int64) float64 {
		return by("matmul.bf16+add", p, x, flops, bytes)
	}
	const work = 1e12
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"f32", time(p, plain, work, 0), work / (66.9e12 * 0.7)},
		{"bfloat16", time(p, half, work, 0), work / (989.4e12 * 0.4)},
		{"TF32", time(p.InTF32(), plain, work, 0), work / (494.7e12 * 0.4)},
		{"bfloat16 beside TF32", time(p.InTF32(), half, work, 0), work / (989.4e12 * 0.4)},
		{"memory", time(p, half, 1, 1e10), 1e10 / (3350e9 * 2 / 3)},
		{"a machine without", time(builtin(t, machine.TitanX).InTF32(), half, work, 0),
			work / 4.38e12},
		{"attention", by("attention.bf16", p, half, work, 0), work / (989.4e12 * 0.2)},
		{"its gradient", by("attention-grad.bf16", p, half, work, 0), work / (989.4e12 * 0.2)},
		{"experts", by("grouped-outer.bf16", p, half, work, 0), work / (989.4e12 * 0.2)},
		{"an expert", by("expert-matmul.bf16", p, half, work, 0), work / (989.4e12 * 0.2)},
		{"attention where others are as fast", by("attention.bf16", builtin(t, machine.RTX4090),
			half, work, 0), work / (82.6e12 * 0.7)},
		{"attention without tensor cores", by("attention.bf16", builtin(t, machine.TitanX), half,
			work, 0), work / 4.38e12},
		{"a mask", by("attention-mask.bf16", p, half, work, 0), work / (66.9e12 * 0.7)},
		{"attention in TF32", by("attention", p.InTF32(), plain, work, 0), work / (66.9e12 * 0.7)},
		{"LSTM", by("lstm.bf16", p, half, work, 0), work / (66.9e12 * 0.7)},
		{"LSTM in TF32", by("lstm", p.InTF32(), plain, work, 0), work / (494.7e12 * 0.4)},
	} {
		if math.Abs(c.got-c.want) > 1e-8 {
			t.Errorf("%s: %v s, want %v", c.name, c.got, c.want)
		}
	}
}

// named is one of another name.
type named struct {
	worked
	name string
}

func (o named) Name() string { return o.name }

// worked is an operation of a known cost.
type worked struct{ flops, bytes int64 }

func (worked) Name() string                                 { return "worked" }
func (worked) Infer(in []graph.Type) ([]graph.Type, error)  { return in[:1], nil }
func (worked) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }
func (o worked) Cost(_, _ []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: o.flops, Bytes: o.bytes}
}

func TestTime(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32))
	node := func(flops, bytes int64) *graph.Node {
		return g.Apply(worked{flops, bytes}, x)
	}
	titan, h200 := builtin(t, machine.TitanX).For("moe", nil), builtin(t, machine.H200).For("", nil)
	for _, c := range []struct {
		m    machine.Model
		n    *graph.Node
		in   space.ID
		want time.Duration
	}{
		{titan, node(4.38e9, 1), space.Device, time.Millisecond + 5*time.Microsecond},
		{titan, node(1, 360e6), space.Device, time.Millisecond + 5*time.Microsecond},
		{titan, node(0, 0), space.Device, 5 * time.Microsecond},
		{titan, node(200e6, 0), space.Host, time.Millisecond},
		{titan, node(0, 40e6), space.Host, time.Millisecond},
		{h200, node(0, 6.4e9), space.Device, time.Millisecond + time.Microsecond},
		{h200, node(0, 200e6), space.Host, time.Millisecond},
		{titan, node(math.MaxInt64, 0), space.Device, 24 * time.Hour},
		{titan, x.Node, space.Device, 0},
	} {
		want := min(c.want, machine.Longest)
		if got := c.m.Time(c.n, c.in); got != want {
			t.Errorf("%s of %s takes %s, want %s", c.n.Name, c.m.Name(), got, want)
		}
	}
}

func TestCopy(t *testing.T) {
	p := builtin(t, machine.TitanX)
	p.In, p.Latency = 24e9, 2000
	const disk = space.Host + 1
	m := p.For("", nil)
	for _, c := range []struct {
		from, to space.ID
		bytes    int64
		want     time.Duration
	}{
		{space.Host, space.Device, 24e6, 1002 * time.Microsecond},
		{space.Device, space.Host, 12e6, 1002 * time.Microsecond},
		{space.Device, space.Device, 180e6, 1002 * time.Microsecond},
		{space.Host, space.Host, 20e6, 1002 * time.Microsecond},
		{disk, space.Host, 6e6, 1002 * time.Microsecond},
		{space.Host, disk, 4e6, 1002 * time.Microsecond},
		{space.Host, space.Device, 0, 0},
		{space.Host, space.Device, math.MaxInt64, machine.Longest},
	} {
		if got := m.Copy(c.from, c.to, c.bytes); got != c.want {
			t.Errorf("%d bytes from %s to %s take %s, want %s", c.bytes, c.from, c.to, got, c.want)
		}
	}
	half := builtin(t, machine.H200).For("", nil)
	if got := half.Copy(space.Host, space.Device, 110e6); got != time.Millisecond {
		t.Errorf("110 MB of 32-bit elements take %s at two bytes an element and 55 GB/s", got)
	}
}

// executed are the nodes that a step of an objective executes.
func executed(m *models.Model) []*graph.Node {
	o := m.Objectives[0]
	roots := []graph.NodeID{o.Loss.Node.ID}
	for _, u := range o.Updates {
		roots = append(roots, u.ID)
	}
	var nodes []*graph.Node
	for id, live := range m.Graph.Ancestors(roots) {
		if n := m.Graph.Node(graph.NodeID(id)); live && n.Executes() {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// TestAchieved: bound to a model whose rate is known, a step's operations together
// have that rate; and no other model is slowed down.
func TestAchieved(t *testing.T) {
	moe, err := models.NewMoEConfig("s64")
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.MoE(moe)
	if err != nil {
		t.Fatal(err)
	}
	nodes := executed(m)
	p := builtin(t, machine.TitanXThesis)
	total := func(m machine.Model) (flops, seconds float64) {
		for _, n := range nodes {
			flops += float64(n.Cost().FLOPs)
			seconds += m.Time(n, space.Device).Seconds()
		}
		return flops, seconds
	}
	slow := p.For("moe", nodes)
	flops, seconds := total(slow)
	if rate := flops / seconds; math.Abs(rate/0.77e12-1) > 1e-3 {
		t.Errorf("MoE achieves %.4g FLOP/s", rate)
	}
	plain, _ := machine.Named(machine.TitanX)
	_, fast := total(plain.For("moe", nodes))
	if got := slow.Kappa() * seconds / fast; math.Abs(got/730-1) > 1e-3 {
		t.Errorf("κ is %v at %v of the speed", slow.Kappa(), fast/seconds)
	}
	if _, other := total(p.For("resnet", nodes)); other != fast {
		t.Errorf("another model is slowed down from %v to %v s", fast, other)
	}
	if slow.Time(nodes[0], space.Host) != plain.For("", nil).Time(nodes[0], space.Host) {
		t.Error("the host is slowed down")
	}
	if empty := p.For("moe", nil); empty.Kappa() != 730 {
		t.Errorf("without operations κ is %v", empty.Kappa())
	}
}

// TestOwnRates: an operation with rates of its own is priced by them.
func TestOwnRates(t *testing.T) {
	p := builtin(t, machine.TitanX)
	p.Operations = map[string]machine.Rates{"worked": {FLOPs: 1e6, Bytes: 1e6, Launch: 0}}
	g := graph.New()
	n := g.Apply(worked{5e3, 1}, g.Input("x", tensor.Of(graph.F32)))
	if got := p.For("", nil).Time(n, space.Device); got != 5*time.Millisecond {
		t.Errorf("5,000 FLOPs at a million a second take %s", got)
	}
}

// TestAnswers: every node of any graph has a price, the same each time, within
// bounds, and of nothing for what is not executed.
func TestAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") },
			8).Graph
		for _, name := range machine.Builtin() {
			p, _ := machine.Named(name)
			m := p.For("moe", g.Nodes())
			for _, n := range g.Nodes() {
				for in := range space.ID(2) {
					d := m.Time(n, in)
					if d < 0 || d > machine.Longest || d != m.Time(n, in) ||
						!n.Executes() && d != 0 {
						t.Fatalf("%s: %s takes %s", name, n.Name, d)
					}
				}
			}
		}
	})
}
