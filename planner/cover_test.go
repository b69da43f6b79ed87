package planner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/candidates"
	"github.com/gomem/gomem/planner/lower"
)

// checkGranted makes a plan, and demands that budgets of what it takes are not refused, nor
// larger ones of either memory.
func checkGranted(t rapid.TB, g *graph.Graph, o Options, targets []Target) {
	p, err := Plan(context.Background(), g, o, targets...)
	if _, short := errors.AsType[*ErrOutOfMemory](err); short {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	took := o
	took.DeviceBytes, took.HostBytes = p.Peak(space.Device), p.Peak(space.Host)
	if took.DiskBytes > 0 {
		took.DiskBytes = max(1, p.Peak(space.Disk))
	}
	for _, more := range []lower.Need{{}, {took.DeviceBytes / 7}, {0, took.HostBytes / 5}} {
		next := took
		next.DeviceBytes += more[space.Device]
		next.HostBytes += more[space.Host]
		if err := Fits(context.Background(), g, next, targets...); err != nil {
			t.Errorf("%s: within %d of the device and %d of the host (%d of a disk) there is %s, "+
				"which takes %d, %d and %d; within %d, %d and %d: %v", o, o.DeviceBytes,
				o.HostBytes, o.DiskBytes, p.Results[0].Plan.Title, took.DeviceBytes,
				took.HostBytes, p.Peak(space.Disk), next.DeviceBytes, next.HostBytes,
				next.DiskBytes, err)
		}
	}
}

// TestWhatPlansTakeIsGranted: a plan of any budgets, of random graphs under every policy, with
// a disk or without, is one of the budgets that it takes.
func TestWhatPlansTakeIsGranted(t *testing.T) {
	draws(t, 1, 50, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		if o.Effort = 20; rapid.IntRange(0, 2).Draw(t, "a disk") == 0 {
			o.DiskBytes = 1 << 40
		}
		both := []space.ID{space.Device, space.Host}
		for _, of := range rapid.Permutation(both).Draw(t, "first") {
			least, err := LeastOf(ctx, g, o, of, targets...)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "limited") {
				*o.Budget(of) = least + least*rapid.Int64Range(0, 16).Draw(t, "more")/16
			}
		}
		checkGranted(t, g, o, targets)
	})
}

// TestWhatPlansOfModelsTakeIsGranted: and of models, by the planner, whose search keeps some of
// the variables on the device.
func TestWhatPlansOfModelsTakeIsGranted(t *testing.T) {
	longtest.Skip(t)
	for _, name := range []string{"resnet", "transformer"} {
		g, targets := modelTargets(t, name, "s512")
		for _, device := range []int64{920_000, 1_030_000, 1_150_000} {
			checkGranted(t, g, Options{Policy: Auto, DeviceBytes: device, Effort: 40}, targets)
		}
	}
}

// TestRefusalsNameWhatIsThere: what a refusal lists are holders of the memory that is short at
// the moment that sets it, workspaces among them, and they add up to all that is there.
func TestRefusalsNameWhatIsThere(t *testing.T) {
	scratch := false
	check := func(t rapid.TB, g *graph.Graph, o Options, targets []Target) {
		e := refused(t, g, o, targets)
		if e == nil {
			return
		}
		var sum int64
		for _, h := range e.Live {
			if sum += h.Bytes; e.Space == space.Device && strings.HasPrefix(h.Value, "scratch of") {
				scratch = true
			}
		}
		if sum > e.Taken || len(e.Live) > e.Values || e.Taken > e.Need ||
			len(e.Live) == e.Values && sum != e.Taken {
			t.Fatalf("%d holders of %d have %d bytes of %d: %v", len(e.Live), e.Values, sum,
				e.Taken, e)
		}
		s, err := candidates.New(context.Background(), g, o, targets)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Minimum(e.Space)
		if l == nil || err != nil {
			return // both memories are short
		}
		checkHolders(t, s, l, e)
	}
	draws(t, 1, 30, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o := anyOptions(t)
		least, err := Minimum(context.Background(), g, o, space.Device, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.DeviceBytes = least
		of := rapid.SampledFrom([]space.ID{space.Device, space.Host}).Draw(t, "space")
		least, err = Minimum(context.Background(), g, o, of, targets...)
		if err != nil {
			t.Fatal(err)
		}
		*o.Budget(of) = max(1, least-1)
		check(t, g, o, targets)
	})
	g, targets := modelTargets(t, "resnet", "s512")
	check(t, g, Options{DeviceBytes: 850 << 10}, targets)
	if !scratch {
		t.Error("no workspace is named")
	}
}

// checkHolders looks for the holders of a refusal in the plan that sets the least.
func checkHolders(t rapid.TB, s *candidates.Search, l *candidates.Minimum, e *ErrOutOfMemory) {
	p, err := s.PlanOf(l)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(p.Steps, func(x plan.Step) bool {
		_, launch := x.Do.(plan.Launch)
		return launch && x.Name == e.At
	})
	for _, h := range e.Live {
		if !slices.ContainsFunc(p.Slots, func(x plan.Slot) bool {
			return x.Space == e.Space && x.Value == h.Value && x.Bytes == h.Bytes &&
				x.From <= at && at <= x.To
		}) {
			t.Fatalf("%s of %d bytes is not on the %s at %s", h.Value, h.Bytes, e.Space, e.At)
		}
	}
}
