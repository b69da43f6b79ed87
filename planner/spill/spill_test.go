package spill_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/schedule"
	"github.com/gomem/gomem/planner/spill"
	"github.com/gomem/gomem/swap"
)

// drawn is a random program with a schedule.
func drawn(t *rapid.T) *program.Program {
	m := randgraph.Any(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
	if rapid.Bool().Draw(t, "synthetic") {
		m = randgraph.Synthetic(rapid.IntRange(20, 120).Draw(t, "nodes"))
	}
	size := rapid.SampledFrom([]int{1, 2, 5, 20}).Draw(t, "partition")
	p := program.New(m.Graph, m.Fetches, m.Updates)
	_, err := program.Run(context.Background(), p, []program.Pass{program.DeadCode(),
		partition.Pass(partition.DFS, size), placement.Pass(rapid.Bool().Draw(t, "host")),
		swap.LookAhead(rapid.IntRange(1, 3).Draw(t, "look-ahead")),
		schedule.Pass(schedule.Options{Partition: size, Streams: 1, Lookahead: 1,
			Prefetch: rapid.IntRange(0, 8).Draw(t, "prefetch")})})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// executions are the nodes that a schedule executes, in order.
func executions(s *program.Schedule) []graph.NodeID {
	var list []graph.NodeID
	for i := range s.Events {
		if !s.Events[i].Copies() {
			list = append(list, s.Events[i].Node)
		}
	}
	return list
}

// TestSpill: a schedule with a disk is one of the program; it executes the same, in the
// same order, and does not change what it was made from. Leaves are where they are said
// to be, and more of them on the disk never need more of the host.
func TestSpill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		before := *p.Schedule
		before.Events, before.Stays = slices.Clone(before.Events), slices.Clone(before.Stays)
		order := spill.Order(p)
		n := rapid.IntRange(0, len(order)).Draw(t, "leaves")
		leaves := spill.First(p.Graph, order[:n])
		least := spill.Least(p.Graph, p.Schedule, leaves)
		if n > 0 && spill.Least(p.Graph, p.Schedule, spill.First(p.Graph, order[:n-1])) < least {
			t.Fatal("a leaf more on the disk needs more of the host")
		}
		q := *p
		o := spill.Options{Leaves: leaves, HostBytes: rapid.Int64Range(0, 2*least).Draw(t, "host"),
			Ahead: rapid.Int32Range(0, 20).Draw(t, "ahead")}
		if _, err := program.Run(context.Background(), &q,
			[]program.Pass{spill.Pass(o)}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(executions(p.Schedule), executions(q.Schedule)) {
			t.Fatal("other executions")
		}
		if !reflect.DeepEqual(before, *p.Schedule) {
			t.Fatal("the schedule that it was made from has changed")
		}
		for _, id := range q.Schedule.Variables {
			y := q.Schedule.Stays[id]
			want := p.Place[y.Value.Node.ID]
			if want == space.Host && leaves[y.Value.Node.ID] {
				want = space.Disk
			}
			if y.Space != want || !y.Fixed {
				t.Fatalf("%s is in %s, fixed %v", y.Value, y.Space, y.Fixed)
			}
		}
	})
}
