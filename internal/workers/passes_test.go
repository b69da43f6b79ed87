package workers

import (
	"context"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

// tallied is a model that learns nothing but how often it has had each example: example i is
// one-hot, and a step adds one, in equal shares, to the weights of the examples that are in it.
func tallied(t *testing.T, o *train.Options, examples int) (
	count func(s *gomem.Session) []float32) {
	t.Helper()
	const batch = 2
	m := nn.NewModel()
	m.Workers = o.Model.Workers
	x := m.Input("x", graph.F32, batch, examples)
	weights := m.Input("weights", graph.F32, batch)
	net := func(c *nn.Ctx) graph.Value {
		product := ops.MatMul(x, c.Param("seen", nn.Zeros, examples, 1))
		return nn.MeanOver(ops.Neg(ops.ReshapeSizes(product, batch)), weights)
	}
	m.Minimize(net(m.Training()), nn.SGD{}, nn.MinimizeOptions{Rate: nn.Constant(1)})
	m.Evaluate(net(m.Evaluation()))
	layout := data.ExamplesOptions{Batch: batch, HeldOut: 2, InOrder: true, Pad: true}
	l, err := data.FromFunc(layout, examples+2,
		func(i int, row []tensor.View) { row[0].F32()[i%examples] = 1 },
		tensor.Of(graph.F32, examples))
	if err != nil {
		t.Fatal(err)
	}
	o.Model, o.Loader = m, l
	return func(s *gomem.Session) []float32 {
		seen, err := s.Get(m.Graph.Variables()[0].Value(0))
		if err != nil {
			t.Error(err)
		}
		return seen.F32()
	}
}

// TestPassesOfMany: of passes that are no whole number of steps every example is had once by each
// scheme: in the last step are as many batches as are left, and where gradients are exchanged
// they weigh as much as there is of them.
func TestPassesOfMany(t *testing.T) {
	const examples = 40 // 20 batches of 3 workers
	for scheme, last := range map[string]float32{"ring": 1. / 4, "ps": 1. / 4, "bosen": 1. / 6} {
		c := &course{site: newSite(4), scheme: scheme}
		seen := make([][]float32, 3)
		c.own = func(id distrib.NodeID, o *train.Options) {
			count := tallied(t, o, examples)
			o.Epochs = 1
			o.After = func(_ context.Context, s *gomem.Session) error {
				seen[id] = count(s)
				return nil
			}
		}
		for id, e := range c.all(t, 3) {
			if e.err != nil || e.Steps != 7 {
				t.Fatalf("%s: worker %d: %v, %+v", scheme, id, e.err, e.Summary)
			}
		}
		ends := 0
		for i, x := range seen[0] {
			switch {
			case near(x, last) && last != 1./6:
				ends++
			case !near(x, 1./6):
				t.Errorf("%s: example %d has %v", scheme, i, x)
			}
		}
		if last != 1./6 && ends != 4 {
			t.Errorf("%s: %d examples in the last step, want 4", scheme, ends)
		}
	}
}

func near(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 }

// TestPassesOfThoseWhoComeAndGo: one of three workers is lost in the middle of a pass, in which
// another one comes: every example is had once nevertheless.
func TestPassesOfThoseWhoComeAndGo(t *testing.T) {
	const examples = 242 // 121 batches
	for _, scheme := range []string{"ring", "ps"} {
		dir := filepath.Join(t.TempDir(), "run")
		c := &course{site: newSite(4), scheme: scheme, least: 2, wait: time.Minute}
		var late *ended
		var seen []float32
		came := make(chan struct{})
		c.own = func(id distrib.NodeID, o *train.Options) {
			count := tallied(t, o, examples)
			o.Epochs, o.Save = 1, dir
			switch id {
			case 0:
				o.After = func(_ context.Context, s *gomem.Session) error {
					seen = count(s)
					return nil
				}
				o.Loader = gate{o.Loader, 60, sync.OnceFunc(func() {
					c.come(3)
					go func() { defer close(came); late = c.work(t, 3) }()
					time.Sleep(20 * time.Millisecond)
				})}
			case 2:
				o.Loader = gate{o.Loader, 20, sync.OnceFunc(func() { c.kill(2) })}
			}
		}
		out := c.all(t, 3)
		<-came
		for id, e := range map[int]*ended{0: out[0], 1: out[1], 3: late} {
			if e.err != nil || e.Workers != 3 {
				t.Fatalf("%s: worker %d: %v, %+v", scheme, id, e.err, e.Summary)
			}
		}
		tail := 0
		for i, x := range seen {
			switch {
			case near(x, 1./2): // the last batch, of one worker
				tail++
			case !near(x, 1./6) && !near(x, 1./4):
				t.Errorf("%s: example %d has %v: it is lost or was had twice", scheme, i, x)
			}
		}
		if tail != 0 && tail != 2 {
			t.Errorf("%s: %d examples have a half", scheme, tail)
		}
		saved, err := train.Inspect(dir)
		if err != nil || saved.Executions != 121 {
			t.Errorf("%s: %+v, %v", scheme, saved, err)
		}
		if len(out[0].changes()) != 2 {
			t.Errorf("%s: %v", scheme, out[0].changes())
		}
	}
}
