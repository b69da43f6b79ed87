package control_test

import (
	"bytes"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// long is a layer over many steps of a sequence of numbers, with the update of its weights and the
// loss of guessing classes at each step.
func long(steps, segments int) (g *graph.Graph, loss value, weights []value) {
	const batch, units, classes = 3, 5, 7
	g = graph.New()
	variable := func(name string, sizes ...int) value {
		v := g.Variable(name, f32(sizes...), graph.Init{Dist: graph.Normal, Scale: 0.3})
		weights = append(weights, v)
		return v
	}
	out, w, b := variable("out", units, classes), variable("w", 1+units, units),
		variable("b", units)
	x := g.Input("xs", f32(steps, batch, 1))
	h := ops.Zeros(g, f32(batch, units))
	_, ys := control.Scan([]value{w, b}, []value{h, h}, []value{x},
		func(same, states, xs []value) (next, ys []value) {
			h, c := step(same[0], same[1], states[0], states[1], xs[0])
			return []value{h, c}, []value{h}
		}, control.Options{Segments: segments})
	logits := ops.MatMul(ops.ReshapeSizes(ys[0], steps*batch, units), out)
	losses := ops.CrossEntropy(logits, g.Input("labels", tensor.Of(graph.I32, steps*batch)), 0)
	loss = ops.Mean(losses)
	rate := ops.Full(g, f32(), 0.1)
	for i, d := range autodiff.Grad(loss, weights...) {
		ops.SGD(weights[i], d, rate)
	}
	return g, loss, weights
}

// least is the smallest budget of the device that a step's plan has, and vanilla's.
func least(t *testing.T, g *graph.Graph, loss value) (auto, vanilla int64) {
	t.Helper()
	bytes := map[planner.Policy]int64{}
	for _, policy := range []planner.Policy{planner.Vanilla, planner.Auto} {
		n, err := gomem.MinDevice(t.Context(), g, gomem.Options{Policy: policy},
			gomem.Training(g, loss))
		if err != nil {
			t.Fatal(err)
		}
		bytes[policy] = n
	}
	return bytes[planner.Auto], bytes[planner.Vanilla]
}

// TestLongScan: where a sequence is most of what a step needs, the planner cuts the scan: a third
// of vanilla's memory is enough, hardly more than with segments set by hand, with the same losses
// and weights within every budget down to the least, which the executor compares with what is used.
func TestLongScan(t *testing.T) {
	const steps = 1000
	g, loss, weights := long(steps, 1)
	auto, vanilla := least(t, g, loss)
	if auto*3 > vanilla {
		t.Errorf("%d bytes at least, of vanilla's %d", auto, vanilla)
	}
	for _, segments := range []int{4, 30} {
		g, loss, _ := long(steps, segments)
		if byHand, _ := least(t, g, loss); byHand+byHand/16 < auto {
			t.Errorf("%d segments need %d bytes, the planner's choice %d", segments, byHand, auto)
		}
	}
	feed, labels := tensor.New(f32(steps, 3, 1)), tensor.New(tensor.Of(graph.I32, 3*steps))
	for i := range feed.F32() {
		feed.F32()[i], labels.I32()[i] = float32(i%13)/6-1, int32(i*i%7)
	}
	var want [][]byte
	for _, budget := range []int64{vanilla, vanilla / 2, auto} {
		o := gomem.Options{Policy: planner.Auto, DeviceBytes: budget, Effort: 200, Draft: true}
		got := outcome(t, g, o, gomem.Training(g, loss), weights, func(int32) gomem.Feeds {
			return gomem.Feeds{g.Inputs()[0].Value(0): feed, g.Inputs()[1].Value(0): labels}
		})
		if want == nil {
			want = got
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%d bytes: value %d differs", budget, i)
			}
		}
	}
}

// TestManyIterations: training over 10,000 iterations needs less than a quarter of what they
// record; without a gradient a scan needs what it is fed, what it gives, and two kilobytes.
func TestManyIterations(t *testing.T) {
	const steps = 10_000
	g, loss, _ := long(steps, 1)
	auto, vanilla := least(t, g, loss)
	if records := 2 * steps * f32(3, 5).Bytes(); auto > records/4 {
		t.Errorf("%d bytes at least, of %d that are recorded; vanilla needs %d", auto, records,
			vanilla)
	}
	r := newRecurrent(steps)
	r.scanned(control.Options{Forward: true})
	fed := r.xs.Type().Bytes() + r.ys.Type().Bytes()
	n, err := planner.LeastOf(t.Context(), r.g, planner.Options{Policy: planner.Vanilla},
		space.Device, planner.Target{Name: "forward", Fetches: []value{r.last, r.ys}})
	if err != nil {
		t.Fatal(err)
	}
	if n > fed+2<<10 {
		t.Errorf("without a gradient %d bytes, of %d that are fed and fetched", n, fed)
	}
}

// TestFrames: a body whose values are too much at once is cut, too, and so is its gradient's, with
// the bits of the whole.
func TestFrames(t *testing.T) {
	g := graph.New()
	w, v := g.Input("w", f32(8, 300)), g.Input("v", f32(300, 8))
	last, ys := control.Scan([]value{w, v}, []value{g.Input("h", f32(64, 8))},
		[]value{g.Input("xs", f32(5, 64, 8))},
		func(same, states, xs []value) (next, ys []value) {
			z := ops.Tanh(ops.MatMul(ops.Add(states[0], xs[0]), same[0]))
			h := ops.Tanh(ops.MatMul(z, same[1]))
			return []value{h}, []value{h}
		})
	loss := ops.Add(ops.Sum(ops.Square(ys[0])), ops.Sum(last[0]))
	fetches := append([]value{loss}, autodiff.Grad(loss, w, v)...)
	after, need, whole := cut(t, 8, fetches)
	frames := func(g *graph.Graph) (most int64) {
		for _, n := range g.Nodes() {
			if n.OpName() == "scan" {
				most = max(most, n.Cost().Scratch)
			}
		}
		return most
	}
	if a, b := frames(after[0].Graph()), frames(g); 2*a > b {
		t.Errorf("frames of %d bytes, before %d; operations need %d, before %d", a, b, need, whole)
	}
	want, got := compute(t, 1, nil, fetches...), compute(t, 2, nil, after...)
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("value %d differs", i)
		}
	}
}
