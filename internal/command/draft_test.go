package command

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/gomem/gomem/plan/space"
)

// TestResident: the plan that is taken without weighing is the one that weighing finds.
func TestResident(t *testing.T) {
	for _, model := range []string{"moe", "transformer", "gpt", "resnet", "wgan", "deepspeech",
		"lstm-lm", "topic"} {
		f := modelFlags{Model: model, Size: "s512"}
		b, err := f.build(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		o, err := planFlags{Fuse: true}.options(b.model.DeviceBytes, b.model.HostBytes)
		if err != nil {
			t.Fatal(err)
		}
		if o, err = b.priced(o, "cpu"); err != nil {
			t.Fatal(err)
		}
		vanilla, err := planAll(t.Context(), io.Discard, b, vanillaOptions(o))
		if err != nil {
			t.Fatal(err)
		}
		for _, less := range []int64{0, 1} {
			o.DeviceBytes = vanilla.Peak(space.Device) - less
			got, err := b.resident(context.Background(), o)
			if err != nil || (got.Planned == nil) != (less > 0) {
				t.Fatalf("%s with %d bytes less than vanilla needs: %v %v", model, less, got, err)
			}
			if less > 0 {
				continue
			}
			want, err := planAll(t.Context(), io.Discard, b, o)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range want.Results {
				var x, y strings.Builder
				r.Plan.WriteTo(&x)
				got.Results[i].Plan.WriteTo(&y)
				if x.String() != y.String() {
					t.Errorf("%s: target %d has another plan", model, i)
				}
			}
			x, y := newReport(b.model, o, want, vanilla), newReport(b.model, o, got, vanilla)
			if x.PlanMS, y.PlanMS = 0, 0; x != y {
				t.Errorf("%s: the report is %+v, want %+v", model, y, x)
			}
			u := weighed(b, o, want, vanilla, want.bounds(b))
			if v := weighed(b, o, got, vanilla, got.bounds(b)); u != v {
				t.Errorf("%s: costs %+v, want %+v", model, v, u)
			}
		}
	}
}
