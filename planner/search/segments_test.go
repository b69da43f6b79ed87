package search

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner/program"
)

// TestSegmented: of any program and at every level the schedule is right, needs what it
// is said to, and executes nothing more than once for each of its results again.
func TestSegmented(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := randomProgram(r, t)
		checkSegmented(r, p, New(p, slow()))
	})
}

func checkSegmented(t rapid.TB, p *program.Program, pr *Problem) {
	t.Helper()
	for level := 1; level <= Levels; level++ {
		d := pr.Segmented(level, nil)
		checkDecision(t, p, pr, d)
		if slices.Contains(d.Resident(), true) {
			t.Fatal("a variable is on the device")
		}
		runs := make([]int, p.Graph.Len())
		for _, e := range pr.Schedule(d).Events {
			if !e.Copies() {
				runs[e.Node]++
			}
		}
		for id, n := range runs {
			if of := p.Graph.Node(graph.NodeID(id)); n > 1+len(of.Out) {
				t.Fatalf("level %d: %s runs %d times", level, of.Name, n)
			}
		}
	}
}

// TestSegmentedModels: so of all models; and where the forward pass is long, the host has
// a small part of what it has if everything is swapped, more at finer levels, of which the
// device needs less.
func TestSegmentedModels(t *testing.T) {
	for _, m := range five(t) {
		p := objective(t, m, 0)
		checkSegmented(t, p, New(p, titan()))
	}
	c, err := models.NewResNetConfig("s64")
	if err != nil {
		t.Fatal(err)
	}
	c.Blocks = [4]int{3, 4, 100, 3}
	m, err := models.ResNet(c)
	if err != nil {
		t.Fatal(err)
	}
	p := objective(t, m, 0)
	pr := New(p, titan())
	swapped := pr.leavesBytes()
	all := pr.everythingSwapped().host - swapped
	device, host := int64(plenty), int64(0)
	for level := 1; level <= Levels; level++ {
		d := pr.Segmented(level, nil)
		if has := d.host - swapped; has < host || has > all/4 {
			t.Errorf("level %d: the host has %d bytes of %d, %d one level below", level, has, all,
				host)
		} else {
			host = has
		}
		if d.Peak() > device {
			t.Errorf("level %d: the device needs %d bytes, %d one level below", level, d.Peak(),
				device)
		}
		device = d.Peak()
	}
}

func (pr *Problem) leavesBytes() (sum int64) {
	for i := range pr.leaves {
		sum += pr.leaves[i].bytes
	}
	return sum
}

// everythingSwapped is the decision that computes nothing again.
func (pr *Problem) everythingSwapped() *Decision {
	s := &state{act: slices.Repeat([]action{swap}, len(pr.values)),
		home: make([]home, len(pr.groups)), slack: 62}
	e := newEvaluator(pr, Budget{never, never})
	e.build(s)
	e.budget.Device = e.peak
	e.evaluate(s)
	return e.decision(s)
}

// TestCheapest: cuts are in order and where the least crosses.
func TestCheapest(t *testing.T) {
	crossing := []int64{9, 3, 9, 9, 2, 9, 9, 4, 9, 9, 1, 9, 0}
	saved := []int64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120}
	for count, want := range map[int64][]int32{0: nil, 1: nil, 2: {4}, 4: {1, 4, 7}} {
		if got := cheapest(crossing, saved, count); !slices.Equal(got, want) {
			t.Errorf("%d segments: after %v, want %v", count, got, want)
		}
	}
}
