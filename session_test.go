package gomem_test

import (
	"context"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/internal/randgraph"
)

// TestPeaksAreExact: on every device, every space is used up to exactly the
// predicted byte, at every budget down to the smallest.
func TestPeaksAreExact(t *testing.T) {
	m := randgraph.Synthetic(400)
	target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
	ctx := context.Background()
	for _, device := range gomem.Devices() {
		for _, o := range []compile.Options{{}, {Policy: compile.Vanilla},
			{Partition: 3, Streams: 2}, {NoPlacement: true}, {NoSwap: true},
			{Lookahead: 1, Partition: 200}} {
			least, err := compile.MinDevice(ctx, m.Graph, target, o)
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
