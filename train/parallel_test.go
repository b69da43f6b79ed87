package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// hall is where the workers of a test meet: what each has told, in order.
type hall struct {
	mu   sync.Mutex
	told *sync.Cond
	says [][]said // by rank
	gone []error  // by rank: why it left; nil while it is there
}

func newHall(n int) *hall {
	h := &hall{says: make([][]said, n), gone: make([]error, n)}
	h.told = sync.NewCond(&h.mu)
	return h
}

// seat is a worker's place in a hall.
type seat struct {
	*hall
	rank, heard int
}

func (s *seat) Tell(_ context.Context, says []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says[s.rank] = append(s.says[s.rank], said{bytes.Clone(says), everyone})
	s.told.Broadcast()
	return nil
}

func (s *seat) Give(_ context.Context, to int, says []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says[s.rank] = append(s.says[s.rank], said{bytes.Clone(says), to})
	s.told.Broadcast()
	return nil
}

// said is what was told, and whom.
type said struct {
	bytes []byte
	to    int
}

const everyone = -1

func (s *seat) Hear(context.Context) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all [][]byte
	for rank := range s.says {
		for len(s.says[rank]) <= s.heard {
			if s.gone[rank] != nil {
				return nil, fmt.Errorf("worker %d: %w", rank, s.gone[rank])
			}
			s.told.Wait()
		}
		x := s.says[rank][s.heard]
		if x.to != everyone && x.to != s.rank {
			x.bytes = nil
		}
		all = append(all, x.bytes)
	}
	s.heard++
	return all, nil
}

var errDone = errors.New("it has ended")

func (s *seat) Leave(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone[s.rank] == nil {
		s.gone[s.rank] = errors.Join(errDone, why)
	}
	s.told.Broadcast()
}

// averaging sets the variables of all workers to their means after every step, which after
// a step of plain descent is what a step with the mean gradient gives.
type averaging struct {
	*seat
	lag     int
	settled int
	apart   bool // has values of its own in the end
}

func (a *averaging) Begin(context.Context, *gomem.Session) error { return nil }
func (a *averaging) End(context.Context) error                   { return nil }
func (a *averaging) Back(*gomem.Session) error                   { return nil }
func (a *averaging) Lag() int                                    { return a.lag }
func (a *averaging) Settle(_ context.Context, s *gomem.Session) error {
	a.settled++
	if !a.apart {
		return nil
	}
	v := s.Variables()[0]
	x, err := s.Get(v)
	if err != nil {
		return err
	}
	x.F32()[0]++
	return s.Set(v, x)
}

func (a *averaging) Step(ctx context.Context, s *gomem.Session) error {
	for _, v := range s.Variables() {
		mine, err := s.Get(v)
		if err != nil {
			return err
		}
		if err := a.Tell(ctx, mine.Data); err != nil {
			return err
		}
		all, err := a.Hear(ctx)
		if err != nil {
			return err
		}
		mean := tensor.New(v.Type())
		for _, b := range all {
			theirs := tensor.New(v.Type())
			copy(theirs.Data, b)
			for i, x := range theirs.F32() {
				mean.F32()[i] += x / float32(len(all))
			}
		}
		if err := s.Set(v, mean); err != nil {
			return err
		}
	}
	return nil
}

// outcomes are what came of the workers of a run.
type outcomes struct {
	summaries []Summary
	events    [][]Event
	errs      []error
}

// abreast runs workers side by side; each gets its options from one function.
func abreast(n, lag int, options func(rank int) (context.Context, Options),
	own ...func(rank int, a *averaging)) outcomes {
	out := outcomes{make([]Summary, n), make([][]Event, n), make([]error, n)}
	agree, average := newHall(n), newHall(n)
	var wg sync.WaitGroup
	for rank := range n {
		ctx, o := options(rank)
		between := &averaging{seat: &seat{average, rank, 0}, lag: lag}
		for _, f := range own {
			f(rank, between)
		}
		o.Parallel = &Parallel{Rank: rank, Workers: n, Peers: &leaver{&seat{agree, rank, 0},
			between.seat}, Between: between}
		o.Observe = func(e Event) { out.events[rank] = append(out.events[rank], e) }
		wg.Go(func() { out.summaries[rank], out.errs[rank] = Run(ctx, o) })
	}
	wg.Wait()
	return out
}

// leaver leaves two halls.
type leaver struct {
	*seat
	other *seat
}

func (l *leaver) Leave(why error) {
	l.seat.Leave(why)
	l.other.Leave(why)
}

// lesson is a small problem of classes in batches of so many examples.
func lesson(t *testing.T, batch, accumulate int) Options {
	t.Helper()
	const n, width = 240, 5
	x, y := tensor.New(tensor.Of(graph.F32, n, width)), tensor.New(tensor.Of(graph.I32, n))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x.F32() {
		x.F32()[i] = float32(rng.NormFloat64()) + float32(i/width%3)
		y.I32()[i/width] = int32(i / width % 3)
	}
	m := nn.NewModel()
	x0, y0 := m.Input("x", graph.F32, batch, width), m.Input("y", graph.I32, batch)
	net := func(c *nn.Ctx) graph.Value { return nn.Linear(c.In("out"), x0, 3) }
	logits := net(m.Training())
	m.Minimize(nn.CrossEntropy(logits, y0), nn.SGD{}, nn.MinimizeOptions{
		Rate: nn.Constant(0.1), Accumulate: accumulate,
		Metrics: []nn.Metric{nn.Accuracy(logits, y0)}})
	m.Evaluate(nn.CrossEntropy(net(m.Evaluation()), y0))
	l, err := data.FromTensors(data.ExamplesOptions{Batch: batch, HeldOut: 24}, x, y)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Model: m, Loader: l, Epochs: 3, Session: gomem.Options{Threads: 1}, Seed: 5}
}

// TestWorkersAccumulate: n workers do what one does that accumulates n executions: the same
// batches, the same losses, metrics, units and number of steps, and the same weights but for
// rounding.
func TestWorkersAccumulate(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		one := lesson(t, 6, n)
		want := watch(&one)
		var variables []gomem.Tensor
		one.After = func(_ context.Context, s *gomem.Session) (err error) {
			variables, err = valuesOf(s)
			return err
		}
		s, err := Run(t.Context(), one)
		if err != nil || len(*want) == 0 {
			t.Fatalf("%d events, %v", len(*want), err)
		}
		values := make([][]gomem.Tensor, n)
		have := abreast(n, 0, func(rank int) (context.Context, Options) {
			o := lesson(t, 6, 1)
			o.After = func(_ context.Context, s *gomem.Session) (err error) {
				values[rank], err = valuesOf(s)
				return err
			}
			return t.Context(), o
		})
		if err := errors.Join(have.errs...); err != nil {
			t.Fatal(err)
		}
		if got := have.summaries[0]; got.Steps != s.Steps || got.Workers != n ||
			math.Abs(got.EvalLoss-s.EvalLoss) > 1e-6 {
			t.Errorf("%d workers: %+v, one: %+v", n, got, s)
		}
		if len(have.events[0]) != len(*want) {
			t.Fatalf("%d workers: %d events, want %d", n, len(have.events[0]), len(*want))
		}
		for i, e := range *want {
			h := have.events[0][i]
			if h.Kind != e.Kind || h.Step != e.Step || h.Units != e.Units ||
				math.Abs(h.Loss-e.Loss) > 1e-6 ||
				math.Abs(h.Metrics["accuracy"]-e.Metrics["accuracy"]) > 1e-6 {
				t.Errorf("%d workers: %+v, one: %+v", n, h, e)
			}
		}
		compareValues(t, variables, values)
	}
}

// valuesOf are the values of variables in order of their names, but for the states of
// optimizers.
func valuesOf(s *gomem.Session) (out []gomem.Tensor, err error) {
	for _, v := range s.Variables() {
		if v.Node.State {
			continue
		}
		x, err := s.Get(v)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// compareValues demands that all workers have the same bits, which are nearly those wanted.
func compareValues(t *testing.T, want []gomem.Tensor, workers [][]gomem.Tensor) {
	t.Helper()
	for rank, values := range workers {
		for i, x := range values {
			if !bytes.Equal(x.Data, workers[0][i].Data) {
				t.Errorf("variable %d of worker %d differs from worker 0's", i, rank)
			}
			for k, y := range x.F32() {
				if math.Abs(float64(y-want[i].F32()[k])) > 1e-6 {
					t.Fatalf("variable %d, element %d: %v, want %v", i, k, y, want[i].F32()[k])
				}
			}
		}
	}
}

// TestWorkersRepeat: a run of several workers has the same events twice, also when it is
// told of steps late; and it tells of all of them.
func TestWorkersRepeat(t *testing.T) {
	losses := func(lag int) (out []string) {
		have := abreast(3, lag, func(int) (context.Context, Options) {
			o := lesson(t, 6, 1)
			o.EvalEvery = 7
			return t.Context(), o
		})
		if err := errors.Join(have.errs...); err != nil {
			t.Fatal(err)
		}
		for _, e := range have.events[0] {
			if e.Kind == Step || e.Kind == Eval {
				out = append(out, fmt.Sprintf("%s %d %x %v", e.Kind, e.Step, e.Loss, e.Units))
			}
		}
		if n := len(slices.DeleteFunc(slices.Clone(out), func(s string) bool {
			return !strings.HasPrefix(s, Step)
		})); n != have.summaries[0].Steps {
			t.Errorf("lag %d: %d steps are shown of %d", lag, n, have.summaries[0].Steps)
		}
		return out
	}
	want := losses(0)
	for _, lag := range []int{0, 2, 5} {
		if have := losses(lag); !slices.Equal(have, want) {
			t.Errorf("lag %d: %q, want %q", lag, have, want)
		}
	}
}

// TestWorkersStop: when one worker is to stop, all do, after the same step, and worker 0
// saves.
func TestWorkersStop(t *testing.T) {
	dir := t.TempDir() + "/run"
	stopped := func(steps int, resume string) (outcomes, []context.CancelFunc) {
		cancels := make([]context.CancelFunc, 3)
		have := abreast(3, 2, func(rank int) (context.Context, Options) {
			ctx, cancel := context.WithCancel(t.Context())
			cancels[rank] = cancel
			o := lesson(t, 6, 1)
			o.Epochs, o.Steps, o.Save, o.Resume, o.EvalEvery = 0, steps, dir, resume, 5
			if rank == 2 && resume == "" {
				o.Loader = stopping{o.Loader, cancel}
			}
			return ctx, o
		})
		return have, cancels
	}
	have, cancels := stopped(1000, "")
	defer func() {
		for _, cancel := range cancels {
			cancel()
		}
	}()
	for rank, s := range have.summaries {
		if have.errs[rank] != nil || !s.Interrupted || s.Steps < 11 ||
			s.Steps != have.summaries[0].Steps || (s.Checkpoint != "") != (rank == 0) {
			t.Errorf("worker %d: %+v, %v", rank, s, have.errs[rank])
		}
	}
	c, err := Inspect(dir)
	if err != nil || c.Workers != 3 || c.Step != have.summaries[0].Steps {
		t.Fatalf("%+v, %v", c, err)
	}
	again, more := stopped(c.Step+3, dir)
	for rank, s := range again.summaries {
		more[rank]()
		if again.errs[rank] != nil || s.Interrupted || s.Steps != c.Step+3 {
			t.Errorf("worker %d: %+v, %v", rank, s, again.errs[rank])
		}
	}
}

// counted are batches that note which they are.
type counted struct {
	data.Batches
	mu   *sync.Mutex
	made map[int]int
}

func (c counted) Train(i int) data.Batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[i]++
	return c.Batches.Train(i)
}

// TestWorkersChange: a run that goes on with another number of workers has every batch
// once, whether its length is in steps or in passes over the data.
func TestWorkersChange(t *testing.T) {
	dir := t.TempDir()
	made, mu := map[int]int{}, &sync.Mutex{}
	options := func(steps int, save, resume string) Options {
		o := lesson(t, 6, 1)
		o.Epochs, o.Steps, o.Save, o.Resume = 0, steps, save, resume
		return o
	}
	resume, total := "", 0
	for i, n := range []int{3, 1, 1, 2, 3} {
		save := fmt.Sprint(dir, "/", i)
		have := abreast(n, 0, func(int) (context.Context, Options) {
			o := options(5*(i+1), save, resume)
			o.Loader = counted{o.Loader, mu, made}
			return t.Context(), o
		})
		if err := errors.Join(have.errs...); err != nil {
			t.Fatal(err)
		}
		c, err := Inspect(save)
		if err != nil || c.Workers != n && n > 1 {
			t.Fatal(c, err)
		}
		if total += 5 * n; c.Executions != total {
			t.Errorf("%d executions in the checkpoint, want %d", c.Executions, total)
		}
		resume = save
	}
	o := options(0, "", resume)
	each := o.Loader.StepsPerEpoch()
	total = (total/each + 2) * each
	o.Epochs, o.Loader = float64(total/each), counted{o.Loader, mu, made}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	delete(made, 0) // which is made to see whether it fits
	for i := 1; i < total; i++ {
		if made[i] != 1 {
			t.Errorf("batch %d was made %d times", i, made[i])
		}
	}
	if len(made) != total-1 {
		t.Errorf("%d batches, want %d", len(made)+1, total)
	}
}

// stopping are batches of which the one for execution 32, of step 10, is a reason to stop.
type stopping struct {
	data.Batches
	stop func()
}

func (s stopping) Train(i int) data.Batch {
	if i >= 32 {
		s.stop()
	}
	return s.Batches.Train(i)
}

// TestWorkersEndEarly: the patience of worker 0 is all workers'.
func TestWorkersEndEarly(t *testing.T) {
	have := abreast(2, 1, func(int) (context.Context, Options) {
		o := lesson(t, 6, 1)
		o.Epochs, o.Steps, o.EvalEvery = 0, 1000, 2
		o.Patience = Patience{Evaluations: 2, Least: 10}
		return t.Context(), o
	})
	for rank, s := range have.summaries {
		if have.errs[rank] != nil || s.Steps != 6 || !s.StoppedEarly || s.Interrupted {
			t.Errorf("worker %d: %+v, %v", rank, s, have.errs[rank])
		}
	}
}

// failing are batches of files that cannot be read after a while.
type failing struct {
	data.Batches
	reads *int
}

func (b failing) Train(i int) data.Batch { *b.reads++; return b.Batches.Train(i) }

func (b failing) Err() error {
	if *b.reads > 4 {
		return errors.New("the disk is gone")
	}
	return nil
}

// TestWorkerFails: a worker that fails is named to the others with its reason; a loss that
// is not finite ends all at one step; and whoever begins with something else is found out.
func TestWorkerFails(t *testing.T) {
	t.Chdir(t.TempDir())
	other := lesson(t, 6, 1)
	other.Seed++
	other.After = func(_ context.Context, s *gomem.Session) error {
		return s.Save("other.safetensors", gomem.SaveOptions{})
	}
	if _, err := Run(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		own  func(rank int, o *Options)
		want [2]string
	}{
		{"data", func(rank int, o *Options) {
			if rank == 1 {
				o.Loader = failing{o.Loader, new(int)}
			}
		}, [2]string{"worker 1: it has ended\nthe disk is gone", "the disk is gone"}},
		{"seed", func(rank int, o *Options) { o.Seed += uint64(rank) },
			[2]string{"worker 1 has other settings than worker 0: start", "worker 1 has other"}},
		{"values", func(rank int, o *Options) {
			if rank == 1 {
				o.Init = "other.safetensors"
			}
		}, [2]string{"has other values than that of worker 0", "has other values than that"}},
		{"options", func(rank int, o *Options) {
			if rank == 1 {
				o.Steps, o.Epochs = -1, 0
			}
		}, [2]string{"worker 1: it has ended\nsteps: -1 is negative", "steps: -1 is negative"}},
	} {
		have := abreast(2, 0, func(rank int) (context.Context, Options) {
			o := lesson(t, 6, 1)
			c.own(rank, &o)
			return t.Context(), o
		})
		for rank, err := range have.errs {
			if err == nil || !strings.Contains(err.Error(), c.want[rank]) {
				t.Errorf("%s: worker %d: %v, want %q", c.name, rank, err, c.want[rank])
			}
		}
	}
	have := abreast(2, 0, func(rank int) (context.Context, Options) {
		u := unigram{}
		if rank == 1 {
			u.NaNLoss = 8 // the fourth of worker 1
		}
		return t.Context(), toyOptions(t, toy(toyVocab, u))
	})
	for rank, err := range have.errs {
		if e, ok := errors.AsType[*ErrNonFinite](err); !ok || e.Step != 4 ||
			e.What != "loss of worker 1" {
			t.Errorf("worker %d: %v", rank, err)
		}
	}
}

// TestFactorsNobodyTakes: an objective that gives factors in place of updates needs somebody who
// takes them.
func TestFactorsNobodyTakes(t *testing.T) {
	o := lesson(t, 6, 1)
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	o.Model.Objectives[0].Factors = []nn.Factored{{Parameter: o.Model.Parameters()[0]}}
	peers := &seat{newHall(1), 0, 0}
	for _, p := range []*Parallel{nil, {Workers: 1, Peers: peers},
		{Workers: 1, Peers: peers, Between: &averaging{}}} {
		o.Parallel = p
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(),
			"model: objective train gives factors of out/weight") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestBadWorkers: what no worker can be is refused.
func TestBadWorkers(t *testing.T) {
	peers := &seat{newHall(1), 0, 0}
	for want, p := range map[string]Parallel{
		"workers: 2 is no rank of 2":         {Rank: 2, Workers: 2, Peers: peers},
		"workers: -1 is no rank of 2":        {Rank: -1, Workers: 2, Peers: peers},
		"workers: 0 is no rank of 0":         {Peers: peers},
		"workers: they have no way to agree": {Workers: 2},
		"workers: a lag of -1 steps": {Workers: 2, Peers: peers,
			Between: &averaging{lag: -1}},
		"steps: 1.678e+07 are too many: at mo": {Workers: 2, Peers: peers},
		"workers: the processes of a mesh are": {Workers: 2, Peers: peers, Mesh: true,
			Between: &averaging{}},
		"workers: 0 of 2 is not process 0 of the mesh's 1": {Workers: 2, Peers: peers, Mesh: true},
	} {
		o := lesson(t, 6, 1)
		if o.Epochs, o.Steps = 0, 1<<24-1; p.Mesh {
			o.Steps = 1
		}
		o.Parallel = &p
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", p, err, want)
		}
	}
}
