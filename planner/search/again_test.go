package search

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestBuildForgets: what an evaluator comes to for a state does not depend on the states
// that it has seen before, although it lists only what differs from the last one anew.
func TestBuildForgets(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pr := New(randomProgram(r, t), slow())
		budget := Budget{rapid.Int64Range(1<<8, 1<<14).Draw(r, "budget"), plenty}
		used := newEvaluator(pr, budget)
		st := newSearch(t.Context(), pr, budget, Options{}).initial(start{slack: 7})
		for range rapid.IntRange(1, 12).Draw(r, "states") {
			redecide(r, st)
			fresh := newEvaluator(pr, budget)
			a, b := used.evaluate(st.clone()), fresh.evaluate(st.clone())
			if a != b {
				r.Fatalf("%d ns, and %d of an evaluator that knows nothing else", a, b)
			}
			if d := cmp.Diff(built(fresh), built(used)); d != "" {
				r.Fatal(d)
			}
		}
	})
}

// redecide draws other decisions of some values and groups.
func redecide(r *rapid.T, st *state) {
	acts := []action{keep, keep, swap, recompute, shun}
	for range rapid.IntRange(0, 6).Draw(r, "values") {
		v := rapid.IntRange(0, len(st.act)-1).Draw(r, "value")
		st.act[v] = rapid.SampledFrom(acts).Draw(r, "act")
	}
	for range rapid.IntRange(0, 2).Draw(r, "groups") {
		if len(st.home) > 0 {
			g := rapid.IntRange(0, len(st.home)-1).Draw(r, "group")
			st.home[g] = rapid.SampledFrom([]home{onHost, resident, written}).Draw(r, "home")
		}
	}
	st.cut = rapid.SampledFrom(grid.cut).Draw(r, "cut")
	st.slack = rapid.SampledFrom(grid.slack).Draw(r, "slack")
}

// tables are what building a state fills in.
type tables struct {
	Uses                 [][]int64
	Reads, Gone          []bool
	Seq, Start           []int32
	Key, Clock           []int64
	Stays                []string
	Over                 []int32
	Load, Need           []int64
	Peak, PeakAt, Copied int64
}

func built(e *evaluator) tables {
	t := tables{Reads: e.hostReads, Gone: e.gone, Seq: e.seq, Start: e.start, Key: e.key,
		Clock: e.clock, Over: e.over, Load: e.load, Need: e.need, Peak: e.peak,
		PeakAt: int64(e.peakAt)}
	if e.peak <= e.budget.Device {
		t.Copied = e.moved
	}
	for v := range e.values {
		t.Uses = append(t.Uses, append([]int64{}, e.uses[v]...))
	}
	for _, y := range e.stays {
		t.Stays = append(t.Stays, fmt.Sprint(y))
	}
	return t
}
