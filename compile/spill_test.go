package compile

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/space"
	"github.com/gomem/gomem/spill"
)

// TestSpillIsSound: whatever is moved to the disk, of any schedule, the plan is proved,
// and the load that the host was said to have is what its slots come to.
func TestSpillIsSound(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o := anyOptions(t)
		o.DiskBytes = 1 << 60
		s, err := newSearch(context.Background(), g, o, targets)
		if err != nil {
			t.Fatal(err)
		}
		j := s.jobs[len(s.jobs)-1]
		ways := append(j.ladder.straight(), j.ladder.together...)
		w := rapid.SampledFrom(ways).Draw(t, "way")
		base, err := j.unspilled(s.ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		leaves := spill.First(g, s.order[:rapid.IntRange(0, len(s.order)).Draw(t, "leaves")])
		least := spill.Least(g, base.Schedule, leaves)
		limit := rapid.SampledFrom([]int64{0, least, least * 5 / 4, least * 2}).Draw(t, "limit")
		p := *base
		made, err := emit(s.ctx, &p, w, []pass.Pass{spill.Pass(spill.Options{Leaves: leaves,
			HostBytes: limit, Ahead: rapid.Int32Range(0, 40).Draw(t, "ahead")})})
		if err != nil {
			t.Fatal(err)
		}
		addWaits(made)
		if err := plan.Verify(made, g, j.target.Fetches, j.target.Updates); err != nil {
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

// TestDiskMinimumIsExact: with a disk, of any size, the minimum of the host works
// and a byte less is refused with that number; it is no more than without, and a
// larger disk never asks for more of the host.
func TestDiskMinimumIsExact(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		without, err := Minimum(ctx, g, o, space.Host, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.DiskBytes = 1 << 60
		least, err := Minimum(ctx, g, o, space.Host, targets...)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "small") {
			o.DiskBytes = rapid.Int64Range(1, 1<<20).Draw(t, "disk")
		}
		smaller, err := Minimum(ctx, g, o, space.Host, targets...)
		if err != nil {
			t.Fatal(err)
		}
		if smaller < least || without < smaller {
			t.Fatalf("%s: %d bytes without a disk, %d with %d bytes of it, %d with plenty", o,
				without, smaller, o.DiskBytes, least)
		}
		o.HostBytes = smaller
		if e := refused(t, g, o, targets); e != nil {
			t.Fatalf("%s: the minimum is refused: %v", o, e)
		}
		if smaller == 1 {
			return
		}
		o.HostBytes = smaller - 1
		if e := refused(t, g, o, targets); e == nil || e.Need != smaller || e.Space != space.Host {
			t.Fatalf("%s: a byte under the minimum %d: %v", o, smaller, e)
		}
	})
}

// TestDiskIsForWhatDoesNotFit: where the host's memory is enough, nothing goes to the
// disk, and plans are those that there are without.
func TestDiskIsForWhatDoesNotFit(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		least, err := Minimum(ctx, g, o, space.Host, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.HostBytes = least
		without, err := All(ctx, g, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.DiskBytes = 1 << 40
		with, err := All(ctx, g, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range with {
			if got, want := needOf(r.Plan), needOf(without[i].Plan); got != want {
				t.Fatalf("%s: with a disk a plan takes %d bytes, without %d", o, got, want)
			}
		}
	})
}
