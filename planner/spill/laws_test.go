package spill_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/program/programtest"
	"github.com/gomem/gomem/planner/schedule"
	"github.com/gomem/gomem/planner/spill"
)

// TestHost: the host's use, recounted at every event by a look at all stays, is within the limit
// wherever that is the least or more, and the least where there is none less; what is read of the
// disk was written there; and the device has what it had.
func TestHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		order := spill.Order(p)
		leaves := spill.First(p.Graph, order[:rapid.IntRange(0, len(order)).Draw(t, "leaves")])
		least := spill.Least(p.Graph, p.Schedule, leaves)
		before := programtest.Taken(p.Schedule, space.Host)
		limits := []int64{0, least, rapid.Int64Range(1, max(1, 2*before)).Draw(t, "limit")}
		ahead := rapid.Int32Range(0, 20).Draw(t, "ahead")
		for _, limit := range limits {
			s := spill.Spill(p.Graph, p.Schedule, spill.Options{Leaves: leaves, HostBytes: limit,
				Ahead: ahead})
			if err := programtest.Verify(p, s); err != nil {
				t.Fatalf("within %d bytes: %v", limit, err)
			}
			host := programtest.Taken(s, space.Host)
			if host < least || limit == 0 && host > least || limit >= least && host > limit {
				t.Fatalf("%d bytes of %d, the least is said to be %d", host, limit, least)
			}
			was, is := programtest.Taken(p.Schedule, space.Device),
				programtest.Taken(s, space.Device)
			if was != is {
				t.Fatalf("the device had %d bytes and has %d", was, is)
			}
			checkVisits(t, s, ahead)
		}
	})
}

// checkVisits: what is read of the disk is used, and no sooner than so many events later.
func checkVisits(t *rapid.T, s *program.Schedule, ahead int32) {
	for i := range s.Events {
		e := &s.Events[i]
		if !e.Copies() || s.Stays[e.Src].Space != space.Disk {
			continue
		}
		others, used := int32(0), false
		for k := i + 1; k < len(s.Events) && !used; k++ {
			next := &s.Events[k]
			disk := next.Copies() && (s.Stays[next.Src].Space == space.Disk ||
				s.Stays[next.Dst].Space == space.Disk)
			next.Each(func(id program.StayID) { used = used || id == e.Dst })
			if !used && !disk {
				others++
			}
		}
		fetched := slices.Contains(s.Fetches, e.Dst)
		if !used && !fetched || !fetched && others > ahead {
			t.Fatalf("event %d reads %s of the disk, used after %d more: %v, want %d at most", i,
				s.Stays[e.Dst].Value, others, used, ahead)
		}
	}
}

// TestPartOfAVisit: where the disk is not needed for an event between two uses, but the second
// needs a part of the value alone, the least is within reach, too.
func TestPartOfAVisit(t *testing.T) {
	g := graph.New()
	weights, gradient := tensor.Of(graph.F32, 85), graph.Init{Scale: 1}
	w, dw := g.Variable("w", weights, gradient), g.Variable("dw", weights, gradient)
	made := ops.Tanh(g.Input("x", tensor.Of(graph.F32, 20)))
	other := ops.Tanh(g.Variable("v", tensor.Of(graph.F32, 4), gradient))
	rate := ops.ReshapeSizes(ops.Slice(made, 0, 0, 1))
	update := ops.SGD(w, dw, rate)
	p := program.New(g, []graph.Value{other}, []graph.NodeID{update.ID})
	created := program.Pass{Name: "created", Run: func(p *program.Program) error {
		p.SetOrder(slices.Sorted(slices.Values(p.Order)))
		return nil
	}}
	_, err := program.Run(t.Context(), p, []program.Pass{program.DeadCode(),
		partition.Pass(partition.DFS, 0), created, placement.Pass(true),
		schedule.Pass(schedule.Options{Streams: 1})})
	if err != nil {
		t.Fatal(err)
	}
	leaves := spill.First(g, []graph.NodeID{dw.Node.ID})
	least := spill.Least(g, p.Schedule, leaves)
	s := spill.Spill(g, p.Schedule, spill.Options{Leaves: leaves, HostBytes: least})
	if host := programtest.Taken(s, space.Host); host != least {
		t.Errorf("%d bytes of the host, not the least of %d", host, least)
	}
}
