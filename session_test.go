package gomem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
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

// large is a session of a variable of a type, of several MiB or of a few bytes.
func large(t *testing.T, of graph.Type, init graph.Init) (*gomem.Session, graph.Value) {
	t.Helper()
	g := graph.New()
	v := g.Variable("v", of, init)
	s, err := gomem.Compile(t.Context(), g, gomem.Options{Seed: 4},
		gomem.Target{Name: "read", Fetches: []graph.Value{ops.Sum(v)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, v
}

// TestPortions: what Read shows is what Get copies, and what Write is given is what Get then has;
// no part is larger than a MiB or a row, and all have whole rows.
func TestPortions(t *testing.T) {
	for _, of := range []graph.Type{tensor.Of(graph.F32), tensor.Of(graph.F32, 700_001),
		tensor.Of(graph.F32, 7, 100_003), tensor.Of(graph.F32, 2, 400_000),
		tensor.Of(graph.F32, 3, 5, 40_000)} {
		s, v := large(t, of, graph.Init{Dist: graph.Normal, Scale: 1})
		row := 1
		if of.Rank() > 1 {
			row = of.Size(of.Rank() - 1)
		}
		var shown []byte
		sizes := func(part gomem.Tensor) error {
			if n := part.Type.Elems(); n%row != 0 || n > row && 4*n > 1<<20 {
				return fmt.Errorf("a part of %d elements, of rows of %d", n, row)
			}
			shown = append(shown, part.Data...)
			return nil
		}
		if err := s.Read(v, sizes); err != nil || !slices.Equal(shown, must(t, s, v).Data) {
			t.Fatalf("%s: another value than Get's: %v", of, err)
		}
		err := s.Write(v, func(part gomem.Tensor, at int64) error {
			for i := range part.F32() {
				part.F32()[i] = float32(at + int64(i))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range must(t, s, v).F32() {
			if x != float32(i) {
				t.Fatalf("%s: element %d is %v", of, i, x)
			}
		}
	}
}

// TestPortionsOfErrors: an error of who is shown parts, or gives them, comes back as it is; a
// variable is torn if parts had been written.
func TestPortionsOfErrors(t *testing.T) {
	s, v := large(t, tensor.Of(graph.F32, 600_000), graph.Init{Scale: 1})
	mine := errors.New("mine")
	if err := s.Read(v, func(gomem.Tensor) error { return mine }); err != mine {
		t.Errorf("Read: %v", err)
	}
	fails := func(from int64) error {
		return s.Write(v, func(_ gomem.Tensor, at int64) error {
			if at >= from {
				return mine
			}
			return nil
		})
	}
	if err := fails(0); err != mine {
		t.Errorf("Write: %v", err)
	}
	must(t, s, v) // nothing was written
	if err := fails(1); err != mine {
		t.Errorf("Write: %v", err)
	}
	nothing := func(gomem.Tensor) error { return nil }
	if err := s.Read(v, nothing); !errors.Is(err, gomem.ErrTorn) {
		t.Errorf("half-written: %v", err)
	}
	if err := s.Initialize(1); err != nil || s.Read(v, nothing) != nil {
		t.Errorf("Initialize does not mend it: %v", err)
	}
}
