package candidates

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan/space"
)

// plainLeast is the least of a space by packing every candidate in every space: -1 if there is
// none.
func plainLeast(t *rapid.T, s *Search, of space.ID) int64 {
	limits := s.Options.Budgets()
	choices := []func(ladder) []Candidate{ladder.straight}
	for i := range s.each[0].ladder.together {
		choices = append(choices, func(l ladder) []Candidate { return l.together[i : i+1] })
	}
	for i := range s.each[0].ladder.housed {
		choices = append(choices, func(l ladder) []Candidate { return l.housed[i] })
	}
	// Ways with variables on the device are granted no less of it than the last of the others.
	housed := len(choices) - len(s.each[0].ladder.housed)
	var tightest int64
	for _, j := range s.each {
		n, err := j.sketches.need(s.ctx, j.ladder.last[len(j.ladder.last)-1])
		if err != nil {
			t.Fatal(err)
		}
		tightest = max(tightest, n[space.Device])
	}
	best := int64(-1)
	for i, candidates := range choices {
		most := int64(0)
		if i >= housed && of == space.Device {
			most = tightest
		}
		if i >= housed && of != space.Device && tightest > limits[space.Device] {
			continue
		}
		for _, j := range s.each {
			least := int64(-1)
			for _, w := range candidates(j.ladder) {
				n, err := j.sketches.need(s.ctx, w)
				if err != nil {
					t.Fatal(err)
				}
				bytes := n[of]
				for id, load := range j.sketches.loads[w] {
					if apart := n[id]; apart < load {
						t.Fatalf("%+v: %d bytes are packed into %d", w.Tuning, load, apart)
					}
				}
				n[of] = 0
				if n.Within(limits) && (least < 0 || bytes < least) {
					least = bytes
				}
			}
			if least < 0 {
				most = -1
				break
			}
			most = max(most, least)
		}
		if most >= 0 && (best < 0 || most < best) {
			best = most
		}
	}
	return best
}

// TestLeastIsThatOfAllWays: what is not packed, and not even drawn, would change no answer,
// whatever the other budgets are.
func TestLeastIsThatOfAllWays(t *testing.T) {
	draws(t, 1, 60, func(t *rapid.T) {
		g, targets := anyTargets(t)
		if rapid.Bool().Draw(t, "the other way round") {
			slices.Reverse(targets)
		}
		o, ctx := anyOptions(t), context.Background()
		free, err := New(ctx, g, o, targets)
		if err != nil {
			t.Fatal(err)
		}
		j := free.each[rapid.IntRange(0, len(free.each)-1).Draw(t, "target")]
		n, err := j.sketches.need(ctx, rapid.SampledFrom(j.ladder.straight()).Draw(t, "way"))
		if err != nil {
			t.Fatal(err)
		}
		about := func(bytes int64, name string) int64 {
			return max(1, bytes+rapid.Int64Range(-200, 200).Draw(t, name))
		}
		if rapid.Bool().Draw(t, "a budget of the host") {
			o.HostBytes = about(n[space.Host], "host")
		}
		if rapid.Bool().Draw(t, "a budget of the device") {
			o.DeviceBytes = about(n[space.Device], "device")
		}
		for _, of := range []space.ID{space.Device, space.Host} {
			s, errOne := New(ctx, g, o, targets)
			plain, errTwo := New(ctx, g, o, targets)
			if err := errors.Join(errOne, errTwo); err != nil {
				t.Fatal(err)
			}
			l, err := s.Minimum(of)
			if err != nil {
				t.Fatal(err)
			}
			have := int64(-1)
			if l != nil {
				have = l.Bytes
			}
			if want := plainLeast(t, plain, of); have != want {
				t.Fatalf("the least of the %s is %d, want %d", of, have, want)
			}
		}
	})
}

// TestNothingNeedsMoreThanSideBySide: of a space that has room for all slots there is enough.
func TestNothingNeedsMoreThanSideBySide(t *testing.T) {
	draws(t, 1, 60, func(t *rapid.T) {
		g, targets := anyTargets(t)
		s, err := New(context.Background(), g, anyOptions(t), targets)
		if err != nil {
			t.Fatal(err)
		}
		j := s.each[0]
		f, err := j.sketches.draw(s.ctx, rapid.SampledFrom(j.ladder.straight()).Draw(t, "way"))
		if err != nil {
			t.Fatal(err)
		}
		j.sketches.pack(f)
		for id, n := range f.sketch.Need {
			if apart := f.sketch.Apart(space.ID(id)); apart < n {
				t.Fatalf("%s: %d bytes side by side are packed into %d", space.ID(id), apart, n)
			}
		}
	})
}
