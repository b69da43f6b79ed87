package planner

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// modelTargets are the training steps and the evaluation of a model of a size.
func modelTargets(t *testing.T, name, size string) (*graph.Graph, []Target) {
	t.Helper()
	m, err := sized(name, size)
	if err != nil {
		t.Fatal(err)
	}
	return m.Graph, targetsOf(m)
}

// targetsOf are the training steps and the evaluation of a model.
func targetsOf(m *models.Model) []Target {
	var targets []Target
	for _, o := range m.Objectives {
		t := Target{Name: o.Name, Fetches: []graph.Value{o.Loss}}
		for _, n := range o.Updates {
			t.Updates = append(t.Updates, n.ID)
		}
		targets = append(targets, t)
	}
	return append(targets, Target{Name: "eval", Fetches: []graph.Value{m.EvalLoss}})
}

// sized builds a model of a size.
func sized(name, size string) (*models.Model, error) {
	switch name {
	case "resnet":
		c, err := models.NewResNetConfig(size)
		return built(c, err, models.ResNet)
	case "transformer":
		c, err := models.NewTransformerConfig(size)
		return built(c, err, models.Transformer)
	case "moe":
		c, err := models.NewMoEConfig(size)
		return built(c, err, models.MoE)
	case "wgan":
		c, err := models.NewWGANConfig(size)
		return built(c, err, models.WGAN)
	}
	c, err := models.NewDeepSpeechConfig(size)
	c.Unrolled = true
	return built(c, err, models.DeepSpeech)
}

func built[C any](c C, err error, build func(C) (*models.Model, error)) (*models.Model, error) {
	if err != nil {
		return nil, err
	}
	return build(c)
}

// stepTime is how long a step of every target takes, or 0 if they are refused.
func stepTime(t rapid.TB, g *graph.Graph, o Options, targets []Target) time.Duration {
	t.Helper()
	p, err := Plan(context.Background(), g, o, targets...)
	if _, short := errors.AsType[*ErrOutOfMemory](err); short {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return total(p.Results)
}

// others are the options of the policies whose plans auto's are held against.
func others() []Options {
	list := []Options{{Policy: Vanilla}, {Policy: Grappler}}
	for _, size := range []int{5, 20, 200} {
		for _, s := range partition.Strategies() {
			list = append(list, Options{Policy: Thesis, Strategy: s, Partition: size})
		}
	}
	return list
}

// TestAutoIsNeverSlower than any other policy, whatever its partition size and
// strategy, in the same budget, as long as that is too small for vanilla.
func TestAutoIsNeverSlower(t *testing.T) {
	longtest.Skip(t)
	names := []string{"resnet"}
	if longtest.Enabled() {
		names = []string{"resnet", "transformer", "moe", "wgan", "deepspeech"}
	}
	for _, name := range names {
		g, targets := modelTargets(t, name, "s512")
		for _, prices := range []string{machine.TitanX, machine.H200} {
			neverSlower(t, name, g, targets, prices)
		}
	}
}

func neverSlower(t *testing.T, name string, g *graph.Graph, targets []Target, prices string) {
	t.Helper()
	m, err := machine.Named(prices)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Policy: Auto, Machine: m, Model: name, Effort: longtest.Count(40, 0)}
	least, most := span(t, g, o, targets)
	for i, budget := range []int64{least + least/10, most / 2, most / 4, most * 3 / 4} {
		if i > 1 && !longtest.Enabled() {
			return
		}
		o.DeviceBytes = max(least, budget)
		auto := stepTime(t, g, o, targets)
		for _, other := range others() {
			other.Machine, other.Model, other.DeviceBytes = m, name, o.DeviceBytes
			if took := stepTime(t, g, other, targets); 0 < took && took < auto {
				t.Errorf("%s on %s in %d bytes: %s, but %s by %s", name, prices, o.DeviceBytes,
					auto, took, other)
			}
		}
	}
}

// span is what targets need at least of the device, and what vanilla needs.
func span(t rapid.TB, g *graph.Graph, o Options, targets []Target) (least, most int64) {
	t.Helper()
	ctx := context.Background()
	least, err := LeastOf(ctx, g, o, space.Device, targets...)
	if err != nil {
		t.Fatal(err)
	}
	o.Policy = Vanilla
	if most, err = LeastOf(ctx, g, o, space.Device, targets...); err != nil {
		t.Fatal(err)
	}
	return least, most
}

// TestCutGraphsAreTakenForTheirTime: where the operations of a cut graph take notably less time,
// its plan is taken although there is room for all of them.
func TestCutGraphsAreTakenForTheirTime(t *testing.T) {
	c, err := models.NewDeepSpeechConfig("base")
	c.Frames, c.Labels, c.Unrolled = 165, 40, true
	m, err := built(c, err, models.DeepSpeech)
	if err != nil {
		t.Fatal(err)
	}
	by, err := machine.Named(machine.H200)
	if err != nil {
		t.Fatal(err)
	}
	targets := []Target{{Name: "train", Fetches: []graph.Value{m.Objectives[0].Loss}}}
	for _, n := range m.Objectives[0].Updates {
		targets[0].Updates = append(targets[0].Updates, n.ID)
	}
	vanilla, err := Plan(t.Context(), m.Graph, Options{Policy: Vanilla, Machine: by}, targets...)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Policy: Auto, Machine: by, Effort: longtest.Count(100, 0),
		DeviceBytes: vanilla.Peak(space.Device) / 10 * 9}
	p, err := Plan(t.Context(), m.Graph, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	if cut := (variant{name: p.rewritten}).isCut(); !cut {
		t.Errorf("graph %q is taken", p.rewritten)
	}
	if have, most := total(p.Results), total(vanilla.Results); have > most/20*19 {
		t.Errorf("a step takes %v, vanilla's %v", have, most)
	}
}
