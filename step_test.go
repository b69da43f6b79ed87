package gomem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/planner"
)

// hooked is the identity. Its kernel asks the hook, with its number, for an error.
type hooked struct{ N int }

var hook atomic.Pointer[func(n int) error]

func (hooked) Name() string                                { return "hooked" }
func (hooked) Infer(in []graph.Type) ([]graph.Type, error) { return in[:1], nil }
func (hooked) Cost(_, _ []graph.Type) graph.Cost           { return graph.Cost{} }
func (hooked) VJP(_ *graph.Node, dout []graph.Value) []graph.Value {
	return dout
}

// descend subtracts x from a variable, and asks the hook in the middle.
type descend struct{ hooked }

func (descend) Infer([]graph.Type) ([]graph.Type, error) { return nil, nil }

func ask(n int) error {
	if f := hook.Load(); f != nil {
		return (*f)(n)
	}
	return nil
}

func init() {
	kernel.Register(kernel.CPU, func(o hooked, c *kernel.Call) error {
		copy(c.Out[0].Data, c.In[0].Data)
		return ask(o.N)
	})
	kernel.Register(kernel.CPU, func(o descend, c *kernel.Call) error {
		v, x := c.In[0].F32(), c.In[1].F32()
		v[0] -= x[0]
		err := ask(o.N)
		for i := 1; i < len(v) && err == nil; i++ {
			v[i] -= x[i]
		}
		return err
	})
}

// ladder is a session of a model whose variables are updated one after the other,
// while the step goes on: a variable is multiplied into a chain of hooked nodes,
// and its update takes what the chain has come to.
type ladder struct {
	*gomem.Session
	feeds gomem.Feeds
	nodes int
}

func newLadder(t *testing.T, o gomem.Options) ladder {
	t.Helper()
	g := graph.New()
	ty := tensor.Of(graph.F32, 8)
	x := g.Input("x", ty)
	l := ladder{feeds: gomem.Feeds{x: gomem.NewTensor(ty)}}
	for i := range 8 {
		l.feeds[x].F32()[i] = float32(i) - 3
	}
	h := x
	for i := range 3 {
		w := g.Variable(fmt.Sprintf("w%d", i), ty, graph.Init{Dist: graph.Normal, Scale: 1})
		h = g.Apply(hooked{l.nodes}, ops.Mul(h, w)).Value(0)
		g.Update(descend{hooked{l.nodes + 1}}, []graph.Value{w}, h)
		l.nodes += 2
	}
	s, err := gomem.Compile(context.Background(), g, o, gomem.Training(g, ops.Sum(h)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l.Session = s
	return l
}

func (l ladder) step(ctx context.Context) error {
	_, err := l.Step(ctx, "train", l.feeds)
	return err
}

// readable are the variables that Get gives, and the names of those it does not.
func (l ladder) readable(t *testing.T) (bits map[string][]byte, torn []string) {
	t.Helper()
	bits = map[string][]byte{}
	for _, v := range l.Variables() {
		x, err := l.Get(v)
		if errors.Is(err, gomem.ErrTorn) && strings.Contains(err.Error(), v.Node.Name) {
			torn = append(torn, v.Node.Name)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		bits[v.Node.Name] = x.Data
	}
	return bits, torn
}

var ladders = map[string]gomem.Options{
	"vanilla": {Policy: planner.Vanilla, NoFusion: true}, "thesis": {},
	"partitions of one": {Partition: 1, Lookahead: 1}, "two streams": {Partition: 2, Streams: 2},
}

// mended checks what a failed step leaves: every variable is either as before or
// named; no step begins before those that are named are set; and then the next
// step gives what it would have given.
func (l ladder) mended(t *testing.T, what string, err error, before, after map[string][]byte) {
	t.Helper()
	failed, ok := errors.AsType[*gomem.StepError](err)
	if !ok || failed.Target != "train" || failed.Intact() != (len(failed.Torn) == 0) {
		t.Fatalf("%s: error is %v", what, err)
	}
	bits, torn := l.readable(t)
	if !slices.Equal(torn, failed.Torn) {
		t.Errorf("%s: Get refuses %v, torn are %v", what, torn, failed.Torn)
	}
	for name, b := range bits {
		if !bytes.Equal(b, before[name]) {
			t.Errorf("%s: %s is neither as before nor torn", what, name)
		}
	}
	hook.Store(nil)
	for i, name := range torn {
		if err := l.step(context.Background()); !errors.Is(err, gomem.ErrTorn) {
			t.Errorf("%s: a step begins with %d torn variables: %v", what, len(torn)-i, err)
		}
		for _, v := range l.Variables() {
			if v.Node.Name == name {
				l.set(t, v, before[name])
			}
		}
	}
	if err := l.step(context.Background()); err != nil {
		t.Fatalf("%s: the next step: %v", what, err)
	}
	bits, _ = l.readable(t)
	for name, b := range bits {
		if !bytes.Equal(b, after[name]) {
			t.Errorf("%s: %s is wrong after the next step", what, name)
		}
	}
	l.reset(t, before)
}

func (l ladder) set(t *testing.T, v graph.Value, bits []byte) {
	t.Helper()
	if err := l.Set(v, gomem.Tensor{Type: v.Type(), Data: bits}); err != nil {
		t.Fatal(err)
	}
}

func (l ladder) reset(t *testing.T, bits map[string][]byte) {
	t.Helper()
	for _, v := range l.Variables() {
		l.set(t, v, bits[v.Node.Name])
	}
}

// TestFailedStep: after an error in any kernel the weights of the last finished
// step can be read, or are said to be torn; the session goes on.
func TestFailedStep(t *testing.T) {
	defer hook.Store(nil)
	boom := errors.New("boom")
	for name, o := range ladders {
		t.Run(name, func(t *testing.T) {
			l := newLadder(t, o)
			before, _ := l.readable(t)
			if err := l.step(context.Background()); err != nil {
				t.Fatal(err)
			}
			after, _ := l.readable(t)
			l.reset(t, before)
			for k := range l.nodes {
				for how, fail := range map[string]func() error{
					"error": func() error { return boom }, "panic": func() error { panic(boom) }} {
					f := func(n int) error {
						if n == k {
							return fail()
						}
						return nil
					}
					hook.Store(&f)
					err := l.step(context.Background())
					if err == nil || !strings.Contains(err.Error(), "boom") {
						t.Fatalf("error is %v", err)
					}
					l.mended(t, fmt.Sprintf("%s in %d", how, k), err, before, after)
				}
				ctx, cancel := context.WithCancel(context.Background())
				f := func(n int) error {
					if n == k {
						cancel()
					}
					return nil
				}
				hook.Store(&f)
				if err := l.step(ctx); errors.Is(err, context.Canceled) {
					l.mended(t, fmt.Sprintf("cancelled in %d", k), err, before, after)
				} else if err != nil {
					t.Fatal(err)
				}
				hook.Store(nil)
				l.reset(t, before)
				cancel()
			}
		})
	}
}

// TestInitializeMends: initialising gives torn variables values again.
func TestInitializeMends(t *testing.T) {
	defer hook.Store(nil)
	l := newLadder(t, gomem.Options{Partition: 1, Lookahead: 1, Seed: 5})
	before, _ := l.readable(t)
	f := func(n int) error {
		if n == l.nodes-1 {
			return errors.New("boom")
		}
		return nil
	}
	hook.Store(&f)
	err := l.step(context.Background())
	if failed, ok := errors.AsType[*gomem.StepError](err); !ok || failed.Intact() ||
		!strings.Contains(err.Error(), "half-updated") {
		t.Fatalf("nothing is torn: %v", err)
	}
	if err := l.Initialize(5); err != nil {
		t.Fatal(err)
	}
	if bits, torn := l.readable(t); len(torn) > 0 || !bytes.Equal(bits["w0"], before["w0"]) {
		t.Errorf("after Initialize %v are torn", torn)
	}
	hook.Store(nil)
	if err := l.step(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestCancelledContext: a context that has ended is refused before anything is
// queued, and the session lives on.
func TestCancelledContext(t *testing.T) {
	l := newLadder(t, gomem.Options{})
	before, _ := l.readable(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 3 {
		err := l.step(ctx)
		if failed, ok := errors.AsType[*gomem.StepError](err); !ok || !failed.Intact() ||
			!errors.Is(err, context.Canceled) {
			t.Fatalf("error is %v", err)
		}
	}
	if bits, torn := l.readable(t); len(torn) > 0 || !bytes.Equal(bits["w1"], before["w1"]) {
		t.Error("a refused step changes variables")
	}
	if err := l.step(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestThrottledStepIsCancelled: a step whose copies take decades, by their rate,
// ends with its context.
func TestThrottledStepIsCancelled(t *testing.T) {
	l := newLadder(t, gomem.Options{CopyBytesPerSecond: 1, NoFusion: true})
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		var began sync.Once
		f := func(int) error { began.Do(cancel); return nil }
		hook.Store(&f)
		go cancel() // in a copy, or before it; or else in the first kernel
		if err := l.step(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		hook.Store(nil)
	}
}

// classifier is a session that looks labels and words up in every way that a feed
// can reach: directly, through views, and as a part of one.
type classifier struct {
	*gomem.Session
	ids, labels, lengths, step graph.Value
}

func newClassifier(t *testing.T, o gomem.Options) classifier {
	t.Helper()
	g := graph.New()
	i32 := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	c := classifier{ids: g.Input("ids", i32(8)), labels: g.Input("labels", i32(4, 2)),
		lengths: g.Input("lengths", i32(2)), step: g.Input("step", tensor.Of(graph.F32))}
	table := g.Variable("table", tensor.Of(graph.F32, 10, 5),
		graph.Init{Dist: graph.Normal, Scale: 1})
	words := ops.Embedding(table, ops.ReshapeSizes(c.ids, 4, 2)) // f32[4 2 5]
	half := func(v graph.Value) graph.Value { return ops.Split(v, 2)[1] }
	loss := ops.Mean(ops.CrossEntropy(half(words), half(c.labels), 0))
	frames := g.Constant("frames", tensor.FromI32([]int32{4, 4}, 2))
	spoken := ops.Mean(ops.CTCLoss(words, ops.ReshapeSizes(c.labels, 2, 4), c.lengths, frames))
	loss = ops.Add(loss, spoken)
	rate := ops.Full(g, tensor.Of(graph.F32), 0.1)
	first := g.State("first", table.Type(), graph.Init{})
	second := g.State("second", table.Type(), graph.Init{})
	ops.Adam(table, first, second, autodiff.Grad(loss, table)[0], rate, c.step, 0.9, 0.99, 1e-8)
	s, err := gomem.Compile(context.Background(), g, o, gomem.Training(g, loss),
		gomem.Evaluation(words))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c.Session = s
	return c
}

func (c classifier) feeds() gomem.Feeds {
	return gomem.Feeds{c.ids: tensor.FromI32([]int32{0, 9, 3, 4, 5, 6, 7, 8}, 8),
		c.labels:  tensor.FromI32([]int32{0, 1, 2, 3, 1, 2, 3, 0}, 4, 2),
		c.lengths: gomem.Pair(2, 1), c.step: gomem.Scalar(1)}
}

// TestDataIsCheckedBeforeTheStep: one label out of range is refused before the
// step, by the name of its input, and costs nothing.
func TestDataIsCheckedBeforeTheStep(t *testing.T) {
	ctx := context.Background()
	for _, o := range []gomem.Options{{}, {Policy: planner.Vanilla, NoFusion: true}} {
		c := newClassifier(t, o)
		if _, err := c.Step(ctx, "train", c.feeds()); err != nil {
			t.Fatal(err)
		}
		before := trial.Values(t, c.Session)
		for _, bad := range []struct {
			name  string
			spoil func(gomem.Feeds)
		}{
			{"ids", func(f gomem.Feeds) { f[c.ids].I32()[5] = 10 }},
			{"ids", func(f gomem.Feeds) { f[c.ids].I32()[0] = -1 }},
			{"labels", func(f gomem.Feeds) { f[c.labels].I32()[5] = 5 }},
			{"labels", func(f gomem.Feeds) { f[c.labels].I32()[0] = 4 }}, // the blank
			{"lengths", func(f gomem.Feeds) { f[c.lengths].I32()[1] = 5 }},
			{"step", func(f gomem.Feeds) { f[c.step].F32()[0] = 0 }},
		} {
			feeds := c.feeds()
			bad.spoil(feeds)
			_, err := c.Step(ctx, "train", feeds)
			failed, ok := errors.AsType[*gomem.StepError](err)
			if !ok || !failed.Intact() || !strings.Contains(err.Error(), bad.name) {
				t.Errorf("%s: error is %v", bad.name, err)
			}
			if _, ok := errors.AsType[*graph.Error](err); !ok {
				t.Errorf("%s: the operation is not named: %v", bad.name, err)
			}
		}
		if !trial.SameBits(before, trial.Values(t, c.Session)) {
			t.Error("refused steps change variables")
		}
		feeds := c.feeds()
		feeds[c.labels].I32()[2] = 99 // of no use: not in the second half, and past a length
		if _, err := c.Step(ctx, "train", feeds); err != nil {
			t.Error(err)
		}
		feeds = c.feeds()
		feeds[c.labels].I32()[0], feeds[c.step].F32()[0] = 77, -1
		if _, err := c.Step(ctx, "eval", feeds); err != nil {
			t.Errorf("what a target does not read is checked: %v", err)
		}
	}
}

// TestFeedsAreInputs: what is no input is refused by name; an input that the
// target does not read may be fed.
func TestFeedsAreInputs(t *testing.T) {
	c := newClassifier(t, gomem.Options{})
	other := graph.New().Input("elsewhere", tensor.Of(graph.F32))
	table := c.Variables()[2] // in order of names
	for name, v := range map[string]graph.Value{"table": table, "elsewhere": other, "none": {},
		"step:1": {Node: c.step.Node, Index: 1}} {
		feeds := c.feeds()
		feeds[v] = gomem.Scalar(1)
		if _, err := c.Step(t.Context(), "train", feeds); err == nil ||
			!strings.Contains(err.Error(), name+" is fed") {
			t.Errorf("feed of %s: %v", name, err)
		}
	}
	if _, err := c.Step(t.Context(), "eval", c.feeds()); err != nil {
		t.Error(err)
	}
	feeds := c.feeds()
	feeds[c.ids] = gomem.Tensor{Type: c.ids.Type(), Data: make([]byte, 20)}
	if _, err := c.Step(t.Context(), "eval", feeds); err == nil ||
		!strings.Contains(err.Error(), "20 bytes") {
		t.Errorf("a short feed: %v", err)
	}
}

// TestClosedSession: every method of a session that is closed, or was never
// opened, is an error and no panic.
func TestClosedSession(t *testing.T) {
	c := newClassifier(t, gomem.Options{})
	table := c.Variables()[0]
	if _, err := c.Step(t.Context(), "train", c.feeds()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	if c.Plan("train") == nil || len(c.Variables()) == 0 || c.Usage()[0].Actual == 0 {
		t.Error("what was planned and used is forgotten")
	}
	var none context.Context
	for name, s := range map[string]*gomem.Session{"closed": c.Session, "zero": {}} {
		_, errStep := s.Step(t.Context(), "train", c.feeds())
		_, errNil := s.Step(none, "", nil)
		_, errGet := s.Get(table)
		for i, err := range []error{errStep, errNil, errGet, s.Set(table, gomem.Scalar(1)),
			s.Initialize(1)} {
			if !errors.Is(err, gomem.ErrClosed) {
				t.Errorf("%s session, call %d: error is %v", name, i, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	var zero gomem.Session
	if zero.Plan("train") != nil || zero.Usage() != nil || zero.Variables() != nil {
		t.Error("a zero session has something")
	}
}

// TestNilContext is an error, and no panic.
func TestNilContext(t *testing.T) {
	c := newClassifier(t, gomem.Options{})
	var none context.Context
	if _, err := c.Step(none, "train", c.feeds()); err == nil {
		t.Error("a nil context is accepted")
	}
	if _, err := c.Step(t.Context(), "train", c.feeds()); err != nil {
		t.Error(err)
	}
}

// TestGraphGrowsAfterCompile: a session keeps the graph that was planned; what is
// added is not its own.
func TestGraphGrowsAfterCompile(t *testing.T) {
	for _, o := range []gomem.Options{{}, {NoFusion: true}} {
		c := newClassifier(t, o)
		g := c.ids.Graph()
		v := g.Variable("late", tensor.Of(graph.F32), graph.Init{})
		x := g.Input("late-input", tensor.Of(graph.F32))
		ops.SGD(v, x, x)
		if len(c.Variables()) != 3 {
			t.Errorf("variables are %v", c.Variables())
		}
		if _, err := c.Get(v); err == nil || !strings.Contains(err.Error(), "late") {
			t.Errorf("a variable that was added is read: %v", err)
		}
		if err := c.Set(v, gomem.Scalar(1)); err == nil {
			t.Error("a variable that was added is set")
		}
		if err := c.Initialize(3); err != nil {
			t.Error(err)
		}
		if _, err := c.Step(t.Context(), "train", c.feeds()); err != nil {
			t.Error(err)
		}
		feeds := c.feeds()
		feeds[x] = gomem.Scalar(1)
		if _, err := c.Step(t.Context(), "train", feeds); err == nil {
			t.Error("an input that was added is fed")
		}
	}
}

// TestConcurrentCalls: calls from several goroutines run one after the other, and
// Close among them ends what comes later.
func TestConcurrentCalls(t *testing.T) {
	c := newClassifier(t, gomem.Options{})
	table := c.Variables()[0]
	var users sync.WaitGroup
	for i := range 4 {
		users.Go(func() {
			for k := range 30 {
				_, err := c.Step(context.Background(), "train", c.feeds())
				if err == nil {
					_, err = c.Get(table)
				}
				if err == nil {
					c.Usage()
				}
				if err != nil && !errors.Is(err, gomem.ErrClosed) {
					t.Error(err)
				}
				if i == 0 && k == 20 {
					c.Close()
				}
			}
		})
	}
	users.Wait()
}

// TestFailedOpenLeaksNothing: memory that cannot be had is an error, and no
// goroutine is left.
func TestFailedOpenLeaksNothing(t *testing.T) {
	alive := goleak.IgnoreCurrent()
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 1<<28, 1<<26))
	p, err := gomem.Plan(t.Context(), g, gomem.Options{}, gomem.Evaluation(ops.Sum(x)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gomem.Open(p, gomem.Options{}); err == nil {
		t.Fatal("64 PiB are given")
	}
	if _, err := gomem.Open(p, gomem.Options{Threads: -1}); err == nil {
		t.Fatal("-1 threads are accepted")
	}
	goleak.VerifyNone(t, alive)
	s, err := gomem.Open(p, gomem.Options{Device: gomem.Null})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// TestTensors: data is neither padded nor cut.
func TestTensors(t *testing.T) {
	if _, err := gomem.F32([]float32{10, 20}, 4); err == nil {
		t.Error("two values make four")
	}
	if _, err := gomem.I32([]int32{1, 2, 3, 4, 5, 6}, 4); err == nil {
		t.Error("six values make four")
	}
	x, err := gomem.F32([]float32{1, 2, 3, 4}, 2, 2)
	if err != nil || x.F32()[3] != 4 {
		t.Errorf("%v, %v", x, err)
	}
	if n, err := gomem.I32([]int32{7}); err != nil || n.I32()[0] != 7 || n.Type.Rank() != 0 {
		t.Errorf("%v, %v", n, err)
	}
	for _, c := range []struct {
		of   graph.DType
		make func(size int) (gomem.Tensor, error)
	}{
		{graph.I64, func(size int) (gomem.Tensor, error) {
			return gomem.I64([]int64{7, 8}, size)
		}},
		{graph.F64, func(size int) (gomem.Tensor, error) {
			return gomem.F64([]float64{7, 8}, size)
		}},
		{graph.U8, func(size int) (gomem.Tensor, error) {
			return gomem.U8([]uint8{7, 8}, size)
		}},
		{graph.BF16, func(size int) (gomem.Tensor, error) {
			return gomem.BF16([]float32{7, 8}, size)
		}},
		{graph.F16, func(size int) (gomem.Tensor, error) {
			return gomem.F16([]float32{7, 8}, size)
		}},
	} {
		x, err := c.make(2)
		if err != nil || x.Type.DType != c.of ||
			!slices.Equal(x.To(graph.F32).F32(), []float32{7, 8}) {
			t.Errorf("%s: %v, %v", c.of, x, err)
		}
		if x, err := c.make(3); err == nil {
			t.Errorf("two values make %v", x)
		}
	}
	if b, err := gomem.Bool([]bool{false, true}, 2); err != nil || b.Bool()[0] || !b.Bool()[1] {
		t.Errorf("%v, %v", b, err)
	}
	if s, p := gomem.Scalar(3), gomem.Pair(4, 5); s.F32()[0] != 3 || p.I32()[1] != 5 {
		t.Errorf("%v, %v", s, p)
	}
}

// TestNothingToCompile: no graph, no context and no target are errors, and no
// panics.
func TestNothingToCompile(t *testing.T) {
	g := graph.New()
	target := gomem.Evaluation(ops.Sum(g.Input("x", tensor.Of(graph.F32, 4))))
	for name, compile := range map[string]func() error{
		"graph": func() error {
			_, err := gomem.Compile(t.Context(), nil, gomem.Options{}, target)
			return err
		},
		"context": func() error {
			var none context.Context
			_, err := gomem.Compile(none, g, gomem.Options{}, target)
			return err
		},
		"target": func() error {
			_, err := gomem.Compile(t.Context(), g, gomem.Options{})
			return err
		},
	} {
		if err := compile(); err == nil {
			t.Errorf("nothing is said without a %s", name)
		}
	}
}
