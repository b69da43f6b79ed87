package executor_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomem/gomem/executor"
	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/plan"
)

// writtenBack is a plan that updates a variable on the device, runs an operation
// twice, and writes the variable back.
const writtenBack = `plan by hand
graph DIGEST
parts 1
space device 208 of 208 align 64
space host 144 of 144 align 64
stream compute0 runs in device
stream in copies host to device
stream out copies device to host
slot 0 host+0 16 fixed f32[4] : v0
slot 1 host+64 16 0-1 f32[4] : x
slot 2 device+0 16 0-5 f32[4] : v0
slot 3 device+64 16 1-4 f32[4] : x
slot 4 device+128 16 2-2 f32[4] : affine
slot 5 device+192 16 4-6 f32[4] : affine
slot 6 host+128 16 6-6 f32[4] : affine
feed #0 1 : x
variable #1 0 : v0
step 0 p0 in #1 copy 2 <- 0 16 stage : v0
step 1 p0 in #0 copy 3 <- 1 16 feed : x
step 2 p0 compute0 #2 launch affine 4 <- 3 wait 1 : affine
step 3 p0 compute0 #3 launch bump <- 2 3 mutates 1 : bump
step 4 p0 compute0 #2 launch affine 5 <- 3 : affine
step 5 p0 out #1 copy 0 <- 2 16 write-back wait 3 : v0
step 6 p0 out #2 copy 6 <- 5 16 fetch wait 4 : affine
fetch 6 f32[4] : affine
end 7 7 1
`

// newWriter runs that plan.
func newWriter(t *testing.T, listen trace.Listener) *trainer {
	t.Helper()
	g := graph.New()
	ty := tensor.Of(graph.F32, 4)
	x, v := g.Input("x", ty), g.Variable("v0", ty, graph.Init{})
	y := g.Apply(affine{N: 7}, x)
	u := g.Update(bump{N: 8}, []graph.Value{v}, x)
	return byHand(t, cpu.Options{Listener: listen}, writtenBack, g, y, u)
}

// byHand runs a plan in text of a graph, which fetches what a node computes and applies
// updates, on one thread.
func byHand(t *testing.T, o cpu.Options, text string, g *graph.Graph, fetched *graph.Node,
	updates ...*graph.Node) *trainer {
	t.Helper()
	o.Threads = 1
	d, err := cpu.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	p, err := plan.Parse(strings.NewReader(strings.Replace(text, "DIGEST", g.Digest(), 1)))
	if err != nil {
		t.Fatal(err)
	}
	var ids []graph.NodeID
	for _, u := range updates {
		ids = append(ids, u.ID)
	}
	if err := plan.Verify(p, g, []graph.Value{fetched.Value(0)}, ids); err != nil {
		t.Fatal(err)
	}
	e, err := executor.New(d, executor.NewStreams(d), memories(t, d, p), p, g)
	if err != nil {
		t.Fatal(err)
	}
	return &trainer{plan: p, device: d, exec: e}
}

// TestWriteBackTears: a variable that is updated on the device is what it was until
// its copy back has begun; an operation may run twice.
func TestWriteBackTears(t *testing.T) {
	const back = 5 // the step that writes back
	var at atomic.Int64
	var written atomic.Bool
	var stop atomic.Pointer[context.CancelFunc]
	at.Store(-1)
	r := newWriter(t, func(e trace.Event) {
		if e.Step == back {
			written.Store(true)
		}
		if int64(e.Step) == at.Load() {
			(*stop.Load())()
		}
	})
	before, want := r.baseline(t)
	for k := range r.plan.Steps {
		ctx, cancel := context.WithCancel(context.Background())
		stop.Store(&cancel)
		at.Store(int64(k))
		written.Store(false)
		_, err := r.step(ctx)
		at.Store(-1)
		cancel()
		if err == nil {
			r.mustEqual(t, want)
			r.set(t, before)
			continue
		}
		var torn []string // a step or two begin before the end of the context is noticed
		if written.Load() {
			torn = []string{"v0"}
		}
		if run := err.(*executor.RunError); !slices.Equal(run.Torn, torn) {
			t.Errorf("after step %d torn are %v, written %v", k, run.Torn, want)
		}
		r.survives(t, "write-back", err, before, want)
	}
}
