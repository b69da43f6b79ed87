package planner

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
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
		s, err := newVariant(ctx, g, o, targets)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range s.jobs {
			w := rapid.SampledFrom(append(j.ladder.straight(), j.ladder.together...)).Draw(t, "way")
			f, err := j.draw(ctx, w)
			if err != nil {
				t.Fatal(err)
			}
			least := f.sketch.time(j.prices)
			if w.Segments == 0 { // segments decide more than the passes have
				o := j.forecast(w, w.sharing(), w.reach())
				if o.time > least || o.bytes > f.sketch.load[space.Device] {
					t.Fatalf("%s: %s and %d bytes are forecast, it takes %s and %d", f.title,
						o.time, o.bytes, least, f.sketch.load[space.Device])
				}
			}
			if busy := busiest(j.prices, f.sketch.schedule); busy > least {
				t.Fatalf("%s: a stream works for %s of %s", f.title, busy, least)
			}
			j.pack(f)
			took := f.sketch.time(j.prices)
			p := f.sketch.lower(f.program, f.title, f.options)
			addWaits(p)
			if want := simulate.Simulate(p, g, j.prices.Model).Step; took != want || least > took {
				t.Fatalf("%s: the timeline says %s, without addresses %s, the plan takes %s",
					f.title, took, least, want)
			}
			for i, s := range p.Spaces {
				if f.sketch.load[i] > s.Bytes || f.sketch.need[i] != s.Bytes {
					t.Fatalf("%s: the load of %s is %d, the need %d, the peak %d", f.title, s.Name,
						f.sketch.load[i], f.sketch.need[i], s.Bytes)
				}
			}
		}
	})
}

// busiest is how long the busiest stream works: no plan of the schedule is faster.
func busiest(p *prices, s *program.Schedule) time.Duration {
	sums := make([]time.Duration, len(s.Streams))
	var most time.Duration
	for i := range s.Events {
		e := &s.Events[i]
		sums[e.Stream] += p.event(s, e)
		most = max(most, sums[e.Stream])
	}
	return most
}
