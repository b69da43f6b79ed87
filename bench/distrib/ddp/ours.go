package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

// task is the model for n workers, and the batches of all of them.
func task(n int) (*nn.Model, data.Batches, error) {
	const examples = 4000
	x, y := tensor.New(tensor.Of(graph.F32, examples, width)), tensor.New(tensor.Of(graph.I32,
		examples))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range y.I32() {
		y.I32()[i] = rng.Int32N(classes)
		for k := range width {
			x.F32()[i*width+k] = float32(rng.NormFloat64()) + float32((k+int(y.I32()[i]))%7)/4
		}
	}
	m := nn.NewModel()
	m.Workers = n
	in, labels := m.Input("x", graph.F32, batch, width), m.Input("y", graph.I32, batch)
	net := func(c *nn.Ctx) graph.Value {
		h := nn.Relu(nn.Linear(c.In("first"), in, 128))
		h = nn.Relu(nn.Linear(c.In("second"), h, 128))
		return nn.Linear(c.In("third"), h, classes)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), labels), nn.Momentum{Mu: 0.9},
		nn.MinimizeOptions{Rate: nn.Constant(rate)})
	m.Evaluate(nn.CrossEntropy(net(m.Evaluation()), labels))
	b, err := data.FromTensors(data.ExamplesOptions{Batch: batch}, x, y)
	return m, b, errors.Join(m.Err(), err)
}

// parameters are a session's.
func parameters(m *nn.Model, s *gomem.Session) (values []gomem.Tensor, err error) {
	for _, v := range m.Parameters() {
		x, err := s.Get(v)
		if err != nil {
			return nil, err
		}
		values = append(values, x)
	}
	return values, nil
}

// runWorkers trains by gomem.
func runWorkers(ctx context.Context) (trained, error) {
	v := distrib.View{Epoch: 1}
	var ports []*wire.Port
	for i := range replicas {
		p, err := wire.Listen("127.0.0.1:0", wire.Options{})
		if err != nil {
			return trained{}, err
		}
		defer p.Close()
		ports = append(ports, p)
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i), Addr: p.Addr()})
	}
	var out trained
	errs := make([]error, len(ports))
	var wg sync.WaitGroup
	for i, p := range ports {
		mine := v
		mine.Self = distrib.NodeID(i)
		wg.Go(func() { errs[i] = work(ctx, mine, p, &out) })
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// work is one worker; the first one says what came of it.
func work(ctx context.Context, v distrib.View, p *wire.Port, out *trained) error {
	t, err := p.Open(v)
	if err != nil {
		return err
	}
	scheme, err := workers.ParseScheme("ring", workers.SchemeOptions{})
	if err != nil {
		return err
	}
	member, err := workers.Join(v, t, scheme, workers.Options{})
	if err != nil {
		return err
	}
	m, b, err := task(len(v.Nodes))
	if err != nil {
		return member.Close(err)
	}
	o := train.Options{Model: m, Loader: b, Steps: steps, Seed: seed,
		Session: gomem.Options{Threads: 1, Seed: seed, Network: member.Network()}}
	if o.Parallel, err = member.Parallel(m.Graph); err != nil {
		return member.Close(err)
	}
	var times []time.Duration
	if v.Self == 0 {
		o.Observe = func(e train.Event) {
			if e.Kind == train.Step {
				times = append(times, e.StepTime)
			}
		}
		o.After = func(_ context.Context, s *gomem.Session) (err error) {
			out.values, err = parameters(m, s)
			out.step = median(times)
			return err
		}
	}
	_, err = train.Run(ctx, o)
	return member.Close(err)
}

// seed selects the initial parameters.
const seed = 7
