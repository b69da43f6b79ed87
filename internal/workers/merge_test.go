package workers

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// watchful is a part in a run that notes what its worker has, and waits before one of its steps.
type watchful struct {
	*between
	wait           func()
	steps          int
	begun, settled []float32 // all that the worker shares
	first, kept    []float32 // what its optimizer had then
}

// Begin notes what the worker begins with.
func (w *watchful) Begin(ctx context.Context, s *gomem.Session) error {
	err := w.between.Begin(ctx, s)
	w.begun, w.first = w.now(), optimizers(s)
	return err
}

// Step waits.
func (w *watchful) Step(ctx context.Context, s *gomem.Session) error {
	if w.steps++; w.steps == 13 && w.wait != nil {
		w.wait()
	}
	return w.between.Step(ctx, s)
}

// Settle notes what the worker has come to.
func (w *watchful) Settle(ctx context.Context, s *gomem.Session) error {
	err := w.between.Settle(ctx, s)
	w.settled, w.kept = w.now(), optimizers(s)
	return err
}

// now is all that the worker shares.
func (w *watchful) now() (all []float32) {
	for _, p := range w.params {
		all = append(all, p.Data...)
	}
	return all
}

// optimizers are the variables that are each worker's own.
func optimizers(s *gomem.Session) (all []float32) {
	for _, v := range s.Variables() {
		if x, err := s.Get(v); err == nil && !train.Learnt(v.Node.Graph())(v) {
			all = append(all, x.F32()...)
		}
	}
	return all
}

// meeting is a run of three workers to whom another one comes, always after the same step.
func meeting(t *testing.T, scheme string) (all [4]*watchful, sha string) {
	c := &course{site: newSite(4), scheme: scheme, least: 2, wait: time.Minute}
	var there sync.WaitGroup
	there.Add(3)
	late := make(chan *ended, 1)
	come := sync.OnceFunc(func() {
		c.come(3)
		go func() { late <- c.work(t, 3) }()
	})
	c.own = func(_ distrib.NodeID, o *train.Options) { o.Steps = 60 }
	var mu sync.Mutex
	c.parts = func(m *Member, p *train.Parallel) {
		mu.Lock()
		defer mu.Unlock()
		id := m.at().view.Self
		all[id] = &watchful{between: p.Between.(*between)}
		if p.Between = all[id]; id < 3 {
			all[id].wait = func() {
				there.Done()
				there.Wait()
				come()
				for !m.Changed() {
					_, _, next := m.views.now()
					if !m.Changed() {
						<-next
					}
				}
			}
		}
	}
	out := c.all(t, 3)
	for id, e := range append(out, <-late) {
		if e.err != nil || e.Steps != 60 || e.Workers != 4 || len(out[0].changes()) != 1 {
			t.Fatalf("%s: worker %d: %v, %+v, %v", scheme, id, e.err, e.Summary, out[0].changes())
		}
	}
	return all, out[0].WeightsSHA256
}

// TestComesToTheMean: where each worker has a replica of its own, who comes begins with the mean
// of the others', to the bit that adding up by rank and dividing give, and with the first one's
// optimizer; where replicas have an owner, with what the first worker has. Workers that wait for
// each other end with the same bits every time.
func TestComesToTheMean(t *testing.T) {
	schemes := []string{"average", "bsp", "easgd", "lossy", "orpheus", "svb", "exponential",
		"halton"}
	for _, scheme := range schemes[:longtest.Count(2, len(schemes))] {
		all, sha := meeting(t, scheme)
		want, differ := slices.Clone(all[0].settled), false
		for i := range want {
			a, b, c := all[0].settled[i], all[1].settled[i], all[2].settled[i]
			if differ = differ || a != b || b != c; scheme != "bsp" {
				want[i] = (a + b + c) / 3
			}
		}
		if !slices.Equal(all[3].begun, want) {
			t.Errorf("%s: who comes begins with other weights than the others' mean", scheme)
		}
		if !slices.Equal(all[3].first, all[0].kept) || len(all[3].first) == 0 {
			t.Errorf("%s: who comes has another optimizer than the first worker", scheme)
		}
		own := scheme == "average" || scheme == "easgd" || scheme == "lossy"
		if own && !differ || scheme == "bsp" && differ {
			t.Errorf("%s: replicas differ before: %v", scheme, differ)
		}
		if !own && scheme != "bsp" || scheme == "lossy" {
			continue // updates come when they come
		}
		if _, again := meeting(t, scheme); again != sha {
			t.Errorf("%s: other weights the second time", scheme)
		}
	}
}

// noted is a task that says from where it begins, and to what it has come after each epoch.
type noted struct {
	Task
	from, after func(x workload.State)
}

// Run notes.
func (n noted) Run(ctx context.Context, s distrib.Synchronizer, w workload.Worker) error {
	if w.From != nil {
		n.from(*w.From)
	}
	between := w.Between
	w.Between = func(ctx context.Context, x workload.State) (bool, error) {
		n.after(workload.State{Epoch: x.Epoch, Rows: [][]float32{slices.Clone(x.Rows[0])}})
		return between(ctx, x)
	}
	return n.Task.Run(ctx, s, w)
}

// TestLearnersMean: who comes to learners with replicas of their own begins with the mean.
func TestLearnersMean(t *testing.T) {
	s := &school{site: newSite(4), scheme: "lossy", least: 2, epochs: 30}
	late := make(chan pupil, 1)
	come := sync.OnceFunc(func() {
		s.come(3)
		go func() { late <- s.work(t, 3) }()
	})
	s.at = func(id distrib.NodeID, epoch int) {
		if id == 0 && epoch == 3 {
			come()
		}
	}
	var mu sync.Mutex
	begun, had := workload.State{}, map[distrib.NodeID]map[int][]float32{}
	s.wraps = func(id distrib.NodeID, task Task) Task {
		mu.Lock()
		defer mu.Unlock()
		had[id] = map[int][]float32{}
		return noted{task, func(x workload.State) {
			if mu.Lock(); id == 3 {
				begun = x
			}
			mu.Unlock()
		}, func(x workload.State) {
			mu.Lock()
			had[id][x.Epoch] = x.Rows[0]
			mu.Unlock()
		}}
	}
	for id, p := range append(s.all(t, 3), <-late) {
		if p.err != nil {
			t.Fatalf("worker %d: %v", id, p.err)
		}
	}
	a, b, c := had[0][begun.Epoch], had[1][begun.Epoch], had[2][begun.Epoch]
	if begun.Epoch < 1 || slices.Equal(a, b) {
		t.Fatalf("it comes after epoch %d, replicas alike: %v", begun.Epoch, slices.Equal(a, b))
	}
	for i, x := range begun.Rows[0] {
		if x != (a[i]+b[i]+c[i])/3 {
			t.Fatalf("number %d is %v, of %v, %v and %v", i, x, a[i], b[i], c[i])
		}
	}
}
