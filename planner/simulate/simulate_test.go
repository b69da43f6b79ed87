package simulate_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/executor"
	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/sim"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/simulate"
)

// odd are prices without any sense in them, to the nanosecond.
type odd uint64

func (odd) Name() string    { return "odd" }
func (odd) Shared() float64 { return 0 }
func (odd) Kappa() float64  { return 1 }

func (o odd) Time(n *graph.Node, in space.ID) time.Duration {
	if !n.Executes() {
		return 0
	}
	return o.Copy(in, in, int64(n.ID))
}

func (o odd) Copy(from, to space.ID, x int64) time.Duration {
	h := uint64(o) ^ uint64(x+1)*0x9e3779b97f4a7c15 ^ uint64(from)<<40 ^ uint64(to)<<50
	return time.Duration(h >> 17 % 1000)
}

// open is a simulated device with a model's prices.
func open(g *graph.Graph, m machine.Model, listen trace.Listener) *sim.Device {
	nodes := map[string]*graph.Node{}
	for _, n := range g.Nodes() {
		nodes[n.Name] = n
	}
	return sim.Open(sim.Options{Copy: m.Copy, Listener: listen,
		Launch: func(l device.Launch) time.Duration {
			return m.Time(nodes[l.Name], l.Engine.Reads())
		}})
}

// agree demands that the simulated device and Simulate say the same of every step, in
// the first run and, later on the clock, in the second.
func agree(t require, p *plan.Plan, g *graph.Graph, m machine.Model) {
	t.Helper()
	var events trace.Recorder
	d := open(g, m, events.Listen)
	var memory []device.Memory
	for id, s := range p.Spaces {
		mem, err := d.Alloc(space.ID(id), s.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		memory = append(memory, mem)
	}
	e, err := executor.New(d, executor.NewStreams(d), memory, p, g)
	if err != nil {
		t.Fatal(err)
	}
	want := simulate.Simulate(p, g, m)
	for round := range 2 {
		begin := d.Now()
		e.Begin()
		for _, b := range p.Feeds {
			if err := e.Write(b, make([]byte, p.Slots[b.Slot].Bytes)); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := d.Now() - begin; got != want.Step {
			t.Fatalf("the device takes %s for the step, the simulation %s", got, want.Step)
		}
		for _, ev := range events.Events()[round*len(p.Steps):] {
			start, end := ev.Start-begin, ev.End-begin
			if start != want.Start[ev.Step] || end != want.End[ev.Step] {
				t.Fatalf("step %s runs from %s to %s on the device, from %s to %s in the "+
					"simulation", p.StepString(ev.Step), start, end, want.Start[ev.Step],
					want.End[ev.Step])
			}
		}
	}
	if n := len(events.Events()); n != 2*len(p.Steps) {
		t.Fatalf("%d events of two runs of %d steps", n, len(p.Steps))
	}
}

// require is what tests of package testing and of rapid have in common.
type require interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// sums demands what holds of every timeline: a step begins when its stream and those
// it waits for are done, and streams are busy for what their steps take.
func sums(t require, p *plan.Plan, g *graph.Graph, m machine.Model) {
	t.Helper()
	got := simulate.Simulate(p, g, m)
	busy := make([]time.Duration, len(p.Streams))
	before := make([]int, len(p.Streams))
	for i := range before {
		before[i] = -1
	}
	for i, s := range p.Steps {
		ready := append([]int{before[s.Stream]}, s.Wait...)
		var latest time.Duration
		for _, w := range ready {
			if w >= 0 {
				latest = max(latest, got.End[w])
			}
		}
		if got.Start[i] != latest || got.End[i] < latest || got.End[i] > got.Step {
			t.Fatalf("step %d runs from %s to %s of %s, ready at %s", i, got.Start[i], got.End[i],
				got.Step, latest)
		}
		busy[s.Stream] += got.End[i] - got.Start[i]
		before[s.Stream] = i
	}
	for i, b := range busy {
		if b != got.Busy[i] || b > got.Step {
			t.Fatalf("stream %d is busy for %s of %s, not %s", i, got.Busy[i], got.Step, b)
		}
	}
}

// TestRandomPlans: the device and the simulation agree on plans of random graphs,
// under several policies, with prices that make no sense.
func TestRandomPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SampledFrom([]func(func(int) int, int) *randgraph.Model{randgraph.Random,
			randgraph.Exchanging, randgraph.Collective, randgraph.WideExchanging}).Draw(t, "kind")
		m := draw(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 8)
		o := planner.Options{
			Policy:    rapid.SampledFrom(planner.Policies()).Draw(t, "policy"),
			Partition: rapid.IntRange(1, 6).Draw(t, "partition"),
			Streams:   rapid.IntRange(1, 3).Draw(t, "streams"),
			Gathers:   rapid.Bool().Draw(t, "gathers"),
		}
		r, err := planner.Compile(context.Background(), m.Graph,
			planner.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}, o)
		if err != nil {
			t.Skip(err)
		}
		prices := odd(rapid.Uint64().Draw(t, "prices"))
		agree(t, r.Plan, m.Graph, prices)
		sums(t, r.Plan, m.Graph, prices)
	})
}

// five are the models at a small size.
func five() map[string]func() (*models.Model, error) {
	const size = "s512"
	return map[string]func() (*models.Model, error){
		"transformer": func() (*models.Model, error) {
			c, err := models.NewTransformerConfig(size)
			return build(c, err, models.Transformer)
		},
		"moe": func() (*models.Model, error) {
			c, err := models.NewMoEConfig(size)
			return build(c, err, models.MoE)
		},
		"resnet": func() (*models.Model, error) {
			c, err := models.NewResNetConfig(size)
			return build(c, err, models.ResNet)
		},
		"wgan": func() (*models.Model, error) {
			c, err := models.NewWGANConfig(size)
			return build(c, err, models.WGAN)
		},
		"deepspeech": func() (*models.Model, error) {
			c, err := models.NewDeepSpeechConfig(size)
			return build(c, err, models.DeepSpeech)
		},
	}
}

func build[C any](c C, err error, model func(C) (*models.Model, error)) (*models.Model, error) {
	if err != nil {
		return nil, err
	}
	return model(c)
}

// TestModels: the device and the simulation agree on the five models, and a plan that
// copies nothing takes what its operations take, beside feeds and fetches.
func TestModels(t *testing.T) {
	for name, model := range five() {
		t.Run(name, func(t *testing.T) {
			m, err := model()
			if err != nil {
				t.Fatal(err)
			}
			target := planner.Target{Name: "train", Fetches: []graph.Value{m.Objectives[0].Loss}}
			for _, n := range m.Objectives[0].Updates {
				target.Updates = append(target.Updates, n.ID)
			}
			for _, policy := range []planner.Policy{planner.Vanilla, planner.Thesis} {
				r, err := planner.Compile(t.Context(), m.Graph, target,
					planner.Options{Policy: policy})
				if err != nil {
					t.Fatal(err)
				}
				for _, profile := range machine.Builtin() {
					p, err := machine.Named(profile)
					if err != nil {
						t.Fatal(err)
					}
					prices := p.For(name, m.Graph.Nodes())
					agree(t, r.Plan, m.Graph, prices)
					sums(t, r.Plan, m.Graph, prices)
					checkVanilla(t, policy, r.Plan, simulate.Simulate(r.Plan, m.Graph, prices))
				}
			}
		})
	}
}

func checkVanilla(t *testing.T, policy planner.Policy, p *plan.Plan, got simulate.Timeline) {
	t.Helper()
	var computing, feeds time.Duration
	for i, s := range p.Streams {
		if s.Engine.Copies() {
			feeds += got.Busy[i]
		} else {
			computing += got.Busy[i]
		}
	}
	if policy == planner.Vanilla && got.Step > computing+feeds {
		t.Errorf("vanilla takes %s, its operations %s, its copies %s", got.Step, computing, feeds)
	}
}
