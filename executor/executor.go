// Package executor runs plans on a device. It makes no decision: it hands every
// step of a plan to its stream, in the plan's order, with the plan's waits as
// events, and checks that the memory touched is the memory predicted.
//
// All that a step needs is resolved when the executor is made; running a plan
// again costs a queue operation a run of steps.
package executor

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// Streams are a device's streams. Executors of several plans share them.
type Streams struct {
	device  device.Device
	started map[plan.Stream]device.Stream
	shared  map[string]*flight // variables that workers share, by name
}

// NewStreams makes an empty set; streams start when a plan first names them.
func NewStreams(d device.Device) *Streams {
	return &Streams{device: d, started: map[plan.Stream]device.Stream{},
		shared: map[string]*flight{}}
}

// Start starts the streams of a plan, which take memory of the device that is not the plan's: so
// it is known to be there before the plan's is taken.
func (s *Streams) Start(p *plan.Plan) error {
	for _, of := range p.Streams {
		if _, err := s.get(of); err != nil {
			return fmt.Errorf("executor: stream %s: %w", of.Name, err)
		}
	}
	return nil
}

func (s *Streams) get(p plan.Stream) (device.Stream, error) {
	if st, ok := s.started[p]; ok {
		return st, nil
	}
	st, err := s.device.Stream(p.Name, p.Engine)
	if err == nil {
		s.started[p] = st
	}
	return st, err
}

// Executor runs one plan.
type Executor struct {
	device  device.Device
	plan    *plan.Plan
	graph   *graph.Graph
	memory  []device.Memory // by space
	streams []device.Stream // by plan stream
	work    []work          // the steps in order, in runs
	writes  []write         // what steps do to variables
	begun   []uint64        // by plan stream: tasks begun before the run under way
	fixed   []int64         // by space: end of the variables, which always count as used
	peak    []int64         // by space: the most that any run has touched
	ran     bool            // a run has been complete
	network Network         // nil if there is one worker
	run     context.Context // of the run under way
	flights map[graph.NodeID]*flight
	shared  map[string]*flight // of all plans of the session
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

// New resolves a plan of g, which plan.Verify accepts. memory has the spaces of the
// plan, in order; one may be larger than the plan needs.
func New(d device.Device, streams *Streams, memory []device.Memory, p *plan.Plan,
	g *graph.Graph) (*Executor, error) {
	if err := checkMemory(memory, p); err != nil {
		return nil, err
	}
	e := &Executor{device: d, plan: p, graph: g, memory: memory,
		fixed: make([]int64, len(p.Spaces)), peak: make([]int64, len(p.Spaces)),
		begun: make([]uint64, len(p.Streams)), flights: map[graph.NodeID]*flight{},
		shared: streams.shared}
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
	e.writes = writes(p)
	if err := e.resolve(d); err != nil {
		return nil, err
	}
	if c, ok := d.(device.Compiler); ok {
		if err := c.Compile(); err != nil {
			return nil, fmt.Errorf("executor: %w", err)
		}
	}
	return e, nil
}

// checkMemory demands a memory for every space of a plan.
func checkMemory(memory []device.Memory, p *plan.Plan) error {
	if len(memory) != len(p.Spaces) {
		return fmt.Errorf("executor: %d memories for the %d spaces of a plan", len(memory),
			len(p.Spaces))
	}
	for i, s := range p.Spaces {
		m := memory[i]
		if m == nil || m.Space() != space.ID(i) || m.Bytes() < s.Bytes {
			return fmt.Errorf("executor: no %s memory of %d bytes for a plan that needs it", s.Name,
				s.Bytes)
		}
	}
	return nil
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
	engine := e.plan.Streams[s.Stream].Engine
	switch do := s.Do.(type) {
	case plan.Copy:
		return d.Copy(device.Copy{
			Engine: engine, Step: i, Name: s.Name, What: do.Why.String(),
			Dst: e.region(do.Dst, do.Bytes), Src: e.region(do.Src, do.Bytes),
		})
	case plan.Launch:
		n := e.graph.Node(s.Node)
		cost := n.Cost()
		l := device.Launch{Engine: engine, Step: i, Name: s.Name, What: do.Op, Op: n.Op,
			Library: do.Library, Cost: device.Cost{FLOPs: cost.FLOPs, Bytes: cost.Bytes}}
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
	case plan.Send:
		return e.send(i, do)
	case plan.Await:
		return e.await(i, do)
	case plan.Peer:
		return e.peer(i, do)
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
