package executor

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan"
)

// Join has runs exchange values over a network; without one, or with nil, what is sent is
// what is awaited. No run may be under way. A network is only for devices that compute.
func (e *Executor) Join(n Network) { e.network = n }

// flight is an exchange of a plan.
type flight struct {
	graph.Exchange
	away bool // it is sent and not awaited
}

// send makes the task of a send.
func (e *Executor) send(i int, do plan.Send) (device.Task, error) {
	s := e.plan.Steps[i]
	n := e.graph.Node(s.Node)
	f := &flight{}
	f.Exchange, _ = n.Sends()
	e.flights[n.ID] = f
	c := device.Call{Engine: e.plan.Streams[s.Stream].Engine, Step: i, Name: s.Name,
		What: do.What(), Data: e.region(do.Out, do.Bytes)}
	for k, r := range do.In {
		c.In = append(c.In, e.region(r, n.In[k].Type().Bytes()))
	}
	c.Do = func(stop <-chan struct{}, in [][]byte, data []byte) error {
		if e.network == nil || len(in) > 1 && !f.Due(scalar(in[1])) {
			return nil
		}
		f.away = true
		return e.network.Send(during{e.run, stop},
			Exchange{Name: f.Name, Type: n.Out[0], How: f.How, Data: data})
	}
	return e.device.Call(c)
}

// scalar is an f32[].
func scalar(b []byte) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b)) }

// await makes the task of an await, whose send comes before it in the plan.
func (e *Executor) await(i int, do plan.Await) (device.Task, error) {
	s := e.plan.Steps[i]
	f := e.flights[e.graph.Node(s.Node).In[0].Node.ID]
	return e.device.Call(device.Call{Engine: e.plan.Streams[s.Stream].Engine, Step: i,
		Name: s.Name, What: do.What(), Data: e.region(do.At, do.Bytes),
		Do: func(stop <-chan struct{}, _ [][]byte, _ []byte) error {
			if !f.away {
				return nil
			}
			err := e.network.Await(during{e.run, stop}, f.Name)
			f.away = err != nil
			return err
		}})
}

// abandon has the network let go of what a run that failed has left with it.
func (e *Executor) abandon() {
	away := false
	for _, f := range e.flights {
		away = away || f.away
		f.away = false
	}
	if away {
		e.network.Abandon()
	}
}

// during is a run's context, which ends when the device stops as well.
type during struct {
	context.Context
	stop <-chan struct{}
}

// Done is closed when the device stops, which it does when the context ends.
func (c during) Done() <-chan struct{} { return c.stop }

// Err is the context's, or, if another step has failed, context.Canceled.
func (c during) Err() error {
	select {
	case <-c.stop:
		if err := c.Context.Err(); err != nil {
			return err
		}
		return context.Canceled
	default:
		return nil
	}
}
