package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomem/gomem/executor"
	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/device/null"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// hook is called by every kernel of the tests' operations with its number, in the
// middle of its work.
var hook atomic.Pointer[func(n int) error]

func call(n int) error {
	if f := hook.Load(); f != nil {
		return (*f)(n)
	}
	return nil
}

// affine is 2x + N; bump adds x to a variable, in two halves.
type (
	affine struct{ N int }
	bump   struct{ N int }
)

// quick is what they take.
var quick = graph.Cost{FLOPs: 4, Bytes: 32}

func (affine) Name() string                                 { return "affine" }
func (affine) Infer(in []graph.Type) ([]graph.Type, error)  { return in[:1], nil }
func (affine) Cost(_, _ []graph.Type) graph.Cost            { return quick }
func (affine) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }

func (bump) Name() string                                 { return "bump" }
func (bump) Infer([]graph.Type) ([]graph.Type, error)     { return nil, nil }
func (bump) Cost(_, _ []graph.Type) graph.Cost            { return quick }
func (bump) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }

func init() {
	kernel.Register(kernel.CPU, func(o affine, c *kernel.Call) error {
		for i, x := range c.In[0].F32() {
			c.Out[0].F32()[i] = 2*x + float32(o.N)
		}
		return call(o.N)
	})
	kernel.Register(kernel.CPU, func(o bump, c *kernel.Call) error {
		v, x := c.In[0].F32(), c.In[1].F32()
		half := len(v) / 2
		for i := range v[:half] {
			v[i] += x[i]
		}
		err := call(o.N)
		for i := half; i < len(v) && err == nil; i++ {
			v[i] += x[i]
		}
		return err
	})
}

// trainer is a plan of a graph with three variables, each read by a chain of
// operations and updated by one of their results, and a device that runs it.
type trainer struct {
	plan   *plan.Plan
	device device.Device
	exec   *executor.Executor
	kernel int // operations, which are numbered from 0
}

func newTrainer(t *testing.T, o planner.Options, listen trace.Listener) *trainer {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: 1, Listener: listen})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return newTrainerOn(t, d, o)
}

func newTrainerOn(t *testing.T, d device.Device, o planner.Options) *trainer {
	t.Helper()
	g := graph.New()
	ty := tensor.Of(graph.F32, 4)
	x := g.Input("x", ty)
	out := &trainer{device: d}
	op := func(in graph.Value) graph.Value {
		out.kernel++
		return g.Apply(affine{N: out.kernel - 1}, in).Value(0)
	}
	target := planner.Target{Name: "train"}
	for i := range 3 {
		v := g.Variable(fmt.Sprintf("v%d", i), ty, graph.Init{})
		x = op(x)
		u := g.Update(bump{N: out.kernel}, []graph.Value{v}, op2(g, x, op(v)))
		out.kernel++
		target.Updates = append(target.Updates, u.ID)
	}
	target.Fetches = []graph.Value{op(x)}
	r, err := planner.Compile(context.Background(), g, target, o)
	if err != nil {
		t.Fatal(err)
	}
	out.plan = r.Plan
	if out.exec, err = executor.New(d, executor.NewStreams(d), memories(t, d, r.Plan), r.Plan,
		g); err != nil {
		t.Fatal(err)
	}
	return out
}

// sum is x + y.
type sum struct{}

func (sum) Name() string                                 { return "sum" }
func (sum) Infer(in []graph.Type) ([]graph.Type, error)  { return in[:1], nil }
func (sum) Cost(_, _ []graph.Type) graph.Cost            { return graph.Cost{} }
func (sum) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }

func init() {
	kernel.Register(kernel.CPU, func(_ sum, c *kernel.Call) error {
		for i, x := range c.In[0].F32() {
			c.Out[0].F32()[i] = x + c.In[1].F32()[i]
		}
		return nil
	})
}

func op2(g *graph.Graph, x, y graph.Value) graph.Value { return g.Apply(sum{}, x, y).Value(0) }

// step feeds and runs once.
func (r *trainer) step(ctx context.Context) ([]byte, error) {
	r.exec.Begin()
	x := tensor.FromF32([]float32{1, 2, 3, 4}, 4)
	if err := r.exec.Write(r.plan.Feeds[0], x.Data); err != nil {
		return nil, err
	}
	if err := r.exec.Run(ctx); err != nil {
		return nil, err
	}
	out := make([]byte, 16)
	return out, r.exec.Fetch(r.plan.Fetches[0], out)
}

// variables are the values of all variables, by name.
func (r *trainer) variables(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, b := range r.plan.Variables {
		all[b.Name] = make([]byte, 16)
		if err := r.exec.Read(b, all[b.Name]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func (r *trainer) set(t *testing.T, values map[string][]byte) {
	t.Helper()
	for _, b := range r.plan.Variables {
		if err := r.exec.Write(b, values[b.Name]); err != nil {
			t.Fatal(err)
		}
	}
}

var schedules = map[string]planner.Options{
	"vanilla":              {Policy: planner.Vanilla},
	"vanilla, two streams": {Policy: planner.Vanilla, Streams: 2},
	"thesis":               {}, "partitions of one": {Partition: 1, Lookahead: 1},
	"partitions of two, three streams": {Partition: 2, Streams: 3},
	"no placement":                     {NoPlacement: true, Partition: 2},
}

// survives demands what every failed run promises: a variable that is not named as
// torn has its bits from before; and when the torn ones have them too, the next
// run gives what it would have given.
func (r *trainer) survives(t *testing.T, what string, err error, before, want map[string][]byte) {
	t.Helper()
	run, ok := errors.AsType[*executor.RunError](err)
	if !ok {
		t.Fatalf("%s: error is %v", what, err)
	}
	for name, v := range r.variables(t) {
		if !slices.Contains(run.Torn, name) && !bytes.Equal(v, before[name]) {
			t.Errorf("%s: %s has changed, torn are only %v", what, name, run.Torn)
		}
	}
	hook.Store(nil)
	r.set(t, before)
	if _, err := r.step(context.Background()); err != nil {
		t.Fatalf("%s: the next run: %v", what, err)
	}
	for name, v := range r.variables(t) {
		if !bytes.Equal(v, want[name]) {
			t.Errorf("%s: %s is wrong after the next run", what, name)
		}
	}
	r.set(t, before)
}

// baseline runs once to know where the variables come from and go to.
func (r *trainer) baseline(t *testing.T) (before, want map[string][]byte) {
	t.Helper()
	if _, err := r.step(context.Background()); err != nil {
		t.Fatal(err)
	}
	before = r.variables(t)
	if _, err := r.step(context.Background()); err != nil {
		t.Fatal(err)
	}
	want = r.variables(t)
	r.set(t, before)
	return before, want
}

var errHook = errors.New("hook")

// TestErrorAtEveryKernel: whatever kernel fails or panics, the variables that are
// not as before are named, and no others, and the
// executor goes on.
func TestErrorAtEveryKernel(t *testing.T) {
	defer hook.Store(nil)
	for name, o := range schedules {
		t.Run(name, func(t *testing.T) {
			r := newTrainer(t, o, nil)
			before, want := r.baseline(t)
			for k := range r.kernel {
				for _, panics := range []bool{false, true} {
					begun := make([]atomic.Bool, r.kernel)
					fail := func(n int) error {
						begun[n].Store(true)
						if n == k && panics {
							panic(errHook)
						}
						if n == k {
							return errHook
						}
						return nil
					}
					hook.Store(&fail)
					_, err := r.step(context.Background())
					if pe, ok := errors.AsType[*plan.Error](err); !ok || pe.Step < 0 {
						t.Fatalf("kernel %d: error is %v", k, err)
					}
					run, _ := errors.AsType[*executor.RunError](err)
					if want := updated(begun); !slices.Equal(run.Torn, want) {
						t.Errorf("kernel %d: torn are %v, written were %v", k, run.Torn, want)
					}
					r.survives(t, fmt.Sprintf("kernel %d", k), err, before, want)
				}
			}
		})
	}
}

// updated names the variables whose updates have begun, by kernel number.
func updated(begun []atomic.Bool) []string {
	var names []string
	for i := range 3 {
		if begun[3*i+2].Load() {
			names = append(names, fmt.Sprintf("v%d", i))
		}
	}
	return names
}

// TestStopAtEveryStep: if the context ends, or the device is stopped, right after
// any step of the plan, copies included, what has changed is named and the executor
// goes on. If nothing was left to do, the run is a success.
func TestStopAtEveryStep(t *testing.T) {
	for name, o := range schedules {
		for _, by := range []string{"context", "device"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				var at atomic.Pointer[func(step int)]
				r := newTrainer(t, o, func(e trace.Event) {
					if f := at.Load(); f != nil {
						(*f)(e.Step)
					}
				})
				before, want := r.baseline(t)
				for k := range r.plan.Steps {
					ctx, cancel := context.WithCancel(context.Background())
					stop := func(step int) {
						switch {
						case step != k:
						case by == "context":
							cancel()
						default:
							r.device.Stop(errHook)
						}
					}
					at.Store(&stop)
					_, err := r.step(ctx)
					at.Store(nil)
					cancel()
					if err == nil {
						r.mustEqual(t, want)
						r.set(t, before)
						continue
					}
					if !errors.Is(err, context.Canceled) && !errors.Is(err, errHook) {
						t.Fatalf("step %d: error is %v", k, err)
					}
					r.survives(t, fmt.Sprintf("step %d", k), err, before, want)
				}
			})
		}
	}
}

func (r *trainer) mustEqual(t *testing.T, want map[string][]byte) {
	t.Helper()
	for name, v := range r.variables(t) {
		if !bytes.Equal(v, want[name]) {
			t.Errorf("%s is not what a whole run makes of it", name)
		}
	}
}

// TestCancelRace: a context may end at any time, also just as the run does; the
// next run is never its victim.
func TestCancelRace(t *testing.T) {
	r := newTrainer(t, planner.Options{Partition: 2}, nil)
	before, want := r.baseline(t)
	for range 300 {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		if _, err := r.step(ctx); err != nil {
			r.survives(t, "race", err, before, want)
			continue
		}
		r.mustEqual(t, want)
		r.set(t, before)
		if _, err := r.step(context.Background()); err != nil {
			t.Fatal("the run after:", err)
		}
		r.set(t, before)
	}
}

// spy is a device that counts what is queued, and whose Stop takes its time.
type spy struct {
	device.Device
	queued int
	delay  time.Duration
}

type spyStream struct {
	device.Stream
	spy *spy
}

func (s *spy) Stream(name string, e space.Engine) (device.Stream, error) {
	st, err := s.Device.Stream(name, e)
	return spyStream{st, s}, err
}

func (s spyStream) Run(tasks ...device.Task) {
	s.spy.queued += len(tasks)
	s.Stream.Run(tasks...)
}

func (s *spy) Stop(cause error) {
	time.Sleep(s.delay)
	s.Device.Stop(cause)
}

// TestStopsIssuing: a run that is stopped does not go on queuing.
func TestStopsIssuing(t *testing.T) {
	d := &spy{Device: null.Open()}
	r := newTrainerOn(t, d, planner.Options{})
	if _, err := r.step(context.Background()); err != nil || d.queued != len(r.plan.Steps) {
		t.Fatalf("%d of %d tasks are queued: %v", d.queued, len(r.plan.Steps), err)
	}
	d.queued = 0
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.step(ctx); !errors.Is(err, context.Canceled) || d.queued > 0 {
		t.Errorf("%d tasks are queued: %v", d.queued, err)
	}
	d.Stop(errHook)
	if _, err := r.step(context.Background()); !errors.Is(err, errHook) || d.queued > 0 {
		t.Errorf("%d tasks are queued on a device that was stopped: %v", d.queued, err)
	}
	if _, err := r.step(context.Background()); err != nil || d.queued == 0 {
		t.Errorf("the next run: %v", err)
	}
}

// TestLateStop: a context that ends with the run stops that run or none: never the
// next, though stopping takes longer than what was left to do.
func TestLateStop(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	last := -1
	listen := func(e trace.Event) {
		if e.Step == last {
			cancel()
		}
	}
	c, err := cpu.Open(cpu.Options{Threads: 1, Listener: listen})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	r := newTrainerOn(t, &spy{Device: c, delay: 20 * time.Millisecond}, planner.Options{})
	_, want := r.baseline(t)
	last = len(r.plan.Steps) - 1
	if _, err := r.step(ctx); err != nil {
		t.Errorf("nothing was left to do: %v", err)
	}
	r.mustEqual(t, want)
	for range 4 {
		if _, err := r.step(context.Background()); err != nil {
			t.Errorf("a run after that: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestWrongPredictionTearsNothingSilently: a run whose memory is not what was
// predicted names what it wrote.
func TestWrongPredictionTearsNothingSilently(t *testing.T) {
	r := newTrainer(t, planner.Options{}, nil)
	r.plan.Spaces[0].Bytes++
	_, err := r.step(context.Background())
	run, ok := errors.AsType[*executor.RunError](err)
	if !ok || !slices.Equal(run.Torn, []string{"v0", "v1", "v2"}) {
		t.Errorf("error is %v: %+v", err, run)
	}
}
