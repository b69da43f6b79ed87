package executor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/executor"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// double is 2x; it fails on negative numbers.
type double struct{}

func (double) Name() string                                 { return "double" }
func (double) Infer(in []graph.Type) ([]graph.Type, error)  { return in[:1], nil }
func (double) Cost(_, _ []graph.Type) graph.Cost            { return graph.Cost{} }
func (double) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }

var errNegative = errors.New("a negative number")

func init() {
	kernel.Register(kernel.CPU, func(_ double, c *kernel.Call) error {
		for i, x := range c.In[0].F32() {
			if x < 0 {
				return errNegative
			}
			c.Out[0].F32()[i] = 2 * x
		}
		return nil
	})
}

// bench is a plan for y = 2x on two floats: feed, launch, fetch.
type bench struct {
	g *graph.Graph
	p *plan.Plan
	y graph.Value
}

func newBench() bench {
	g := graph.New()
	ty := tensor.Of(graph.F32, 2)
	x := g.Input("x", ty)
	y := g.Apply(double{}, x).Value(0)
	p := &plan.Plan{
		Digest: g.Digest(),
		Parts:  1,
		Spaces: []plan.Space{{Name: "device", Bytes: 72, Budget: 100, Align: 64},
			{Name: "host", Bytes: 72, Budget: 100, Align: 64}},
		Streams: []plan.Stream{{Name: "compute", Engine: space.Compute},
			{Name: "in", Engine: space.CopyIn}, {Name: "out", Engine: space.CopyOut}},
		Slots: []plan.Slot{
			{Space: 1, Off: 0, Bytes: 8, From: 0, To: 0, Value: "x", Type: ty},
			{Space: 0, Off: 0, Bytes: 8, From: 0, To: 1, Value: "x", Type: ty},
			{Space: 0, Off: 64, Bytes: 8, From: 1, To: 2, Value: "double", Type: ty},
			{Space: 1, Off: 64, Bytes: 8, From: 2, To: 2, Value: "double", Type: ty},
		},
		Feeds:   []plan.Binding{{Node: x.Node.ID, Name: "x", Slot: 0}},
		Fetches: []plan.Fetch{{Value: "double", Ref: plan.Ref{Slot: 3}, Type: ty}},
		Steps: []plan.Step{
			{Node: x.Node.ID, Name: "x", Stream: 1,
				Do: plan.Copy{Src: plan.Ref{Slot: 0}, Dst: plan.Ref{Slot: 1}, Bytes: 8,
					Why: space.Feed}},
			{Node: y.Node.ID, Name: "double", Stream: 0, Wait: []int{0},
				Do: plan.Launch{Op: "double", In: []plan.Ref{{Slot: 1}}, Out: []plan.Ref{{Slot: 2}},
					Scratch: plan.NoSlot}},
			{Node: y.Node.ID, Name: "double", Stream: 2, Wait: []int{1},
				Do: plan.Copy{Src: plan.Ref{Slot: 2}, Dst: plan.Ref{Slot: 3}, Bytes: 8,
					Why: space.Result}},
		},
	}
	return bench{g, p, y}
}

// open makes an executor on a device with memories of the plan's size.
func (b bench) open(t *testing.T) (*executor.Executor, device.Device) {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	e, err := executor.New(d, executor.NewStreams(d), memories(t, d, b.p), b.p, b.g)
	if err != nil {
		t.Fatal(err)
	}
	return e, d
}

// memories are those that a plan needs.
func memories(t *testing.T, d device.Device, p *plan.Plan) []device.Memory {
	t.Helper()
	var all []device.Memory
	for id, s := range p.Spaces {
		m, err := d.Alloc(space.ID(id), s.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func step(e *executor.Executor, b bench, x ...float32) ([]float32, error) {
	e.Begin()
	if err := e.Write(b.p.Feeds[0], tensor.FromF32(x, 2).Data); err != nil {
		return nil, err
	}
	if err := e.Run(context.Background()); err != nil {
		return nil, err
	}
	out := tensor.New(tensor.Of(graph.F32, 2))
	return out.F32(), e.Fetch(b.p.Fetches[0], out.Data)
}

func TestRun(t *testing.T) {
	b := newBench()
	if err := plan.Verify(b.p, b.g, []graph.Value{b.y}, nil); err != nil {
		t.Fatal(err)
	}
	e, _ := b.open(t)
	if e.Ran() {
		t.Error("has run before the first run")
	}
	for i := range 100 {
		got, err := step(e, b, float32(i), 5)
		if err != nil || got[0] != float32(2*i) || got[1] != 10 {
			t.Fatalf("step %d gives %v, %v", i, got, err)
		}
	}
	if p := e.Peak(); p[0] != 72 || p[1] != 72 || !e.Ran() {
		t.Errorf("peaks are %v, ran %v", p, e.Ran())
	}
}

// TestErrorNamesTheStep: the kernel's error comes with step, operation, operand
// types and the model's line.
func TestErrorNamesTheStep(t *testing.T) {
	b := newBench()
	e, _ := b.open(t)
	_, err := step(e, b, -1, 0)
	pe, ok := errors.AsType[*plan.Error](err)
	if !ok || pe.Step != 1 || pe.Name != "double" || !errors.Is(err, errNegative) {
		t.Errorf("error is %v", err)
	}
	ge, ok := errors.AsType[*graph.Error](err)
	if !ok || ge.Op != "double" || len(ge.In) != 1 ||
		!strings.Contains(ge.Pos, "executor_test.go:") {
		t.Errorf("error is %v", err)
	}
}

// TestWrongPrediction: a header that says more than the run uses is noticed.
func TestWrongPrediction(t *testing.T) {
	b := newBench()
	b.p.Spaces[space.Device].Bytes = 80
	e, _ := b.open(t)
	if _, err := step(e, b, 1, 1); err == nil ||
		!strings.Contains(err.Error(), "used 72 bytes, the plan predicts 80") {
		t.Errorf("error is %v", err)
	}
}

// TestMemoriesMatchSpaces: a plan runs in memories of its own spaces, in order and
// large enough, and is refused otherwise.
func TestMemoriesMatchSpaces(t *testing.T) {
	b := newBench()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	alloc := func(s space.ID, bytes int64) device.Memory {
		m, err := d.Alloc(s, bytes)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	dev, host := alloc(space.Device, 72), alloc(space.Host, 100)
	for _, bad := range [][]device.Memory{nil, {dev}, {dev, host, host}, {host, dev}, {dev, dev},
		{dev, nil}, {alloc(space.Device, 71), host}, {dev, alloc(space.Host, 0)}} {
		if _, err := executor.New(d, executor.NewStreams(d), bad, b.p, b.g); err == nil {
			t.Errorf("the plan is accepted with memories %v", bad)
		}
	}
	if _, err := executor.New(d, executor.NewStreams(d), []device.Memory{dev, host}, b.p,
		b.g); err != nil {
		t.Error(err)
	}
}

// TestUnknownEngine: a stream that the device cannot make is an error.
func TestUnknownEngine(t *testing.T) {
	b := newBench()
	b.p.Streams[1].Engine = space.Copier(7, space.Device)
	refused(t, b, "stream in")
}

// TestUnknownAction: a step that neither launches nor copies is an error.
func TestUnknownAction(t *testing.T) {
	b := newBench()
	b.p.Steps[1].Do = nil
	refused(t, b, "unknown action")
}

// TestReach: a plan that has the device's engine read the host's memory is
// refused before it runs, though nobody verified it.
func TestReach(t *testing.T) {
	b := newBench()
	do := b.p.Steps[1].Do.(plan.Launch)
	do.In = []plan.Ref{{Slot: 0}}
	b.p.Steps[1].Do = do
	refused(t, b, "cannot read host memory")
}

// refused demands that the executor does not take the plan.
func refused(t *testing.T, b bench, want string) {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := executor.New(d, executor.NewStreams(d), memories(t, d, b.p), b.p,
		b.g); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want one with %q", err, want)
	}
}

func TestWrongSizes(t *testing.T) {
	b := newBench()
	e, _ := b.open(t)
	if err := e.Write(b.p.Feeds[0], make([]byte, 4)); err == nil {
		t.Error("half a feed is accepted")
	}
	if err := e.Read(b.p.Feeds[0], make([]byte, 4)); err == nil {
		t.Error("half a slot is read")
	}
	if err := e.Fetch(b.p.Fetches[0], make([]byte, 4)); err == nil {
		t.Error("half a value is fetched")
	}
}

// TestCancelledBefore: a context that has ended starts nothing, and the executor
// goes on.
func TestCancelledBefore(t *testing.T) {
	b := newBench()
	e, _ := b.open(t)
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	for range 3 {
		e.Begin()
		err := e.Run(ctx)
		run, ok := errors.AsType[*executor.RunError](err)
		if !ok || len(run.Torn) > 0 || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("error is %v", err)
		}
		if got, err := step(e, b, 3, 4); err != nil || got[0] != 6 || got[1] != 8 {
			t.Errorf("the next step gives %v, %v", got, err)
		}
	}
}

// TestExecutorsShareStreams: two plans run on the same streams and memories, one
// after the other; a launch's scratch counts as used.
func TestExecutorsShareStreams(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	plain, scratched := newBench(), newBench()
	do := scratched.p.Steps[1].Do.(plan.Launch)
	do.Scratch = plan.SlotID(len(scratched.p.Slots))
	scratched.p.Steps[1].Do = do
	scratched.p.Slots = append(scratched.p.Slots,
		plan.Slot{Off: 128, Bytes: 16, From: 1, To: 1, Value: "scratch"})
	scratched.p.Spaces[space.Device].Bytes, scratched.p.Spaces[space.Device].Budget = 144, 200
	streams, memory := executor.NewStreams(d), memories(t, d, scratched.p)
	var both []*executor.Executor
	for _, b := range []bench{plain, scratched} {
		e, err := executor.New(d, streams, memory, b.p, b.g)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, e)
	}
	for i := range 10 {
		for k, b := range []bench{plain, scratched} {
			got, err := step(both[k], b, float32(i), -0)
			if err != nil || got[0] != float32(2*i) {
				t.Fatalf("step %d of plan %d gives %v, %v", i, k, got, err)
			}
		}
	}
	if both[0].Peak()[space.Device] != 72 || both[1].Peak()[space.Device] != 144 {
		t.Errorf("peaks are %v and %v", both[0].Peak(), both[1].Peak())
	}
}
