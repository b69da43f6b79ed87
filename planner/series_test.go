package planner

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// rising plans for so many budgets from the least to what vanilla needs, and demands that
// no plan is slower than one for less, or needs more than its budget.
func rising(t rapid.TB, g *graph.Graph, o Options, targets []Target, points int64) {
	t.Helper()
	least, most := span(t, g, o, targets)
	fastest := time.Duration(math.MaxInt64)
	var s Series
	for i := range points {
		o.DeviceBytes = least + (most-least)*i/max(points-1, 1)
		p, err := s.Plan(context.Background(), g, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		if p.Peak(space.Device) > o.DeviceBytes {
			t.Fatalf("%d bytes are taken of %d", p.Peak(space.Device), o.DeviceBytes)
		}
		took := total(p.Results)
		if took > fastest {
			t.Fatalf("%s takes %s in %d bytes, %s in less", o, took, o.DeviceBytes, fastest)
		}
		fastest = min(fastest, took)
	}
}

// TestSeriesAreMonotone: whatever the graph and the machine, a larger budget of a series
// is never slower.
func TestSeriesAreMonotone(t *testing.T) {
	draws(t, 1, 10, func(t *rapid.T) {
		random := randgraph.Random(func(n int) int {
			return rapid.IntRange(0, n-1).Draw(t, "pick")
		}, longtest.Count(10, 30))
		g, targets := random.Graph, []Target{training(random)}
		m, err := machine.Named(rapid.SampledFrom(machine.Builtin()).Draw(t, "machine"))
		if err != nil {
			t.Fatal(err)
		}
		rising(t, g, Options{Policy: Auto, Machine: m, Effort: 60}, targets,
			int64(longtest.Count(3, 32)))
	})
}

// TestModelsAreMonotone on a ladder of 32 budgets, in the long form.
func TestModelsAreMonotone(t *testing.T) {
	longtest.Skip(t)
	names := []string{"deepspeech"}
	if longtest.Enabled() {
		names = []string{"resnet", "transformer", "moe", "wgan", "deepspeech"}
	}
	for _, name := range names {
		g, targets := modelTargets(t, name, "s512")
		m, err := machine.Named(machine.H200)
		if err != nil {
			t.Fatal(err)
		}
		rising(t, g, Options{Policy: Auto, Machine: m, Model: name,
			Effort: longtest.Count(40, 0)}, targets, int64(longtest.Count(4, 32)))
	}
}

// TestSeriesOfOneKind: budgets that shrink and options that change are refused, with what
// is wrong in one line.
func TestSeriesOfOneKind(t *testing.T) {
	g, targets := modelTargets(t, "deepspeech", "s512")
	for _, c := range []struct {
		change func(o *Options)
		want   string
	}{
		{func(o *Options) { o.DeviceBytes /= 2 }, "budgets that grow"},
		{func(o *Options) { o.HostBytes = 1 << 50 }, "budgets that grow"},
		{func(o *Options) { o.Partition = 3 }, "one set of options"},
	} {
		o := Options{Policy: Vanilla, DeviceBytes: 1 << 40}
		if strings.Contains(c.want, "options") {
			o.Policy = Thesis
		}
		var s Series
		if _, err := s.Plan(t.Context(), g, o, targets...); err != nil {
			t.Fatal(err)
		}
		c.change(&o)
		_, err := s.Plan(t.Context(), g, o, targets...)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.want, err)
		}
	}
}
