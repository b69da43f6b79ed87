package schedule

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/program/programtest"
)

// TestSchedule holds schedules of random programs to their contract, as books of another make
// out, and to what is promised of this package's alone.
func TestSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, size := drawProgram(t)
		o := Options{Partition: size, Streams: rapid.IntRange(1, 3).Draw(t, "streams"),
			Prefetch:  rapid.IntRange(0, 30).Draw(t, "prefetch"),
			Lookahead: rapid.IntRange(0, 3).Draw(t, "look-ahead"),
			Unshared:  rapid.Bool().Draw(t, "unshared")}
		s := scheduled(t, p, o)
		if err := programtest.Verify(p, s); err != nil {
			t.Fatal(err)
		}
		var executed []graph.NodeID
		for i := range s.Events {
			if e := &s.Events[i]; !e.Copies() {
				executed = append(executed, e.Node)
			}
		}
		want := slices.DeleteFunc(slices.Clone(p.Order), func(id graph.NodeID) bool {
			return !p.Graph.Node(id).Executes()
		})
		if !slices.Equal(executed, want) {
			t.Fatalf("executes %v in the order %v", executed, want)
		}
		checkOnce(t, s)
		checkPrefetch(t, p, s, o)
		checkLookahead(t, p, s, o)
		o.Prefetch = 0
		least := programtest.Taken(scheduled(t, p, o), space.Device)
		if taken := programtest.Taken(s, space.Device); taken < least {
			t.Fatalf("%d bytes with copies ahead, %d without", taken, least)
		}
	})
}

// scheduled is a program's schedule.
func scheduled(t *rapid.T, p *program.Program, o Options) *program.Schedule {
	q := *p
	if err := Pass(o).Run(&q); err != nil {
		t.Fatal(err)
	}
	return q.Schedule
}

// checkOnce: what is computed has one stay in each space at a time, but for one that nothing but
// the copy from it needs any more.
func checkOnce(t *rapid.T, s *program.Schedule) {
	type place struct {
		value graph.Value
		in    space.ID
	}
	last := make([]int32, len(s.Stays))
	for i := range s.Events {
		s.Events[i].Each(func(id program.StayID) { last[id] = int32(i) })
	}
	until := map[place]int32{}
	for i := range s.Stays {
		y := &s.Stays[i]
		if y.Value.Node.Kind != graph.KindCompute || y.Origin == program.Workspace {
			continue
		}
		at := place{y.Value, y.Space}
		if before, again := until[at]; again && y.From <= before {
			t.Fatalf("%s is on the %s from %d, and was until %d", y.Value, y.Space, y.From, before)
		}
		until[at] = last[i]
	}
}

// checkPrefetch: nothing is on the device for more operations before it is read first, or after
// it is touched last, than copies may run ahead; nor are there any where nothing is copied. What
// is copied away is there for as many operations, or to the end of the partitions in reach.
func checkPrefetch(t *rapid.T, p *program.Program, s *program.Schedule, o Options) {
	begun, ran := operations(p, s)
	first, last := make([]int32, len(s.Stays)), make([]int32, len(s.Stays))
	left := make([]int32, len(s.Stays)) // the copy away, if there is one
	for id := range first {
		first[id] = -1
	}
	for i := range s.Events {
		e := &s.Events[i]
		if e.Copies() {
			left[e.Src] = int32(i)
		}
		e.Each(func(id program.StayID) {
			if first[id] < 0 && e.Dst != id {
				first[id] = int32(i)
			}
			last[id] = int32(i)
		})
	}
	for id := range s.Stays {
		y := &s.Stays[id]
		if y.Space != space.Device || y.Fixed {
			continue
		}
		n := ran[first[id]] - ran[y.From]
		if y.Origin == program.Copied && n > o.Prefetch {
			t.Fatalf("%s comes %d operations early, not %d at most", y.Value, n, o.Prefetch)
		}
		n = ran[y.To] - ran[last[id]]
		if n > o.Prefetch || n > 0 && left[id] == 0 {
			t.Fatalf("%s is there for %d operations after its last use, not %d at most; copied: %v",
				y.Value, n, o.Prefetch, left[id])
		}
		if left[id] > 0 && o.Prefetch > 0 {
			checkLeft(t, s, y, left[id], begun, o)
		}
	}
}

// checkLeft: what is copied away is not overwritten too early.
func checkLeft(t *rapid.T, s *program.Schedule, y *program.Stay, copied int32, begun []int,
	o Options) {
	made, next := copied, int(y.To)+1 // the executions before the copy and after the stay
	for made > 0 && s.Events[made].Copies() {
		made--
	}
	for next < len(s.Events) && s.Events[next].Copies() {
		next++
	}
	reach := 1
	if size := o.Partition; size > 0 {
		reach = max(1, (o.Prefetch+size-1)/size)
	}
	if next < len(s.Events) && begun[next] <= begun[made]+o.Prefetch &&
		int(s.Events[next].Part) <= int(s.Events[made].Part)+reach {
		t.Fatalf("%s, copied at %d, may be overwritten at %d, %d operations later of %d", y.Value,
			copied, next, begun[next]-begun[made], o.Prefetch)
	}
}

// operations are how many there are before each event, of an execution with those that are views,
// and how many were executed before it.
func operations(p *program.Program, s *program.Schedule) (begun, ran []int) {
	begun, ran = make([]int, len(s.Events)), make([]int, len(s.Events))
	pos, all, executed := 0, 0, 0
	for i := range s.Events {
		e := &s.Events[i]
		for ; !e.Copies() && p.Order[pos] != e.Node; pos++ {
			all += p.Graph.Node(p.Order[pos]).Operations()
		}
		begun[i], ran[i] = all, executed
		if !e.Copies() {
			all += p.Graph.Node(e.Node).Operations()
			executed += p.Graph.Node(e.Node).Operations()
			pos++
		}
	}
	return begun, ran
}

// checkLookahead: readers of a part of a variable share its copy if they are as close as is said,
// and no others do.
func checkLookahead(t *rapid.T, p *program.Program, s *program.Schedule, o Options) {
	type part struct {
		leaf      graph.Value
		off, size int64
	}
	type reader struct {
		stay program.StayID
		in   int32
		node graph.NodeID
	}
	before := map[part]reader{}
	for i := range s.Events {
		e := &s.Events[i]
		n := p.Graph.Node(e.Node)
		if e.Copies() || p.Place[n.ID] != space.Device {
			continue
		}
		for k, id := range e.In {
			y := &s.Stays[id]
			root, off := n.In[k].Resolve()
			if y.Fixed || !root.Node.Leaf() || root.Node.Kind == graph.KindInput {
				continue
			}
			at := part{root, off, n.In[k].Type().Bytes()}
			if was, ok := before[at]; ok {
				close := e.Part-was.in <= int32(o.Lookahead) && !o.Unshared || was.node == n.ID
				if close != (was.stay == id) {
					t.Fatalf("%s of partition %d reads %s as partition %d does: %v, within %d",
						n.Name, e.Part, root, was.in, was.stay == id, o.Lookahead)
				}
			}
			before[at] = reader{id, e.Part, n.ID}
		}
	}
}
