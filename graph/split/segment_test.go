package split_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph/split"
	"github.com/gomem/gomem/internal/randgraph"
)

// TestSegments: segments end where the search of every node between says so.
func TestSegments(t *testing.T) {
	several := false
	check := func(t fatal, s step, limit int64) {
		survey, err := split.NewSurvey(s.g, s.fetches, s.updates, limit)
		if err != nil {
			t.Fatal(err)
		}
		for i := range survey.Regions() {
			got, want := survey.Segments(i), survey.SegmentsBySearch(i)
			several = several || len(want) > 1
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("segments of region %d: %v, want %v", i, got, want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 40)
		s := step{m.Graph, m.Fetches, m.Updates}
		if rapid.Bool().Draw(t, "fused") {
			s = s.fused(t)
		}
		check(t, s, s.most()*rapid.Int64Range(1, 10).Draw(t, "limit")/10)
	})
	for name, build := range five() {
		m, err := build()
		if err != nil {
			t.Fatal(err)
		}
		s := step{g: m.Graph}
		for _, o := range m.Objectives {
			s.fetches = append(s.fetches, o.Loss)
			for _, n := range o.Updates {
				s.updates = append(s.updates, n.ID)
			}
		}
		for _, part := range []int64{4, 32, 1000} {
			t.Run(name, func(t *testing.T) { check(t, s, s.most()/part) })
		}
	}
	if !several {
		t.Error("no region has several segments")
	}
}
