package profile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner"
)

// randomPlan draws a plan of a random graph, under any policy and a budget that may
// make it tight; nil if the budget is too small.
func randomPlan(t *rapid.T) (*plan.Plan, *graph.Graph) {
	draw := rapid.SampledFrom([]func(func(int) int, int) *randgraph.Model{randgraph.Random,
		randgraph.Exchanging}).Draw(t, "kind")
	m := draw(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 12)
	target := planner.Target{Name: "t", Fetches: m.Fetches, Updates: m.Updates}
	o := planner.Options{Policy: rapid.SampledFrom(planner.Policies()).Draw(t, "policy"),
		DeviceBytes: 64 * int64(rapid.IntRange(8, 64).Draw(t, "budget"))}
	if o.Policy.Partitioned() {
		o.Partition = rapid.IntRange(1, 6).Draw(t, "partition")
	}
	r, err := planner.Compile(t.Context(), m.Graph, target, o)
	if _, refused := errors.AsType[*planner.ErrOutOfMemory](err); refused {
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan, m.Graph
}

// TestAnyPlan: every plan has a profile in every form, whatever its times are: all at
// once, none at all, or long.
func TestAnyPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, g := randomPlan(t)
		if p == nil {
			return
		}
		in := profile.Input{Plan: p, Graph: g, Predicted: make(profile.Run, len(p.Steps)),
			Measured: []profile.Run{make(profile.Run, len(p.Steps))}}
		for i := range p.Steps {
			took := rapid.SampledFrom([]time.Duration{0, 1, time.Hour}).Draw(t, "took")
			in.Measured[0][i].End = took
		}
		x, err := profile.New(in)
		if err != nil {
			t.Fatal(err)
		}
		var text, object, page, line, picture bytes.Buffer
		for _, err := range []error{x.Report.WriteText(&text), x.Report.WriteJSON(&object),
			x.WriteHTML(&page), x.WriteTrace(&line)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if !json.Valid(object.Bytes()) || !json.Valid(line.Bytes()) {
			t.Errorf("%s\n%s", &object, &line)
		}
		if rapid.IntRange(0, 20).Draw(t, "draw") == 0 { // it takes long
			if err := x.WritePNG(&picture); err != nil {
				t.Fatal(err)
			}
		}
		for i, s := range x.Report.Spaces {
			var live int64
			for _, bytes := range s.Peak.Categories {
				live += bytes
			}
			if live != s.Peak.Live || s.Bytes != p.Spaces[i].Bytes || s.Peak.Gaps < 0 {
				t.Errorf("%s: %+v", s.Name, s.Peak)
			}
		}
	})
}

// TestAnyDiff: any two plans of a graph can be compared, and what is the same from
// one side is so from the other.
func TestAnyDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _ := randomPlan(t)
		b, _ := randomPlan(t)
		if a == nil || b == nil {
			return
		}
		there, err := profile.Compare(a, b)
		if err != nil {
			t.Fatal(err)
		}
		back, err := profile.Compare(b, a)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := there.WriteText(&text); err != nil || there.Same != (text.Len() == 0) {
			t.Errorf("%v, %s", err, &text)
		}
		if there.Same != back.Same || len(there.Values) != len(back.Values) ||
			there.A != back.B || there.B != back.A {
			t.Errorf("there %+v, back %+v", there, back)
		}
	})
}
