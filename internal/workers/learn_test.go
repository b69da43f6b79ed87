package workers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/internal/longtest"
)

// pupil is what came of a member's part in a task.
type pupil struct {
	Learnt
	err   error
	told  []workload.Progress
	views []string
}

// school has members learn a task on a site.
type school struct {
	*site
	scheme string
	least  int
	epochs int
	mf     bool
	// at is called by a worker in the middle of an epoch, the first time that it comes there.
	at func(id distrib.NodeID, epoch int)
	// ctx is a worker's; nil: the test's.
	ctx func(id distrib.NodeID) context.Context
	// wraps makes another task of a worker's; nil: it stays.
	wraps func(id distrib.NodeID, t Task) Task
}

// hooked is a task that calls a function within every epoch.
type hooked struct {
	Task
	clocks int
	at     func(epoch int)
}

func (h hooked) Run(ctx context.Context, s distrib.Synchronizer, w workload.Worker) error {
	n := 0
	if w.From != nil {
		n = w.From.Epoch * h.clocks
	}
	w.Compute = func(context.Context, float64) error {
		if n++; n%h.clocks == h.clocks/2 {
			h.at(n / h.clocks)
		}
		return nil
	}
	return h.Task.Run(ctx, s, w)
}

func (s *school) task(slack int) Task {
	if s.scheme == "stratified" {
		return &workload.Strata{Data: workload.LowRank(1, 60, 40, 4, 2000, 0.1), Rank: 4, Seed: 1,
			Epochs: s.epochs, Rate: 0.05}
	}
	if s.mf {
		return &workload.MF{Data: workload.LowRank(1, 60, 40, 4, 2000, 0.1), Rank: 4, Seed: 1,
			Epochs: s.epochs, Clocks: 4, Rate: 0.05, Lambda: 0.01, Slack: slack, Losses: true,
			Both: true}
	}
	train, test := workload.Covertype(1, 300, 50)
	return &workload.MLR{Train: train, Test: test, Epochs: s.epochs, Clocks: 4, Rate: 0.01,
		Slack: slack, Losses: true}
}

func (s *school) work(t *testing.T, id distrib.NodeID) (p pupil) {
	m, err := s.join(id, s.scheme, s.least, time.Minute, nil)
	if err != nil {
		p.err = err
		return p
	}
	ctx := t.Context()
	if s.ctx != nil {
		ctx = s.ctx(id)
	}
	var task Task = hooked{s.task(m.scheme.Lag()), 4, func(epoch int) {
		if s.at != nil {
			s.at(id, epoch)
		}
	}}
	if s.wraps != nil {
		task = s.wraps(id, task)
	}
	p.Learnt, p.err = m.Learn(ctx, task, Learning{Settings: fmt.Sprint(s.mf, s.epochs),
		Total: func(x workload.Progress) { p.told = append(p.told, x) },
		View:  func(text string, _ int) { p.views = append(p.views, text) }})
	p.err = m.Close(p.err)
	s.leave(id)
	return p
}

func (s *school) all(t *testing.T, n int) []pupil {
	t.Helper()
	out := make([]pupil, n)
	var wg sync.WaitGroup
	var ids []distrib.NodeID
	for i := range n {
		ids = append(ids, distrib.NodeID(i))
	}
	s.come(ids...)
	for _, id := range ids {
		wg.Go(func() { out[id] = s.work(t, id) })
	}
	wg.Wait()
	return out
}

// epochs demands that worker 0 was told of every epoch once, in order, and is the last mean
// loss.
func (p pupil) epochs(t *testing.T, name string, n int) float64 {
	t.Helper()
	for i, x := range p.told {
		if x.Epoch != i {
			t.Errorf("%s: epoch %d is told after %d others", name, x.Epoch, i)
		}
	}
	if len(p.told) != n+1 || p.err != nil {
		t.Fatalf("%s: %d epochs, want %d; %v; %v", name, len(p.told), n+1, p.err, p.views)
	}
	return p.told[n].Mean()
}

// TestLearnersComeAndGo: who is lost in the middle of an epoch costs that epoch and nothing
// else; who comes is let in after an epoch; and in the end the loss is no worse than that of
// workers of whom none was lost. With pf it is at least a quarter below what it was at first.
func TestLearnersComeAndGo(t *testing.T) {
	longtest.Skip(t)
	const epochs = 12
	for _, scheme := range []string{"bosen", "ssp", "bsp", "pf", "average"} {
		for _, mf := range []bool{false, true} {
			name := fmt.Sprint(scheme, " mf ", mf)
			whole := &school{site: newSite(4), scheme: scheme, least: 2, epochs: epochs, mf: mf}
			first := whole.all(t, 3)[0]
			want := first.epochs(t, name, epochs)
			if scheme == "pf" { // how much its filter holds back, which changes lose, is chance
				want = first.told[0].Mean() * 3 / 4
			}
			s := &school{site: newSite(4), scheme: scheme, least: 2, epochs: epochs, mf: mf}
			lost, late := make(chan struct{}), make(chan pupil, 1)
			kill := sync.OnceFunc(func() { s.kill(1); close(lost) })
			come := sync.OnceFunc(func() {
				s.come(3)
				go func() { late <- s.work(t, 3) }()
				time.Sleep(20 * time.Millisecond)
			})
			s.at = func(id distrib.NodeID, epoch int) {
				switch {
				case id == 1 && epoch == 3:
					kill()
				case id == 0 && epoch == 6:
					<-lost
					come()
				}
			}
			out := s.all(t, 3)
			have := out[0].epochs(t, name, epochs)
			if have > 1.05*want { // fewer workers may get farther
				t.Errorf("%s: loss %.4f, of workers of whom none is lost %.4f", name, have, want)
			}
			said := strings.Join(out[0].views, ", ")
			if !strings.HasPrefix(said, "worker 1 is gone; 2 go on after epoch ") ||
				!strings.Contains(said, ", worker 3 is here; 3 go on after epoch ") {
				t.Errorf("%s: %s", name, said)
			}
			for id, p := range []pupil{out[0], out[2], <-late} {
				if p.err != nil || p.Learnt != (Learnt{}) {
					t.Errorf("%s: worker %d: %v, %+v", name, id, p.err, p.Learnt)
				}
			}
		}
	}
}

// crowded is a task whose workers each call a function between epochs.
type crowded struct {
	Task
	at func(epoch int)
}

func (c crowded) Run(ctx context.Context, s distrib.Synchronizer, w workload.Worker) error {
	between := w.Between
	w.Between = func(ctx context.Context, x workload.State) (bool, error) {
		c.at(x.Epoch)
		return between(ctx, x)
	}
	return c.Task.Run(ctx, s, w)
}

// TestScheduledComeAndGo: workers who have a schedule form another one for those who are left, and
// for who has come, from the state of the last epoch.
func TestScheduledComeAndGo(t *testing.T) {
	longtest.Skip(t)
	const epochs = 12
	whole := &school{site: newSite(4), scheme: "stratified", least: 2, epochs: epochs}
	want := whole.all(t, 3)[0].ended(t, epochs)
	s := &school{site: newSite(4), scheme: "stratified", least: 2, epochs: epochs}
	lost, late := make(chan struct{}), make(chan pupil, 1)
	kill := sync.OnceFunc(func() { s.kill(1); close(lost) })
	come := sync.OnceFunc(func() {
		s.come(3)
		go func() { late <- s.work(t, 3) }()
		time.Sleep(20 * time.Millisecond)
	})
	s.wraps = func(id distrib.NodeID, task Task) Task {
		return crowded{task, func(epoch int) {
			switch {
			case id == 1 && epoch == 3:
				kill()
			case id == 0 && epoch == 6:
				<-lost
				come()
			}
		}}
	}
	out := s.all(t, 3)
	if have := out[0].ended(t, epochs); have > 1.05*want {
		t.Errorf("loss %.4f, of workers of whom none is lost %.4f", have, want)
	}
	said := strings.Join(out[0].views, ", ")
	if !strings.HasPrefix(said, "worker 1 is gone; 2 go on after epoch ") ||
		!strings.Contains(said, ", worker 3 is here; 3 go on after epoch ") {
		t.Error(said)
	}
	for id, p := range []pupil{out[0], out[2], <-late} {
		if p.err != nil || p.Learnt != (Learnt{}) {
			t.Errorf("worker %d: %v, %+v", id, p.err, p.Learnt)
		}
	}
}

// ended demands that worker 0 was told of each epoch once, in order, and is the last mean loss.
func (p pupil) ended(t *testing.T, n int) float64 {
	t.Helper()
	for i, x := range p.told {
		if x.Epoch != i+1 {
			t.Errorf("epoch %d is told after %d others", x.Epoch, i)
		}
	}
	if len(p.told) != n || p.err != nil {
		t.Fatalf("%d epochs, want %d; %v; %v", len(p.told), n, p.err, p.views)
	}
	return p.told[n-1].Mean()
}

// TestLearnersLeave: a worker that is to end goes after the epoch, and the others go on; if it
// is the first, all end.
func TestLearnersLeave(t *testing.T) {
	for leaver, want := range []Learnt{{Epoch: 4, Stopped: true}, {Epoch: 4, Left: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		s := &school{site: newSite(3), scheme: "bosen", least: 2, epochs: 9}
		s.ctx = func(id distrib.NodeID) context.Context {
			if int(id) == leaver {
				return ctx
			}
			return t.Context()
		}
		s.at = func(id distrib.NodeID, epoch int) {
			if int(id) == leaver && epoch == 3 {
				cancel()
			}
		}
		out := s.all(t, 3)
		for id, p := range out {
			due := Learnt{}
			if id == leaver || leaver == 0 {
				due = want
			}
			if p.err != nil || p.Learnt != due {
				t.Errorf("worker %d leaves: worker %d: %v, %+v, want %+v", leaver, id, p.err,
					p.Learnt, due)
			}
		}
		if leaver == 1 {
			out[0].epochs(t, "leaver", 9)
		}
		cancel()
	}
}

// TestLearnersTooFew: fewer than are needed end with the reason; and learners of other
// settings are found out.
func TestLearnersTooFew(t *testing.T) {
	longtest.Skip(t)
	s := &school{site: newSite(2), scheme: "bsp", least: 2, epochs: 9}
	kill := sync.OnceFunc(func() { s.kill(1) })
	s.at = func(id distrib.NodeID, epoch int) {
		if id == 1 && epoch == 2 {
			kill()
		}
	}
	s.ctx = func(id distrib.NodeID) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	if p := s.all(t, 2)[0]; p.err == nil || !strings.Contains(p.err.Error(),
		"1 worker is left, --min is 2") {
		t.Errorf("%v", p.err)
	}
	other := &school{site: newSite(2), scheme: "bsp", least: 1, epochs: 9}
	other.come(0, 1)
	errs := make(chan error, 2)
	for id := range distrib.NodeID(2) {
		go func() {
			own := *other
			own.epochs += int(id)
			errs <- own.work(t, id).err
		}()
	}
	for range 2 {
		if err := <-errs; err == nil || !strings.Contains(err.Error(), "has other settings") {
			t.Errorf("%v", err)
		}
	}
}
