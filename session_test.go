package gomem_test

import (
	"context"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/planner"
)

// TestPeaksAreExact: on every device, every space is used up to exactly the
// predicted byte, at every budget down to the smallest.
func TestPeaksAreExact(t *testing.T) {
	m := randgraph.Synthetic(400)
	target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
	ctx := context.Background()
	for _, device := range gomem.Devices() {
		for _, o := range []planner.Options{{}, {Policy: planner.Vanilla},
			{Partition: 3, Streams: 2}, {NoPlacement: true}, {NoSwap: true},
			{Lookahead: 1, Partition: 200}} {
			least, err := planner.MinDevice(ctx, m.Graph, target, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, budget := range []int64{0, least} {
				o.DeviceBytes = budget
				s, err := gomem.Compile(ctx, m.Graph, gomem.Options{Device: device}.With(o),
					target)
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if _, err := s.Step(ctx, "train",
						gomem.Feeds{m.Inputs[0]: gomem.NewTensor(m.Inputs[0].Type())}); err != nil {
						t.Fatal(err)
					}
				}
				for _, u := range s.Usage() {
					if u.Actual != u.Predicted || u.Actual == 0 {
						t.Errorf("%s %s: %s used %d, predicted %d", device, o, u.Space, u.Actual,
							u.Predicted)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestUsageOfWhatRan: what a run uses is held against the plans that have run, and
// not against one that is larger and waits for its turn.
func TestUsageOfWhatRan(t *testing.T) {
	m := randgraph.Synthetic(200)
	s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{},
		gomem.Target{Name: "all", Fetches: m.Fetches, Updates: m.Updates},
		gomem.Target{Name: "one", Fetches: m.Fetches[:1]})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	feeds := gomem.Feeds{m.Inputs[0]: gomem.NewTensor(m.Inputs[0].Type())}
	for _, target := range []string{"one", "all"} {
		if _, err := s.Step(t.Context(), target, feeds); err != nil {
			t.Fatal(err)
		}
		for i, u := range s.Usage() {
			want := s.Plan(target).Spaces[i].Bytes
			if u.Actual != want || u.Predicted != want || u.Taken != s.Plan("all").Spaces[i].Bytes {
				t.Errorf("%s: %+v, the plan has %d", target, u, want)
			}
		}
	}
}
