package replay

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/gomem/gomem/distrib/fabric"
)

// paper is a setting of the paper's, smaller.
func paper(t *testing.T, name string) Setting {
	t.Helper()
	s, err := Paper(name)
	if err != nil {
		t.Fatal(err)
	}
	s.Workers, s.Hosts = 8, 4
	return s
}

// TestPaper: the nine settings are there, and no others.
func TestPaper(t *testing.T) {
	for _, name := range []string{"C1N1", "C2N3", "C3N2"} {
		if _, err := Paper(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "C1", "N1C1", "C4N1", "C1N11", "C1N1 "} {
		if _, err := Paper(name); err == nil {
			t.Errorf("there is a setting %q", name)
		}
	}
}

// TestAsync: updates miss no more than they may, each is applied at most once, a worker's in order,
// times never go back, and a job is the same each time.
func TestAsync(t *testing.T) {
	for _, name := range []string{"C1N1", "C2N3"} {
		s := paper(t, name)
		s.Delay = 10
		l, err := Async(s, 1000, 500)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Async(s, 1000, 500)
		if err != nil || !reflect.DeepEqual(l, again) {
			t.Errorf("%s: twice, and they differ, %v", name, err)
		}
		if l.Updates() < 500 || l.Dropped == 0 {
			t.Errorf("%s: %d applied, %d dropped", name, l.Updates(), l.Dropped)
		}
		last := make([]int, s.Workers)
		for i, step := range l.Steps {
			b := step.Updates[0]
			if delay := i - b.Version; delay < 0 || int64(delay) > s.Delay {
				t.Fatalf("%s: an update misses %d", name, delay)
			}
			if b.Count < last[b.Worker] || i > 0 && step.At < l.Steps[i-1].At {
				t.Fatalf("%s: step %d: %+v", name, i, step)
			}
			last[b.Worker] = b.Count + 1
		}
	}
}

// TestTogether: an iteration of a ring takes what its slowest link needs for 2(n-1)/n of a model,
// and one of a tree of four what its root needs to send and to receive twice; MLfabric's has each
// worker's update once.
func TestTogether(t *testing.T) {
	s := paper(t, "C1N1")
	s.Straggle, s.Links = Straggle{}, Links{Every: 5, Bps: []float64{gbps(10)}, Share: []float64{1}}
	if l := Ring(s, 10); math.Abs(l.Seconds()/10-(0.1+0.08*1.5)) > 1e-9 {
		t.Errorf("a ring takes %v s an iteration", l.Seconds()/10)
	}
	if l := Tree(s, 10); math.Abs(l.Seconds()/10-(0.1+0.08*4)) > 1e-9 {
		t.Errorf("a tree takes %v s an iteration", l.Seconds()/10)
	}
	l, err := Sync(s, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range l.Steps {
		var workers []int
		for _, b := range step.Updates {
			if workers = append(workers, b.Worker); b.Version != i {
				t.Errorf("iteration %d adds a gradient of version %d", i, b.Version)
			}
		}
		slices.Sort(workers)
		if !slices.Equal(workers, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("iteration %d is of workers %v", i, workers)
		}
	}
}

// TestAggregated: with aggregators the server receives fewer bytes than without, and a replica
// with a wide bound fewer than with a narrow one.
func TestAggregated(t *testing.T) {
	s := paper(t, "C1N1")
	with, err := Async(s, 1000, 200)
	if err != nil {
		t.Fatal(err)
	}
	without, err := Plain(s, 1000, 200)
	if err != nil {
		t.Fatal(err)
	}
	if with.Ingress/float64(with.Updates()) >= without.Ingress/float64(without.Updates()) {
		t.Errorf("%v bytes with aggregators, %v without", with.Ingress, without.Ingress)
	}
	received := func(bound int) float64 {
		s.Replica, s.Bound = true, fabric.Bound{Updates: bound}
		l, err := Async(s, 1000, 200)
		if err != nil {
			t.Fatal(err)
		}
		return l.Replica / float64(l.Updates())
	}
	if narrow, wide := received(1), received(100); wide >= narrow {
		t.Errorf("a replica receives %v bytes an update, %v with a narrower bound", wide, narrow)
	}
}

// TestLearn: a loss falls, and gradients that are late make it fall no faster.
func TestLearn(t *testing.T) {
	task := NewTask(1)
	fresh, late := &Log{}, &Log{}
	for i := range 400 {
		fresh.Steps = append(fresh.Steps, Step{float64(i), []Base{{i % 8, i / 8, i}}})
		late.Steps = append(late.Steps, Step{float64(i), []Base{{i % 8, i / 8, max(0, i-60)}}})
	}
	points := fresh.Learn(task, 0.1, 10)
	first, last := points[0].Loss, points[len(points)-1].Loss
	if len(points) != 40 || last > 0.6*first {
		t.Errorf("%d points, from %v to %v", len(points), first, last)
	}
	goal := 1.1 * last
	soon, _ := fresh.Best(task, goal, 10, []float64{0.05, 0.1, 0.2})
	then, _ := late.Best(task, goal, 10, []float64{0.05, 0.1, 0.2})
	if math.IsInf(soon, 1) || then < soon {
		t.Errorf("a loss of %v after %v s, and after %v with late gradients", goal, soon, then)
	}
}
