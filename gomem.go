package gomem

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/executor"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/tensor"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/space"
)

// ErrOutOfMemory says that no plan fits a budget: what is needed, by what, and
// what would help. Compile's errors wrap it.
type ErrOutOfMemory = compile.ErrOutOfMemory

// Session is a compiled graph with its memories: one allocation a space, in
// which variables live between steps. It is not safe for concurrent use.
type Session struct {
	graph   *graph.Graph // the model's; planned has the one that runs
	planned *Planned
	device  device.Device
	memory  []device.Memory
	targets []*target
	slots   map[string]plan.Binding // of variables and constants, which keep their names
	failed  error
}

// target is one plan, ready to run.
type target struct {
	name   string
	result *compile.Result
	exec   *executor.Executor
	feeds  []graph.Value // by plan feed
}

// Compile is [Plan] and [Open]: it decides how to run the targets of a graph,
// takes the memory that the plans need and sets every variable to its initial
// value. The error wraps an *[ErrOutOfMemory] if a budget cannot be met.
func Compile(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (*Session, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("gomem: %w", err)
	}
	p, err := Plan(ctx, g, o, targets...)
	if err != nil {
		return nil, err
	}
	return Open(p, o)
}

// Open takes the memory for plans that are made and sets every variable to the
// initial value that Options.Seed selects, unless Options.NoInitialize is set; on
// the device [Null], which keeps no values, nothing is set. All targets share the
// variables. What Plan decides by is not looked at again.
func Open(p *Planned, o Options) (*Session, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("gomem: %w", err)
	}
	if p == nil || len(p.Results) == 0 {
		return nil, errors.New("gomem: nothing to open: no plans")
	}
	if o.Logger != nil {
		for i, r := range p.Results {
			logPlan(o.Logger, p.Targets[i].Name, r)
		}
	}
	s := &Session{graph: p.Model, planned: p}
	err := s.open(o)
	if err == nil && o.Device != Null {
		err = s.initialize(o.Seed, !o.NoInitialize)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gomem: %w", err), s.Close())
	}
	return s, nil
}

func logPlan(log *zap.Logger, name string, r *compile.Result) {
	for _, t := range r.Timings {
		log.Debug("pass", zap.String("target", name), zap.String("pass", t.Pass),
			zap.Duration("took", t.Took))
	}
	traffic := r.Plan.Traffic()
	log.Info("plan", zap.String("target", name), zap.String("title", r.Plan.Title),
		zap.Int("steps", len(r.Plan.Steps)), zap.Int("partitions", r.Plan.Parts),
		zap.Int64("device_bytes", r.Plan.Spaces[space.Device].Bytes),
		zap.Int64("host_bytes", r.Plan.Spaces[space.Host].Bytes),
		zap.Int64("in_bytes", traffic.In()), zap.Int64("out_bytes", traffic.Out()),
		zap.Duration("took", r.Took))
}

// open takes the memory and resolves the plans on the device.
func (s *Session) open(o Options) error {
	results := s.planned.Results
	if err := sameVariables(results); err != nil {
		return err
	}
	s.slots = map[string]plan.Binding{}
	for _, b := range results[0].Plan.Variables {
		s.slots[b.Name] = b
	}
	inputs := map[string]graph.Value{}
	for _, n := range s.graph.Inputs() {
		inputs[n.Name] = n.Value(0)
	}
	var err error
	if s.device, err = o.open(); err != nil {
		return err
	}
	for i, space := range results[0].Plan.Spaces {
		var bytes int64
		for _, r := range results {
			bytes = max(bytes, r.Plan.Spaces[i].Bytes)
		}
		m, err := s.device.Alloc(space.Name, bytes)
		if err != nil {
			return err
		}
		s.memory = append(s.memory, m)
	}
	streams := executor.NewStreams(s.device)
	for i, r := range results {
		exec, err := executor.New(s.device, streams, s.memory, r.Plan, s.planned.Graph)
		if err != nil {
			return err
		}
		t := &target{name: s.planned.Targets[i].Name, result: r, exec: exec}
		for _, f := range r.Plan.Feeds {
			t.feeds = append(t.feeds, inputs[f.Name])
		}
		s.targets = append(s.targets, t)
	}
	return nil
}

// sameVariables demands that all plans agree on where the variables are.
func sameVariables(results []*compile.Result) error {
	address := func(p *plan.Plan, b plan.Binding) [2]int64 {
		return [2]int64{int64(p.Slots[b.Slot].Space), p.Slots[b.Slot].Off}
	}
	first := results[0].Plan
	for _, r := range results[1:] {
		for i, b := range r.Plan.Variables {
			if i >= len(first.Variables) ||
				address(first, first.Variables[i]) != address(r.Plan, b) {
				return fmt.Errorf("two plans disagree on the address of %s", b.Name)
			}
		}
	}
	return nil
}

// Step runs a target once and returns its fetches, in the target's order. The
// feeds must have every input that the target reads. After an error the
// variables are undefined and the session can only be closed.
func (s *Session) Step(ctx context.Context, name string, feeds Feeds) ([]Tensor, error) {
	if s.failed != nil {
		return nil, fmt.Errorf("gomem: an earlier step failed: %w", s.failed)
	}
	t, err := s.target(name)
	if err != nil {
		return nil, err
	}
	t.exec.Begin()
	if err := t.feed(feeds); err != nil {
		return nil, fmt.Errorf("gomem: step %s: %w", name, err)
	}
	if err := t.exec.Run(ctx); err != nil {
		s.failed = err
		return nil, fmt.Errorf("gomem: step %s: %w", name, err)
	}
	var out []Tensor
	for _, f := range t.result.Plan.Fetches {
		v := tensor.New(f.Type)
		if err := t.exec.Fetch(f, v.Data); err != nil {
			return nil, fmt.Errorf("gomem: fetch %s: %w", f.Value, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func (s *Session) target(name string) (*target, error) {
	for _, t := range s.targets {
		if t.name == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("gomem: no target %q", name)
}

func (t *target) feed(feeds Feeds) error {
	for i, b := range t.result.Plan.Feeds {
		v := t.feeds[i]
		data, ok := feeds[v]
		switch {
		case !ok:
			return fmt.Errorf("input %s (%s) is not fed", b.Name, v.Type())
		case !data.Type.Equal(v.Type()):
			return fmt.Errorf("input %s is %s, fed with %s", b.Name, v.Type(), data.Type)
		}
		if err := t.exec.Write(b, data.Data); err != nil {
			return err
		}
	}
	return nil
}

// Plan is the plan of a target, or nil.
func (s *Session) Plan(name string) *plan.Plan {
	t, err := s.target(name)
	if err != nil {
		return nil
	}
	return t.result.Plan
}

// Usage is what a session needs of a space.
type Usage struct {
	Space     string
	Predicted int64 // bytes: the largest of the plans'
	Actual    int64 // bytes: the most that any step has used; 0 before the first
}

// Usage lists the spaces, the device first.
func (s *Session) Usage() []Usage {
	var out []Usage
	for i, space := range s.targets[0].result.Plan.Spaces {
		u := Usage{Space: space.Name}
		for _, t := range s.targets {
			u.Predicted = max(u.Predicted, t.result.Plan.Spaces[i].Bytes)
			u.Actual = max(u.Actual, t.exec.Peak()[i])
		}
		out = append(out, u)
	}
	return out
}

// Variables are the variables of the graph, in order of their names.
func (s *Session) Variables() []graph.Value {
	var out []graph.Value
	for _, n := range s.graph.Variables() {
		out = append(out, n.Value(0))
	}
	slices.SortFunc(out, func(a, b graph.Value) int {
		switch {
		case a.Node.Name < b.Node.Name:
			return -1
		case a.Node.Name > b.Node.Name:
			return 1
		}
		return 0
	})
	return out
}

// Get copies the value of a variable.
func (s *Session) Get(v graph.Value) (Tensor, error) {
	b, err := s.binding(v)
	if err != nil {
		return Tensor{}, err
	}
	out := tensor.New(v.Type())
	return out, s.targets[0].exec.Read(b, out.Data)
}

// Set gives a variable a value.
func (s *Session) Set(v graph.Value, data Tensor) error {
	b, err := s.binding(v)
	if err != nil {
		return err
	}
	if !data.Type.Equal(v.Type()) {
		return fmt.Errorf("gomem: variable %s is %s, set to %s", v, v.Type(), data.Type)
	}
	return s.targets[0].exec.Write(b, data.Data)
}

func (s *Session) binding(v graph.Value) (plan.Binding, error) {
	if v.Valid() && v.Graph() == s.graph {
		if b, ok := s.slots[v.Node.Name]; ok {
			return b, nil
		}
	}
	return plan.Binding{}, fmt.Errorf("gomem: %s is not a variable of this session", v)
}

// Close ends the device's goroutines and frees the memory. It is idempotent.
func (s *Session) Close() error {
	if s.device == nil {
		return nil
	}
	return s.device.Close()
}
