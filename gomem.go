package gomem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomem/gomem/executor"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// ErrOutOfMemory says that no plan fits a budget: what is needed, by what, and
// what would help. Compile's errors wrap it.
type ErrOutOfMemory = planner.ErrOutOfMemory

// ErrClosed is what methods of a session return that was closed, or never opened.
var ErrClosed = errors.New("the session is closed")

// ErrDamaged is in the error of a step, or of reading a variable, that found other bytes on the
// disk than were written there. The error names the file and where in it, and the value.
var ErrDamaged = device.ErrDamaged

// Session is a compiled graph with its memories: one allocation a space, in
// which variables live between steps. Its methods may be called from several
// goroutines: they run one after the other, and Close waits for a step under way,
// which its context ends.
type Session struct {
	mu      sync.Mutex
	graph   *graph.Graph // the model's; planned has the one that runs
	planned *Planned
	device  device.Device // nil when closed
	opened  time.Time
	memory  []device.Memory
	targets []*target
	inputs  map[graph.Value]bool    // the model's
	slots   map[string]plan.Binding // of variables and constants, which keep their names
	torn    map[string]bool         // variables that a failed step left half-updated
	apart   map[string][]mesh.Owned // variables that are divided among processes
	network reserve
	agreer  Agreer // nil if there is nothing to agree about any more
	beside  int64  // bytes of the device's memory that are not the plans': see [CUDA]
}

// reserve is what the network has of the host's memory.
type reserve struct {
	bytes int64
	meter Meter // nil if it does not say
}

// target is one plan, ready to run.
type target struct {
	name    string
	result  *planner.Result
	exec    *executor.Executor
	feeds   []graph.Value // by plan feed, and the inputs that are fetched beside
	fetches []fetch
	checks  []check
}

// Compile is [Reserve], [Plan] and [Open]: it decides how to run the targets of a graph,
// takes the memory that the plans need and sets every variable to its initial
// value. The error wraps an *[ErrOutOfMemory] if a budget cannot be met.
func Compile(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (*Session, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("gomem: %w", err)
	}
	if o.DeviceBytes > 0 && o.ReserveBytes == 0 {
		var err error
		if o.ReserveBytes, err = Reserve(o); err != nil {
			return nil, err
		}
	}
	p, err := Plan(ctx, g, o, targets...)
	if err != nil {
		return nil, err
	}
	return Open(p, o)
}

// Open takes the memory for plans that are made and sets every variable to the
// initial value that Options.Seed selects, unless Options.NoInitialize is set; on
// devices that keep no values, [Null] and simulated ones, nothing is set. All targets share the
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
	s := &Session{graph: p.Model, planned: p.Chosen(), opened: time.Now()}
	err := s.open(o)
	if err == nil && Computes(o.Device) {
		err = s.initialize(o.Seed, !o.NoInitialize)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gomem: %w", gpuMemory(err)), s.Close())
	}
	return s, nil
}

func logPlan(log *slog.Logger, name string, r *planner.Result) {
	for _, t := range r.Timings {
		log.Debug("pass", "target", name, "pass", t.Pass, "took", t.Took)
	}
	traffic := r.Plan.Traffic()
	log.Info("plan", "target", name, "title", r.Plan.Title, "steps", len(r.Plan.Steps),
		"partitions", r.Plan.Parts, "device_bytes", r.Plan.Spaces[space.Device].Bytes,
		"host_bytes", r.Plan.Spaces[space.Host].Bytes, "in_bytes", traffic.In(),
		"out_bytes", traffic.Out(), "took", r.Took)
}

// open takes the memory and resolves the plans on the device.
func (s *Session) open(o Options) error {
	results := s.planned.Results
	if err := sameVariables(results); err != nil {
		return err
	}
	s.slots, s.inputs, s.torn = map[string]plan.Binding{}, map[graph.Value]bool{}, map[string]bool{}
	for _, b := range results[0].Plan.Variables {
		s.slots[b.Name] = b
	}
	if m := s.planned.Mesh; m != nil {
		s.apart = m.Propagation.Apart()
	}
	byName := map[string]graph.Value{}
	for _, n := range s.graph.Inputs() {
		byName[n.Name] = n.Value(0)
		s.inputs[n.Value(0)] = true
	}
	meter := o.Meter
	if m, ok := o.Network.(Meter); ok && meter == nil {
		meter = m
	}
	s.network = reserve{o.NetworkBytes, meter}
	if _, ok := GPU(o.Device); ok {
		s.beside = workspaces(results) + o.ReserveBytes
	}
	var err error
	if s.device, err = o.open(s.planned); err != nil {
		return err
	}
	streams := executor.NewStreams(s.device)
	for _, r := range results {
		if err := streams.Start(r.Plan); err != nil {
			return err
		}
	}
	for i := range longest(s.planned.Results) {
		m, err := s.device.Alloc(space.ID(i), s.planned.Peak(space.ID(i)))
		if err != nil {
			return err
		}
		s.memory = append(s.memory, m)
	}
	for i, r := range results {
		exec, err := executor.New(s.device, streams, s.memory[:len(r.Plan.Spaces)], r.Plan,
			s.planned.Graph)
		if err != nil {
			return err
		}
		if gathers(o.Network) && s.planned.Graph.Exchanges() && !r.Plan.Gathers {
			return errors.New("the network is for jobs that go on without a worker that is " +
				"lost in a step, and the plan is not: set Options.Gathers for Plan, too")
		}
		exec.Join(o.Network)
		t := &target{name: s.planned.Targets[i].Name, result: r, exec: exec}
		for _, f := range r.Plan.Feeds {
			t.feeds = append(t.feeds, byName[f.Name])
		}
		t.fetches = fetchesOf(s.planned.Targets[i], r.Plan, byName)
		for _, f := range t.fetches {
			if f.kind == graph.KindInput && !slices.Contains(t.feeds, f.leaf) {
				t.feeds = append(t.feeds, f.leaf)
			}
		}
		t.checks = checksOf(s.planned.Graph, s.planned.Targets[i], r.Plan.Feeds)
		s.targets = append(s.targets, t)
	}
	if err := ready(s.device, s.planned, o); err != nil {
		return err
	}
	switch {
	case !Computes(o.Device): // nor exchanges
		return nil
	case o.Network == nil:
		return s.needed()
	}
	s.agreer, _ = o.Network.(Agreer)
	return o.reached()
}

// sameVariables demands that all plans agree on where the variables are.
func sameVariables(results []*planner.Result) error {
	address := func(p *plan.Plan, b plan.Binding) [2]int64 {
		return [2]int64{int64(p.Slots[b.Slot].Space), p.Slots[b.Slot].Off}
	}
	first := results[0].Plan
	for _, r := range results[1:] {
		if !slices.EqualFunc(first.Variables, r.Plan.Variables, func(a, b plan.Binding) bool {
			return a.Name == b.Name && address(first, a) == address(r.Plan, b)
		}) {
			return errors.New("two plans disagree on where the variables are")
		}
	}
	return nil
}

func (s *Session) target(name string) (*target, error) {
	for _, t := range s.targets {
		if t.name == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("no target %q: the session has %s", name, s.targetNames())
}

// targetNames lists the targets for an error.
func (s *Session) targetNames() string {
	if len(s.targets) == 0 {
		return "none"
	}
	var names []string
	for _, t := range s.targets {
		names = append(names, strconv.Quote(t.name))
	}
	return strings.Join(names, ", ")
}

// Plan is the plan of a target, or nil. It can be asked for after Close.
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
	Taken     int64 // bytes that the session has taken: the largest of the plans'
	Predicted int64 // bytes: the largest of the plans' that have run; of all before any has
	Actual    int64 // bytes: the most that any step has used; 0 before the first
	// Network is the bytes of these, in the host's memory, that are reserved for the
	// network, and NetworkUsed those of Actual: what a [Meter] says, or all of them.
	Network, NetworkUsed int64
}

// Usage lists the spaces, the device first. It can be asked for after Close.
func (s *Session) Usage() []Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.targets) == 0 {
		return nil
	}
	var out []Usage
	for _, p := range longest(s.planned.Results) {
		out = append(out, Usage{Space: p.Name})
	}
	for i := range out {
		u := &out[i]
		for _, t := range s.targets {
			if i >= len(t.result.Plan.Spaces) {
				continue
			}
			bytes := t.result.Plan.Spaces[i].Bytes
			u.Taken = max(u.Taken, bytes)
			u.Actual = max(u.Actual, t.exec.Peak()[i])
			if t.exec.Ran() {
				u.Predicted = max(u.Predicted, bytes)
			}
		}
		if !slices.ContainsFunc(s.targets, func(t *target) bool { return t.exec.Ran() }) {
			u.Predicted = u.Taken
		}
	}
	s.network.add(&out[space.Host])
	out[space.Device].add(s.beside, s.beside)
	return out
}

// add counts the network's bytes to the host's.
func (r reserve) add(u *Usage) {
	actual := r.bytes
	if r.meter != nil {
		actual = r.meter.Peak()
	}
	u.Network, u.NetworkUsed = r.bytes, actual
	u.add(r.bytes, actual)
}

// add counts bytes that no plan has, and what was used of them.
func (u *Usage) add(bytes, actual int64) {
	u.Taken, u.Predicted = u.Taken+bytes, u.Predicted+bytes
	if u.Actual > 0 {
		u.Actual += actual
	}
}

// longest is the spaces of the plan that has the most of them.
func longest(results []*planner.Result) []plan.Space {
	var list []plan.Space
	for _, r := range results {
		if len(r.Plan.Spaces) > len(list) {
			list = r.Plan.Spaces
		}
	}
	return list
}

// Close ends the device's goroutines and frees the memory, once no step is under
// way. Closing again does nothing.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.device == nil {
		return nil
	}
	if len(s.targets) > 0 {
		s.targets[0].exec.Abandon()
	}
	d := s.device
	s.device = nil
	return d.Close()
}
