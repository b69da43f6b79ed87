package laws_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/simulate"
)

func simulatedStep(t *testing.T, p *gomem.Planned, o gomem.Options, steps int,
	feeds gomem.Feeds) time.Duration {
	t.Helper()
	s, err := gomem.Open(p, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range steps {
		if _, err := s.Step(t.Context(), "train", feeds); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			t.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	return s.Clock()
}

// TestSimulatedDevice: on a simulated device a session takes, on its clock, what the
// simulation of its plans says; the device is what plans are made for.
func TestSimulatedDevice(t *testing.T) {
	m := randgraph.Synthetic(400)
	target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
	feeds := gomem.Feeds{m.Inputs[0]: gomem.NewTensor(m.Inputs[0].Type())}
	seen := map[time.Duration]string{}
	for _, profile := range machine.Builtin() {
		o := gomem.Options{Device: gomem.Sim + profile, Policy: planner.Vanilla, Model: "moe"}
		p, err := gomem.Plan(t.Context(), m.Graph, o, target)
		if err != nil {
			t.Fatal(err)
		}
		r := p.Results[0]
		want := simulate.Simulate(r.Plan, p.Graph, r.Model).Step
		if got := simulatedStep(t, p, o, 3, feeds); got != 3*want || want == 0 {
			t.Errorf("%s: three steps take %s on the device, one %s in the simulation", profile,
				got, want)
		}
		if other, ok := seen[want]; ok {
			t.Errorf("a step takes the same on %s as on %s", profile, other)
		}
		seen[want] = profile
	}
}

// TestSimulatedTF32: a session in TF32 takes, on the clock of a simulated device, what plans in
// TF32 say, which is less than in f32 where products are what takes time.
func TestSimulatedTF32(t *testing.T) {
	slow, err := machine.Named(machine.TitanX)
	if err != nil {
		t.Fatal(err)
	}
	slow.Device.FLOPs, slow.TF32FLOPs = 1e7, 1e8
	path := filepath.Join(t.TempDir(), "slow.json")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(slow.WriteJSON(file), file.Close()); err != nil {
		t.Fatal(err)
	}
	g := graph.New() // of a product, which alone is in TF32
	x := g.Input("x", tensor.Of(graph.F32, 64, 64))
	target := gomem.Target{Name: "train", Fetches: []graph.Value{ops.MatMul(x, x)}}
	feeds := gomem.Feeds{x: gomem.NewTensor(x.Type())}
	var steps []time.Duration
	for _, in := range []precision.Precision{precision.F32, precision.TF32} {
		o := gomem.Options{Device: gomem.Sim + path, Policy: planner.Vanilla, Precision: in}
		p, err := gomem.Plan(t.Context(), g, o, target)
		if err != nil {
			t.Fatal(err)
		}
		r := p.Results[0]
		want := simulate.Simulate(r.Plan, p.Graph, r.Model).Step
		if got := simulatedStep(t, p, o, 1, feeds); got != want {
			t.Errorf("%s: a step takes %s on the device, %s in the simulation", in, got, want)
		}
		steps = append(steps, want)
	}
	if steps[1] > steps[0]/2 {
		t.Errorf("steps take %v in f32 and TF32", steps)
	}
}

// TestSimulatedTrace: a simulated step leaves a timeline.
func TestSimulatedTrace(t *testing.T) {
	m := randgraph.Synthetic(100)
	target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
	o := gomem.Options{Device: "sim:titanx", Trace: &gomem.TraceRecorder{}}
	p, err := gomem.Plan(t.Context(), m.Graph, o, target)
	if err != nil {
		t.Fatal(err)
	}
	end := simulatedStep(t, p, o, 1,
		gomem.Feeds{m.Inputs[0]: gomem.NewTensor(m.Inputs[0].Type())})
	events := o.Trace.Events()
	last := time.Duration(0)
	for _, e := range events {
		last = max(last, e.End)
	}
	if len(events) != len(p.Results[0].Plan.Steps) || last != end {
		t.Errorf("%d events until %s, of %d steps until %s", len(events), last,
			len(p.Results[0].Plan.Steps), end)
	}
}

// TestSimulatedLimit: a plan that needs more than the device's budget does not open.
func TestSimulatedLimit(t *testing.T) {
	m := randgraph.Synthetic(100)
	o := gomem.Options{Device: "sim:titanx", Policy: planner.Vanilla}
	p, err := gomem.Plan(t.Context(), m.Graph, o,
		gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
	if err != nil {
		t.Fatal(err)
	}
	o.DeviceBytes = p.Peak(space.Device) - 1
	if _, err := gomem.Open(p, o); err == nil || !strings.Contains(err.Error(), "the limit is") {
		t.Errorf("error is %v", err)
	}
}

// TestSimulatedFile: a profile may be a file's; one that is none is an error that
// names it.
func TestSimulatedFile(t *testing.T) {
	dir := t.TempDir()
	p, err := machine.Named(machine.TitanX)
	if err != nil {
		t.Fatal(err)
	}
	p.Name = "mine"
	var b bytes.Buffer
	if err := p.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "mine.json")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if got, err := gomem.Simulated(gomem.Sim + path); err != nil || got.Name != "mine" {
		t.Errorf("%+v, %v", got, err)
	}
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte(`{"name": "bad"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for device, want := range map[string]string{
		"sim:" + bad: "host.flops_per_second", "sim:" + dir + "/none.json": "none.json",
		"sim:": "titanx", "sim:abacus": "gh200", "sim:" + dir: "titanx", "sims": "sim:PROFILE",
	} {
		if err := (gomem.Options{Device: device}).Validate(); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want one about %s", device, err, want)
		}
	}
	for _, device := range append(gomem.Devices(), "") {
		if err := (gomem.Options{Device: device}).Validate(); err != nil {
			t.Error(err)
		}
		if p, err := gomem.Simulated(device); err != nil || gomem.Computes(device) && p != nil {
			t.Errorf("%s is simulated by %v, %v", device, p, err)
		}
	}
}
