package lower

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/simulate"
)

// TestTimelineIsThePlans: what a sketch says of needs and time before its plan is written is what
// the plan says; before it has addresses no more than that, and no less than what a stream works.
func TestTimelineIsThePlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProgram(t)
		m, err := machine.Named(rapid.SampledFrom(machine.Builtin()).Draw(t, "machine"))
		if err != nil {
			t.Fatal(err)
		}
		shared := rapid.SampledFrom([]float64{0, 0, 0.5, 1, 3}).Draw(t, "shared")
		local := &machine.Local{Profile: m, Shared: shared}
		prices := NewPrices(local.For("", p.Graph.Nodes()), p.Graph)
		k := sketched(t, p, o)
		least := k.Time(prices)
		if busy := busiest(prices, p.Schedule); busy > least {
			t.Fatalf("a stream works for %s of %s", busy, least)
		}
		k.Pack(Need{}, 0)
		if w := worked(prices, p.Schedule); shared > 0 && least < w.Device+w.Host+
			time.Duration(shared*float64(w.Copies)) {
			t.Fatalf("%+v takes %s where %v of copies are shared", w, least, shared)
		}
		took, made := k.Time(prices), k.Plan(p, "drawn", k.Need)
		AddWaits(made)
		want := simulate.Simulate(made, p.Graph, prices.Model).Step
		if took != want || least > took {
			t.Fatalf("the timeline says %s, without addresses %s, the plan takes %s", took, least,
				want)
		}
		for i, s := range made.Spaces {
			lowest, apart := k.Lowest(space.ID(i)), k.Apart(space.ID(i))
			if k.Load[i] > s.Bytes || s.Bytes != k.Need[i] || lowest != s.Bytes || apart < lowest {
				t.Fatalf("%s has a peak of %d bytes: the load is %d, the need %d, alone %d, side "+
					"by side %d", s.Name, s.Bytes, k.Load[i], k.Need[i], lowest, apart)
			}
		}
	})
}

// worked is for how long the engines that share a processor work.
func worked(p *Prices, s *program.Schedule) machine.Work {
	var w machine.Work
	for i := range s.Events {
		e := &s.Events[i]
		switch took := p.event(s, e); s.Streams[e.Stream].Engine {
		case space.Compute:
			w.Device += took
		case space.HostCompute:
			w.Host += took
		case space.CopyIn, space.CopyOut:
			w.Copies += took
		}
	}
	return w
}

// busiest is how long the busiest stream works: no plan of the schedule is faster.
func busiest(p *Prices, s *program.Schedule) time.Duration {
	sums := make([]time.Duration, len(s.Streams))
	var most time.Duration
	for i := range s.Events {
		e := &s.Events[i]
		sums[e.Stream] += p.event(s, e)
		most = max(most, sums[e.Stream])
	}
	return most
}
