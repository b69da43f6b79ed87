//go:build linux && amd64 && !nocuda

package laws_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// projecting is an optimizer that is composed of what a GPU computes to other bits than the
// host: products and a softmax of rows.
type projecting struct{}

func (projecting) Rate() nn.Schedule { return nn.Constant(0.01) }

func (projecting) Update(u nn.Update) []*graph.Node {
	change := u.Gradient
	if w := u.Parameter; w.Type().Rank() == 2 {
		square := ops.MatMulT(w, w, false, true)
		change = ops.Add(change, ops.MatMul(ops.Softmax(square), w))
	}
	return []*graph.Node{ops.Assign(u.Parameter,
		ops.Sub(u.Parameter, ops.Mul(change, u.Rate)))}
}

// lawful are optimizers, as one operation and composed of many, by name.
func lawful() map[string]func(m *nn.Model, loss graph.Value) {
	by := func(o nn.Optimizer, fine bool, more nn.MinimizeOptions) func(*nn.Model, graph.Value) {
		return func(m *nn.Model, loss graph.Value) {
			m.Fine = fine
			m.Minimize(loss, o, more)
		}
	}
	var none nn.MinimizeOptions
	return map[string]func(*nn.Model, graph.Value){
		"adam":             by(nn.Adam{}, false, none),
		"fine adam":        by(nn.Adam{}, true, none),
		"clipped momentum": by(nn.Momentum{Nesterov: true}, false, nn.MinimizeOptions{Clip: 0.1}),
		"decayed momentum": by(nn.Momentum{}, true, nn.MinimizeOptions{Decay: 0.01}),
		"adamw at times":   by(nn.AdamW{}, false, nn.MinimizeOptions{Accumulate: 2}),
		"adafactor":        by(nn.Adafactor{MinDim: 4}, false, none),
		"fine adafactor":   by(nn.Adafactor{MinDim: 4}, true, none),
		"projecting":       by(projecting{}, false, nn.MinimizeOptions{Clip: 0.1}),
	}
}

// lawfulModel is a network with a norm and dropout, parts of a variable that begin anywhere, and an
// optimizer.
func lawfulModel(minimize func(*nn.Model, graph.Value)) *nn.Model {
	const batch = 8
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, batch, 20), m.Input("y", graph.I32, batch)
	loss := func(c *nn.Ctx) graph.Value {
		w := ops.Split(c.In("a").Param("w", nn.Glorot, 2*20, 24), 2)
		h := nn.Gelu(ops.Add(ops.MatMul(x, w[0]), ops.MatMul(ops.Neg(x), w[1])))
		h = nn.Dropout(c, nn.LayerNorm(c.In("norm"), h), 0.1)
		h = nn.Relu(nn.Linear(c.In("b"), h, 24))
		return nn.CrossEntropy(nn.Linear(c.In("out"), h, 5), y)
	}
	minimize(m, loss(m.Training()))
	m.Evaluate(loss(m.Evaluation()))
	return m
}

// TestPlansDoNotAffectResultsOnGPU is the first law on an emulated GPU: whatever the policy
// and the budget, from the least on, the losses of ten steps and all variables after them have
// the same bits, under optimizers of one operation and of many; and every space is used up to
// exactly the predicted byte. That holds where the order of additions in products depends on
// addresses, as far as libraries' choice of kernels may.
func TestPlansDoNotAffectResultsOnGPU(t *testing.T) {
	longtest.Skip(t)
	emulated(t)
	t.Setenv("EMU_CHOOSY", "1")
	for name, minimize := range lawful() {
		t.Run(name, func(t *testing.T) {
			if name != "projecting" && name != "fine adam" && !longtest.Enabled() {
				t.Skip("left to the long form")
			}
			var first []gomem.Tensor
			for _, o := range lawfulOptions(t, minimize) {
				losses, all, err := learnt(lawfulModel(minimize), o, 10)
				if err != nil {
					t.Fatalf("%+v: %v", o, err)
				}
				all = append(all, gomem.Tensor(tensor.FromF32(losses, len(losses))))
				for i, x := range all {
					if first != nil && !bytes.Equal(x.Data, first[i].Data) {
						t.Fatalf("%s, %d bytes: variable %d of %d has other bits", o.Planning(),
							o.DeviceBytes, i, len(all))
					}
				}
				first = all
			}
		})
	}
}

// lawfulOptions are policies, each with all memory and with the least that it takes.
func lawfulOptions(t *testing.T, minimize func(*nn.Model, graph.Value)) []gomem.Options {
	list := []gomem.Options{{NoPlacement: true}, {}, {Policy: planner.Auto},
		{Policy: planner.Thesis, Partition: 2}}
	if longtest.Enabled() {
		list = append(list, gomem.Options{Policy: planner.Vanilla}, gomem.Options{NoFusion: true},
			gomem.Options{Policy: planner.Grappler}, gomem.Options{Partition: 5, Streams: 2},
			gomem.Options{NoSwap: true, NoPlacement: true, NoFusion: true})
	}
	var all []gomem.Options
	for _, o := range list {
		o.Device, o.Threads = gomem.CUDA, 1
		m := lawfulModel(minimize)
		least, err := planner.LeastOf(context.Background(), m.Graph, o.Planning(), space.Device,
			train.Targets(m)...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
		o.DeviceBytes = least + cuda.Workspace*int64(max(o.Streams, 1))
		all = append(all, o)
	}
	return all
}

// TestHostedOnGPU: what of an optimizer has other bits on a GPU is on the host in every plan, also
// where all else is on the device.
func TestHostedOnGPU(t *testing.T) {
	emulated(t)
	m := lawfulModel(lawful()["projecting"])
	for _, o := range []gomem.Options{{NoPlacement: true}, {Policy: planner.Auto}} {
		o.Device = gomem.CUDA
		p, err := gomem.Plan(context.Background(), m.Graph, o, train.Targets(m)...)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		made := p.Results[0].Plan
		hosted := map[string]bool{}
		for _, n := range p.Results[0].Program.Graph.Nodes() {
			hosted[n.Name] = n.Hosted()
		}
		for _, s := range made.Steps {
			if _, ok := s.Do.(plan.Launch); !ok || !hosted[s.Name] {
				continue
			}
			found++
			if e := made.Streams[s.Stream].Engine; e != space.HostCompute {
				t.Errorf("%s: %s runs by %v", o.Planning(), s.Name, e)
			}
		}
		if found < 3*3 {
			t.Errorf("%s: %d operations must be on the host", o.Planning(), found)
		}
	}
}
