package candidates

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/spill"
)

// TestSpillIsSound: whatever is moved to the disk, of any schedule, the plan is proved,
// and the load that the host was said to have is what its slots come to.
func TestSpillIsSound(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o := anyOptions(t)
		o.DiskBytes = 1 << 60
		s, err := New(context.Background(), g, o, targets)
		if err != nil {
			t.Fatal(err)
		}
		j := s.each[len(s.each)-1]
		candidates := append(j.ladder.straight(), j.ladder.together...)
		w := rapid.SampledFrom(candidates).Draw(t, "way")
		base, err := j.unspilled(s.ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		leaves := spill.First(g, s.order[:rapid.IntRange(0, len(s.order)).Draw(t, "leaves")])
		least := spill.Least(g, base.Schedule, leaves)
		limit := rapid.SampledFrom([]int64{0, least, least * 5 / 4, least * 2}).Draw(t, "limit")
		p := *base
		k, err := sketched(s.ctx, &p, []program.Pass{spill.Pass(spill.Options{Leaves: leaves,
			HostBytes: limit, Ahead: rapid.Int32Range(0, 40).Draw(t, "ahead")})}, w.options)
		if err != nil {
			t.Fatal(err)
		}
		k.Pack(lower.Need{}, 0)
		made := k.Plan(&p, w.title(), w.options.Budgets())
		lower.AddWaits(made)
		of := j.sketches.target
		if err := plan.Verify(made, g, of.Fetches, of.Updates); err != nil {
			t.Fatal(err)
		}
		if got := load(made); got > max(limit, least) {
			t.Fatalf("the host's load is %d, the limit %d, the least %d", got, limit, least)
		}
	})
}

// load is the most bytes of the host that are taken at once, rounded up.
func load(p *plan.Plan) int64 {
	q := *p
	q.Slots = nil
	for _, s := range p.Slots {
		s.Bytes = (s.Bytes + 63) &^ 63
		q.Slots = append(q.Slots, s)
	}
	var most int64
	for _, b := range q.Timeline(space.Host) {
		most = max(most, b)
	}
	return most
}
