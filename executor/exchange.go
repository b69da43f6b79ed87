package executor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan"
)

// Join has runs exchange values over a network; without one, or with nil, what is sent is
// what is awaited. No run may be under way. A network is only for devices that compute.
func (e *Executor) Join(n Network) { e.network = n }

// Exchanges are those of a run, in the order in which they are sent, without Data.
func (e *Executor) Exchanges() []Exchange {
	var list []Exchange
	for _, s := range e.plan.Steps {
		if n := e.graph.Node(s.Node); gives(s) {
			list = append(list, e.flight(n).exchange(n.Out[0], nil))
		}
	}
	return list
}

// gives reports whether a step gives a value to an exchange.
func gives(s plan.Step) bool {
	switch s.Do.(type) {
	case plan.Send, plan.Peer:
		return true
	}
	return false
}

// Joint is the first exchange of a run that has no sense without the other workers.
func (e *Executor) Joint() (x graph.Exchange, joint bool) {
	for _, s := range e.plan.Steps {
		if gives(s) {
			if f := e.flight(e.graph.Node(s.Node)); f.Joint && f.Parts > 1 {
				return f.Exchange, true
			}
		}
	}
	return graph.Exchange{}, false
}

// flight is an exchange of a plan.
type flight struct {
	graph.Exchange
	away bool // it is sent and not awaited
}

// send makes the task of a send.
func (e *Executor) send(i int, do plan.Send) (device.Task, error) {
	s := e.plan.Steps[i]
	n := e.graph.Node(s.Node)
	f := e.flight(n)
	c := device.Call{Engine: e.plan.Streams[s.Stream].Engine, Step: i, Name: s.Name,
		What: do.What(), Data: e.region(do.Out, do.Bytes)}
	for k, r := range do.In {
		bytes := do.Bytes
		if n.Shared == nil {
			bytes = n.In[k].Type().Bytes()
		}
		c.In = append(c.In, e.region(r, bytes))
	}
	c.Do = func(stop <-chan struct{}, in [][]byte, data []byte) error {
		x := f.exchange(n.Out[0], data)
		ints := func(k int) []int32 { return tensor.View{Type: n.In[k].Type(), Data: in[k]}.I32() }
		switch {
		case f.How.Fold.Some():
			x.Ranks = ints(1)
		case f.How.Fold == graph.SwapSome:
			x.Going, x.Coming = ints(1), ints(2)
		}
		if e.network == nil || f.Every > 0 && !f.Due(scalar(in[1])) {
			f.Alone(data)
			return f.AloneSome(n.Out[0], data, x.Going)
		}
		f.away = true
		return e.network.Send(during{e.run, stop}, x)
	}
	return e.device.Call(c)
}

// peer makes the task of an exchange between devices.
func (e *Executor) peer(i int, do plan.Peer) (device.Task, error) {
	s := e.plan.Steps[i]
	n := e.graph.Node(s.Node)
	from, to := e.region(do.In[0], n.In[0].Type().Bytes()), e.region(do.Out, do.Bytes)
	x := e.flight(n).exchange(n.Out[0], nil)
	return e.device.Call(device.Call{Engine: e.plan.Streams[s.Stream].Engine, Step: i,
		Name: s.Name, What: do.What(), In: []device.Region{from}, Data: to,
		Do: func(stop <-chan struct{}, _ [][]byte, _ []byte) error {
			net, ok := e.network.(Peer)
			reach, can := e.device.(device.Reacher)
			if !ok || !can {
				return errors.New("it is between devices, and these do not reach each other")
			}
			return net.Exchange(during{e.run, stop}, x, place{reach, from}, place{reach, to})
		}})
}

// place is a region of a device.
type place struct {
	device device.Reacher
	device.Region
}

// Pull copies bytes of a place to this one.
func (p place) Pull(to int64, from Place, at, bytes int64) error {
	src, ok := from.(place)
	if !ok {
		return fmt.Errorf("a device copies from no %T", from)
	}
	part := func(r device.Region, off int64) device.Region {
		return device.Region{Mem: r.Mem, Off: r.Off + off, Bytes: bytes}
	}
	return p.device.Pull(part(p.Region, to), part(src.Region, at))
}

// Clear zeroes the region.
func (p place) Clear() error { return p.device.Clear(p.Region) }

// flight is the exchange of what a node sends.
func (e *Executor) flight(n *graph.Node) *flight {
	if n.Shared != nil {
		f := e.shared[n.Name]
		if f == nil {
			f = &flight{Exchange: graph.Exchange{Name: n.Name, How: *n.Shared}}
			e.shared[n.Name] = f
		}
		return f
	}
	f := e.flights[n.ID]
	if f == nil {
		f = &flight{}
		f.Exchange, _ = n.Gives()
		e.flights[n.ID] = f
	}
	return f
}

// exchange is what the network is given: a value of a type, in its bytes.
func (f *flight) exchange(t graph.Type, data []byte) Exchange {
	return Exchange{Name: f.Name, Type: t, How: f.How, Parts: f.Parts, Root: f.Root, To: f.To,
		Rows: f.Rows, Each: f.Each, Data: data}
}

// scalar is an f32[].
func scalar(b []byte) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b)) }

// await makes the task of an await, whose send comes before it in the plan.
func (e *Executor) await(i int, do plan.Await) (device.Task, error) {
	s := e.plan.Steps[i]
	n := e.graph.Node(s.Node)
	if n.Shared == nil {
		n = n.In[0].Node
	}
	f := e.flight(n)
	return e.device.Call(device.Call{Engine: e.plan.Streams[s.Stream].Engine, Step: i,
		Name: s.Name, What: do.What(), Data: e.region(do.At, do.Bytes),
		Do: func(stop <-chan struct{}, _ [][]byte, _ []byte) error {
			return e.land(during{e.run, stop}, f)
		}})
}

// land waits for an exchange, if there is one.
func (e *Executor) land(ctx context.Context, f *flight) error {
	if !f.away {
		return nil
	}
	if g, ok := e.network.(Gatherer); ok {
		if err := g.Gather(ctx); err != nil {
			return err
		}
	}
	err := e.network.Await(ctx, f.Name)
	f.away = err != nil
	return err
}

// Settle waits until the network does not have a variable, which may then be read and
// written. No run may be under way.
func (e *Executor) Settle(ctx context.Context, variable string) error {
	if f := e.shared[variable]; f != nil {
		return e.land(ctx, f)
	}
	return nil
}

// Abandon has the network let go of all that it has, and returns the names of the
// variables among that: they are neither what was sent nor, for certain, what comes of it.
// No run may be under way.
func (e *Executor) Abandon() (variables []string) {
	away := false
	for _, f := range e.flights {
		away = away || f.away
		f.away = false
	}
	for name, f := range e.shared {
		if f.away {
			variables = append(variables, name)
		}
		f.away = false
	}
	if away || len(variables) > 0 {
		e.network.Abandon()
	}
	return variables
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
