package candidates

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/simulate"
)

// TestTimelineIsThePlans: what a sketch says of needs and time before its plan is written
// is what the plan says, and before it has addresses, no more than that.
func TestTimelineIsThePlans(t *testing.T) {
	draws(t, 1, 50, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		m, err := machine.Named(rapid.SampledFrom(machine.Builtin()).Draw(t, "machine"))
		if err != nil {
			t.Fatal(err)
		}
		o.Machine, o.Gathers = m, rapid.Bool().Draw(t, "gathers")
		s, err := New(ctx, g, o, targets)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range s.each {
			w := rapid.SampledFrom(append(j.ladder.straight(), j.ladder.together...)).Draw(t, "way")
			f, err := j.sketches.draw(ctx, w)
			if err != nil {
				t.Fatal(err)
			}
			least := f.sketch.Time(j.sketches.prices)
			if w.Segments == 0 { // segments decide more than the passes have
				o := j.forecast(w, w.sharing(), w.reach())
				if o.Time > least || o.Bytes > f.sketch.Load[space.Device] {
					t.Fatalf("%s: %s and %d bytes are forecast, it takes %s and %d", f.title,
						o.Time, o.Bytes, least, f.sketch.Load[space.Device])
				}
			}
			j.sketches.pack(f)
			took := f.sketch.Time(j.sketches.prices)
			p := f.sketch.Plan(f.program, f.title, f.options.Budgets())
			lower.AddWaits(p)
			want := simulate.Simulate(p, g, j.sketches.prices.Model).Step
			if took != want || least > took {
				t.Fatalf("%s: the timeline says %s, without addresses %s, the plan takes %s",
					f.title, took, least, want)
			}
			for i, s := range p.Spaces {
				if f.sketch.Load[i] > s.Bytes || f.sketch.Need[i] != s.Bytes {
					t.Fatalf("%s: the load of %s is %d, the need %d, the peak %d", f.title, s.Name,
						f.sketch.Load[i], f.sketch.Need[i], s.Bytes)
				}
			}
		}
	})
}
