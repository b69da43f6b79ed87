package planner

import (
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// TestSpared: what found no room below the budget is left free while those operations run that
// it is there with, and beside what was left free before. What is executed again belongs to
// the operation that comes after it.
func TestSpared(t *testing.T) {
	g := graph.New()
	for _, name := range []string{"a", "b", "c", "d"} {
		g.Input(name, tensor.Of(graph.F32))
	}
	s := &program.Schedule{Streams: []program.Stream{{Engine: space.Compute},
		{Engine: space.CopyIn}}}
	for _, id := range []graph.NodeID{-1, 0, -1, 1, 0, 2, 3} {
		e := program.Event{Node: id, Src: program.NoStay, Dst: program.NoStay}
		if id < 0 {
			e = program.Event{Stream: 1}
		}
		s.Events = append(s.Events, e)
	}
	f := &found{sketch: &sketch{schedule: s, slots: []plan.Slot{
		{Space: space.Device, Off: 0, Bytes: 1024, From: 0, To: 6, Fixed: true},
		{Space: space.Device, Off: 896, Bytes: 128, From: 0, To: 6},
		{Space: space.Device, Off: 960, Bytes: 100, From: 2, To: 4},
		{Space: space.Device, Off: 1088, Bytes: 64, From: 4, To: 5},
		{Space: space.Host, Off: 4096, Bytes: 64, From: 0, To: 6},
	}}}
	first := f.spared(g, 1024, nil)
	if want := []int64{0, 128, 192, 64}; !slices.Equal(first, want) {
		t.Errorf("%d bytes are spared, want %d", first, want)
	}
	if got := f.spared(g, 1088, first); !slices.Equal(got, []int64{0, 128, 256, 128}) {
		t.Errorf("then %d", got)
	}
}

// TestCondense: a plan that is packed loosely is packed once more, and then it is right; unless
// its steps would wait for that longer than is of no interest.
func TestCondense(t *testing.T) {
	m := randgraph.Synthetic(300)
	v, err := Compile(t.Context(), m.Graph, training(m), Options{Policy: Vanilla})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Policy: Auto, Effort: 50, DeviceBytes: v.Plan.Spaces[space.Device].Bytes / 2}
	s, err := newVariant(t.Context(), m.Graph, o, []Target{training(m)})
	if err != nil {
		t.Fatal(err)
	}
	j := s.jobs[0]
	problems, err := j.problems(t.Context(), s.options)
	if err != nil {
		t.Fatal(err)
	}
	f, err := j.solve(t.Context(), problems, s.options, nil)
	if f == nil || err != nil {
		t.Fatalf("no plan: %v", err)
	}
	k := f.sketch
	var top int64
	for i := range k.slots {
		if y := &k.slots[i]; y.Space == space.Device && !y.Fixed {
			y.Off = k.need[space.Device] + top
			top += rounded(y.Bytes)
		}
	}
	k.need[space.Device] += top
	loose, need := slices.Clone(k.slots), k.need
	f.time = 1
	same := func(a, b plan.Slot) bool { return a.Off == b.Off }
	if j.condense(f); !slices.EqualFunc(k.slots, loose, same) || k.need != need {
		t.Error("a step waits longer")
	}
	f.time, f.options.DeviceBytes = never, need[space.Device]
	j.condense(f)
	if k.need[space.Device] > k.load[space.Device]*21/20 || f.time != k.time(j.prices) {
		t.Errorf("%d bytes are packed into %d, in %s", k.load[space.Device], k.need[space.Device],
			f.time)
	}
	if _, err := j.result(f); err != nil {
		t.Error(err)
	}
}
