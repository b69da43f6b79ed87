package laws_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// someModels are the models that tests of budgets plan: the two that are planned
// fastest, and all of them in the long form.
func someModels(t *testing.T, check func(t *testing.T, m *models.Model)) {
	for name, build := range five {
		if !longtest.Enabled() && name != "resnet" && name != "deepspeech" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			check(t, m)
		})
	}
}

// refusal is the shortage that a model is refused for, or nil.
func refusal(t *testing.T, m *models.Model, o gomem.Options) *gomem.ErrOutOfMemory {
	t.Helper()
	_, err := gomem.Plan(context.Background(), m.Graph, o, train.Targets(&m.Model)...)
	short, ok := errors.AsType[*gomem.ErrOutOfMemory](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	return short
}

// TestMinimaOfModels: under every policy the minimum of either memory works, alone
// and within the other's minimum, and a byte less is refused with that number.
func TestMinimaOfModels(t *testing.T) {
	longtest.Skip(t)
	someModels(t, func(t *testing.T, m *models.Model) {
		ctx, targets := context.Background(), train.Targets(&m.Model)
		for _, policy := range planner.Policies() {
			o := gomem.Options{Policy: policy, Effort: 20} // of which minima do not depend
			device, err := gomem.MinDevice(ctx, m.Graph, o, targets...)
			if err != nil {
				t.Fatal(err)
			}
			o.DeviceBytes = device - 1
			if e := refusal(t, m, o); e == nil || e.Need != device || e.Space != space.Device {
				t.Errorf("%s: a byte under %d: %v", policy, device, e)
			}
			o.DeviceBytes = device
			host, err := gomem.MinHost(ctx, m.Graph, o, targets...)
			if err != nil {
				t.Fatal(err)
			}
			if o.HostBytes = host; refusal(t, m, o) != nil {
				t.Errorf("%s: the minima %d and %d are refused", policy, device, host)
			}
			o.HostBytes = host - 1
			if e := refusal(t, m, o); e == nil {
				t.Errorf("%s: a byte of host memory under %d works", policy, host)
			}
			o.DeviceBytes, o.HostBytes = 0, 1
			if e := refusal(t, m, o); e == nil || e.Space != space.Host || e.Need <= 1 {
				t.Errorf("%s: in one byte of host memory: %v", policy, e)
			}
		}
	})
}

// TestLargerBudgetsCopyLess: between its minimum and vanilla's need, auto copies
// less and less, but where more copies take less time, and in that and more nothing but
// feeds and fetches.
func TestLargerBudgetsCopyLess(t *testing.T) {
	longtest.Skip(t)
	someModels(t, func(t *testing.T, m *models.Model) {
		ctx, targets := context.Background(), train.Targets(&m.Model)
		o := gomem.Options{Policy: planner.Auto, Effort: longtest.Count(60, 0)}
		least, err := gomem.MinDevice(ctx, m.Graph, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		vanilla, err := gomem.MinDevice(ctx, m.Graph, gomem.Options{Policy: planner.Vanilla},
			targets...)
		if err != nil {
			t.Fatal(err)
		}
		var amounts []int64
		var steps []time.Duration
		last := int64(longtest.Count(3, 7))
		for i := range last + 1 {
			o.DeviceBytes = least + (vanilla-least)*i/last
			p, err := gomem.Plan(ctx, m.Graph, o, targets...)
			if err != nil {
				t.Fatal(err)
			}
			amounts = append(amounts, copied(p))
			steps = append(steps, p.Results[0].Step)
			if i > 0 && amounts[i] > amounts[i-1] && steps[i] >= steps[i-1] {
				t.Errorf("budget %d copies more than a smaller one for nothing", o.DeviceBytes)
			}
		}
		if amounts[last] != 0 || t.Failed() {
			t.Errorf("in budgets from %d to %d, %d bytes are copied, in %v", least, vanilla,
				amounts, steps)
		}
	})
}

// copied is how much the plans copy but for feeds and fetches.
func copied(p *gomem.Planned) int64 {
	var total int64
	for _, r := range p.Results {
		t := r.Plan.Traffic()
		total += t.In() + t.Out() - t[space.Feed] - t[space.Result]
	}
	return total
}

// TestSmallerPartition: what a smaller partition size is said to need works.
func TestSmallerPartition(t *testing.T) {
	someModels(t, func(t *testing.T, m *models.Model) {
		ctx, targets := context.Background(), train.Targets(&m.Model)
		o := gomem.Options{}
		p, err := gomem.Plan(ctx, m.Graph, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		least, err := gomem.MinDeviceOf(ctx, p, o)
		if err != nil {
			t.Fatal(err)
		}
		again, err := gomem.MinDevice(ctx, m.Graph, o, targets...)
		if err != nil || again != least {
			t.Fatalf("%d bytes, and of what was planned %d: %v", again, least, err)
		}
		r, err := gomem.SmallerPartition(ctx, p, o, least)
		if err != nil {
			t.Fatal(err)
		}
		if r.Change == planner.Shrink {
			return // none needs less
		}
		if r.Change != planner.SmallerPartition || r.N >= 20 || r.Bytes >= least {
			t.Fatalf("below %d bytes: %+v", least, r)
		}
		if o.DeviceBytes = r.Bytes; refusal(t, m, o) == nil {
			t.Errorf("%d bytes are enough for partitions of 20, too", r.Bytes)
		}
		if o.Partition = r.N; refusal(t, m, o) != nil {
			t.Errorf("%d bytes are not enough for partitions of %d", r.Bytes, r.N)
		}
	})
}

// TestOneVanilla: what vanilla needs is one number, whether or not a budget is
// given and whatever it is.
func TestOneVanilla(t *testing.T) {
	m, err := five["wgan"]()
	if err != nil {
		t.Fatal(err)
	}
	peaks := map[int64]bool{}
	for _, budget := range []int64{0, 1 << 30, 1 << 40} {
		o := gomem.Options{Policy: planner.Vanilla, DeviceBytes: budget}
		p, err := gomem.Plan(context.Background(), m.Graph, o, train.Targets(&m.Model)...)
		if err != nil {
			t.Fatal(err)
		}
		peaks[p.Peak(space.Device)] = true
	}
	if len(peaks) != 1 {
		t.Errorf("vanilla's peaks are %v", peaks)
	}
}
