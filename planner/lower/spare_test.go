package lower

import (
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// TestSpare: what found no room below the budget is left free while those operations run that
// it is there with, and beside what was left free before. What is executed again belongs to
// the operation that comes after it.
func TestSpare(t *testing.T) {
	s := &program.Schedule{Streams: []program.Stream{{Engine: space.Compute},
		{Engine: space.CopyIn}}}
	for _, id := range []graph.NodeID{-1, 0, -1, 1, 0, 2, 3} {
		e := program.Event{Node: id, Src: program.NoStay, Dst: program.NoStay}
		if id < 0 {
			e = program.Event{Stream: 1}
		}
		s.Events = append(s.Events, e)
	}
	k := &Sketch{schedule: s, align: space.Line, slots: []plan.Slot{
		{Space: space.Device, Off: 0, Bytes: 1024, From: 0, To: 6, Fixed: true},
		{Space: space.Device, Off: 896, Bytes: 128, From: 0, To: 6},
		{Space: space.Device, Off: 960, Bytes: 100, From: 2, To: 4},
		{Space: space.Device, Off: 1088, Bytes: 64, From: 4, To: 5},
		{Space: space.Host, Off: 4096, Bytes: 64, From: 0, To: 6},
	}}
	first := k.Spare(4, 1024, nil)
	if want := []int64{0, 128, 192, 64}; !slices.Equal(first, want) {
		t.Errorf("%d bytes are spared, want %d", first, want)
	}
	if got := k.Spare(4, 1088, first); !slices.Equal(got, []int64{0, 128, 256, 128}) {
		t.Errorf("then %d", got)
	}
}
