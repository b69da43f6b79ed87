package command

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// TestPlanTime: the first plan that fits is there however short the time, and what comes after
// it is no slower; who calls it off has no plan.
func TestPlanTime(t *testing.T) {
	longtest.Skip(t)
	b, err := modelFlags{Model: "deepspeech", Size: "s512"}.build(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	f := planFlags{Fuse: true, Policy: "auto"}
	o, err := f.options(b.model.DeviceBytes, b.model.HostBytes)
	if err != nil {
		t.Fatal(err)
	}
	if o, err = b.priced(o, "sim:h200-pcie5"); err != nil {
		t.Fatal(err)
	}
	vanilla, err := planAll(t.Context(), io.Discard, b, vanillaOptions(o))
	if err != nil {
		t.Fatal(err)
	}
	o.DeviceBytes = vanilla.Peak(space.Device) / 2
	var plans []planned
	for _, f.PlanTime = range []time.Duration{1, 3 * time.Second} {
		p, err := f.planLong(t.Context(), &env{stderr: io.Discard}, b, o)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
	}
	first := o
	first.Draft = true
	draft, err := planAll(t.Context(), io.Discard, b, first)
	if err != nil {
		t.Fatal(err)
	}
	if text(t, plans[0].training()) != text(t, draft.training()) {
		t.Error("in no time there is another plan than the draft")
	}
	if stepTime(b, plans[1]) > stepTime(b, draft) {
		t.Errorf("%s after a while, %s at first", stepTime(b, plans[1]), stepTime(b, draft))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.planLong(ctx, &env{stderr: io.Discard}, b, o)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
}

func text(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var b strings.Builder
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
