// Package executor runs plans on a device. It makes no decision: it hands every
// step of a plan to its stream, in the plan's order, with the plan's waits as
// events, and checks that the memory touched is the memory predicted.
//
// All that a step needs is resolved when the executor is made; running a plan
// again costs a queue operation a run of steps.
package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/tensor"
	"github.com/gomem/gomem/plan"
)

// Streams are a device's streams by name. Executors of several plans share them.
type Streams struct {
	device device.Device
	byName map[string]device.Stream
}

// NewStreams makes an empty set; streams start when a plan first names them.
func NewStreams(d device.Device) *Streams {
	return &Streams{device: d, byName: map[string]device.Stream{}}
}

func (s *Streams) get(p plan.Stream) (device.Stream, error) {
	if st, ok := s.byName[p.Name]; ok {
		return st, nil
	}
	st, err := s.device.Stream(p.Name, p.Engine)
	if err == nil {
		s.byName[p.Name] = st
	}
	return st, err
}

// Executor runs one plan.
type Executor struct {
	plan    *plan.Plan
	graph   *graph.Graph
	memory  []device.Memory // by space
	streams []device.Stream // by plan stream
	work    []work          // the steps in order, in runs
	fixed   []int64         // by space: end of the variables, which always count as used
	peak    []int64         // by space: the most that any run has touched
}

// work is a run of consecutive steps on one stream, of which only the first
// waits and only the last is waited for.
type work struct {
	stream device.Stream
	tasks  []device.Task
	wait   []*work
	event  device.Event
	record bool // a later step waits for the last one
}

// New resolves a plan of g. memory has the spaces of the plan, in order.
func New(d device.Device, streams *Streams, memory []device.Memory, p *plan.Plan,
	g *graph.Graph) (*Executor, error) {
	e := &Executor{plan: p, graph: g, memory: memory, fixed: make([]int64, len(p.Spaces)),
		peak: make([]int64, len(p.Spaces))}
	for _, s := range p.Streams {
		st, err := streams.get(s)
		if err != nil {
			return nil, fmt.Errorf("executor: stream %s: %w", s.Name, err)
		}
		e.streams = append(e.streams, st)
	}
	for _, s := range p.Slots {
		if s.Fixed {
			e.fixed[s.Space] = max(e.fixed[s.Space], s.Off+s.Bytes)
		}
	}
	return e, e.resolve(d)
}

// maxRun bounds the length of a run, so that a stream starts while later runs
// are still being queued.
const maxRun = 64

// resolve makes the tasks of all steps and groups them into runs.
func (e *Executor) resolve(d device.Device) error {
	steps := e.plan.Steps
	awaited := make([]bool, len(steps))
	for _, s := range steps {
		for _, w := range s.Wait {
			awaited[w] = true
		}
	}
	runs := make([]int, len(steps)) // by step: its run
	for i, s := range steps {
		task, err := e.task(d, i)
		if err != nil {
			return &plan.Error{Step: i, Name: s.Name, Err: err}
		}
		last := len(e.work) - 1
		if i == 0 || s.Stream != steps[i-1].Stream || len(s.Wait) > 0 || awaited[i-1] ||
			len(e.work[last].tasks) == maxRun {
			e.work = append(e.work, work{stream: e.streams[s.Stream]})
			last++
		}
		e.work[last].tasks = append(e.work[last].tasks, task)
		e.work[last].record = awaited[i]
		runs[i] = last
	}
	for i, s := range steps {
		for _, w := range s.Wait {
			run := &e.work[runs[i]]
			run.wait = append(run.wait, &e.work[runs[w]])
		}
	}
	return nil
}

// task makes the device's task of a step.
func (e *Executor) task(d device.Device, i int) (device.Task, error) {
	s := e.plan.Steps[i]
	switch do := s.Do.(type) {
	case plan.Copy:
		return d.Copy(device.Copy{
			Step: i, Name: s.Name, What: do.Why.String(),
			Dst: e.region(do.Dst, do.Bytes), Src: e.region(do.Src, do.Bytes),
		})
	case plan.Launch:
		n := e.graph.Node(s.Node)
		l := device.Launch{Step: i, Name: s.Name, What: do.Op, Op: n.Op}
		for k, r := range do.In {
			l.In = append(l.In, e.operand(r, n.In[k].Type()))
		}
		for k, r := range do.Out {
			l.Out = append(l.Out, e.operand(r, n.Out[k]))
		}
		if do.Scratch != plan.NoSlot {
			l.Scratch = e.region(plan.Ref{Slot: do.Scratch}, e.plan.Slots[do.Scratch].Bytes)
		}
		return d.Launch(l)
	}
	return nil, fmt.Errorf("unknown action %T", s.Do)
}

func (e *Executor) region(r plan.Ref, bytes int64) device.Region {
	s := e.plan.Slots[r.Slot]
	return device.Region{Mem: e.memory[s.Space], Off: s.Off + r.Off, Bytes: bytes}
}

func (e *Executor) operand(r plan.Ref, t tensor.Type) device.Operand {
	return device.Operand{Region: e.region(r, t.Bytes()), Type: t}
}

// Write puts data into the slot of a leaf. No step may be running.
func (e *Executor) Write(b plan.Binding, data []byte) error {
	s := e.plan.Slots[b.Slot]
	if int64(len(data)) != s.Bytes {
		return fmt.Errorf("%s has %d bytes, not %d", b.Name, s.Bytes, len(data))
	}
	return e.memory[s.Space].Write(s.Off, data)
}

// Read copies the slot of a leaf. No step may be running.
func (e *Executor) Read(b plan.Binding, data []byte) error {
	s := e.plan.Slots[b.Slot]
	if int64(len(data)) != s.Bytes {
		return fmt.Errorf("%s has %d bytes, not %d", b.Name, s.Bytes, len(data))
	}
	return e.memory[s.Space].Read(s.Off, data)
}

// Fetch copies a fetched value into data, after a run.
func (e *Executor) Fetch(f plan.Fetch, data []byte) error {
	s := e.plan.Slots[f.Ref.Slot]
	return e.memory[s.Space].Read(s.Off+f.Ref.Off, data)
}

// Begin resets the count of the memory used. Feeds are written after it and
// before Run.
func (e *Executor) Begin() {
	for _, m := range e.memory {
		m.ResetUsed()
	}
}

// Run runs the plan once and checks that every space was used up to exactly
// its predicted peak. An error leaves memory undefined.
func (e *Executor) Run(ctx context.Context) error {
	for i := range e.work {
		w := &e.work[i]
		for _, before := range w.wait {
			w.stream.Wait(before.event)
		}
		w.stream.Run(w.tasks...)
		if w.record {
			w.event = w.stream.Record()
		}
	}
	var errs []error
	for _, s := range e.streams {
		errs = append(errs, s.Sync(ctx))
	}
	for _, err := range errs {
		if err != nil {
			return e.explain(err)
		}
	}
	return e.account()
}

// explain turns a device's error into the plan's, with operation, operand types
// and the model's line.
func (e *Executor) explain(err error) error {
	d, ok := errors.AsType[*device.Error](err)
	if !ok || d.What == "stream" {
		return err
	}
	n := e.graph.Node(e.plan.Steps[d.Step].Node)
	cause := &graph.Error{Node: n.Name, Op: d.What, Pos: n.Pos, In: n.InTypes(), Err: d.Err}
	return &plan.Error{Step: d.Step, Name: d.Name, Err: cause}
}

// account compares what was used with what was predicted.
func (e *Executor) account() error {
	for i, s := range e.plan.Spaces {
		used := max(e.memory[i].Used(), e.fixed[i])
		e.peak[i] = max(e.peak[i], used)
		if used != s.Bytes {
			return &plan.Error{Step: -1, Name: s.Name,
				Err: fmt.Errorf("the run used %d bytes, the plan predicts %d", used, s.Bytes)}
		}
	}
	return nil
}

// Peak is the most bytes of each space that any run has used.
func (e *Executor) Peak() []int64 { return e.peak }
