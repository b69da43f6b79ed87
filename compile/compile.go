package compile

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/space"
	"github.com/gomem/gomem/swap"
)

// Policy is a named set of decisions.
type Policy string

// The policies.
const (
	// Vanilla is the baseline of every table: breadth-first order, everything
	// on the device, values freed after their last use.
	Vanilla Policy = "vanilla"
	// Thesis is partitioned execution with swapping and host placement (J. Wei,
	// thesis 2019, chapter 6).
	Thesis Policy = "thesis"
	// Auto is Thesis with what the device budget leaves over put to use: it keeps
	// as much on the device, and copies as far ahead, as fits.
	Auto Policy = "auto"
	// Grappler is Vanilla with the swapping of TensorFlow 1's memory optimizer: an
	// estimate of the peak, and copies of what is idle around it. It is here to be
	// compared with (thesis, section 6.4.7).
	Grappler Policy = "grappler"
)

// Policies are the names that Options.Policy takes.
func Policies() []Policy { return []Policy{Vanilla, Thesis, Auto, Grappler} }

// Partitioned reports whether a policy cuts the graph into partitions.
func (p Policy) Partitioned() bool { return p == Thesis || p == Auto }

// Options are the decisions that are the user's. The zero value is the thesis
// policy with its defaults, without budgets.
type Options struct {
	Policy    Policy             // "" is Thesis
	Strategy  partition.Strategy // "" is DFS
	Partition int                // operations a partition; 0 is 20
	// partitions a value must be idle for to leave the device, under Auto at least; 0 is 2
	Lookahead   int
	NoPlacement bool  // keep variables and constants on the device
	NoSwap      bool  // keep intermediates on the device
	Streams     int   // compute streams; 0 is 1
	DeviceBytes int64 // budget of the device; 0 is none
	HostBytes   int64 // budget of the host; 0 is none
}

// EnsureDefaults replaces zero values by what they stand for.
func (o *Options) EnsureDefaults() {
	set(&o.Policy, Thesis)
	set(&o.Strategy, partition.DFS)
	set(&o.Partition, 20)
	set(&o.Lookahead, 2)
	set(&o.Streams, 1)
	set(&o.DeviceBytes, math.MaxInt64)
	set(&o.HostBytes, math.MaxInt64)
	if !o.Policy.Partitioned() {
		o.Strategy, o.Partition, o.NoPlacement, o.NoSwap = partition.BreadthFirst, 0, true, true
	}
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// maxStreams keeps stream numbers small; devices have few engines.
const maxStreams = 8

// Validate reports an option that makes no sense.
func (o Options) Validate() error {
	o.EnsureDefaults()
	switch {
	case !slices.Contains(Policies(), o.Policy):
		return fmt.Errorf("unknown policy %q: want one of %q", o.Policy, Policies())
	case o.Partition < 0:
		return fmt.Errorf("partition size %d: want at least 1 operation", o.Partition)
	case o.Lookahead < 1:
		return fmt.Errorf("look-ahead %d: want at least 1 partition", o.Lookahead)
	case o.Streams < 1 || o.Streams > maxStreams:
		return fmt.Errorf("%d compute streams: want 1 to %d", o.Streams, maxStreams)
	case o.DeviceBytes < 0 || o.HostBytes < 0:
		return fmt.Errorf("a memory budget is negative")
	}
	if o.Policy.Partitioned() {
		_, err := partition.Parse(string(o.Strategy))
		return err
	}
	return nil
}

// String is the options in a line, as in a plan's title.
func (o Options) String() string {
	o.EnsureDefaults()
	if !o.Policy.Partitioned() {
		return fmt.Sprintf("policy=%s streams=%d", o.Policy, o.Streams)
	}
	s := fmt.Sprintf("policy=%s strategy=%s partition=%d lookahead=%d streams=%d", o.Policy,
		o.Strategy, o.Partition, o.Lookahead, o.Streams)
	if o.NoPlacement {
		s += " no-placement"
	}
	if o.NoSwap {
		s += " no-swap"
	}
	return s
}

// Target is what one kind of step computes.
type Target struct {
	Name    string
	Fetches []graph.Value
	Updates []graph.NodeID
}

// Result is a plan and what is worth knowing of how it came about.
type Result struct {
	Plan    *plan.Plan
	Program *pass.Program
	Timings []pass.Timing
	Took    time.Duration
	Rung    // what the ladder came to
}

// passes is the pass list of a policy, in order. order documents why.
func passes(o Options) []pass.Pass {
	list := []pass.Pass{
		pass.DeadCode(),
		partition.Pass(o.Strategy, o.Partition),
		placement.Pass(!o.NoPlacement),
	}
	switch {
	case o.Policy == Grappler:
		list = append(list, swap.AroundPeak(o.DeviceBytes))
	case !o.NoSwap:
		list = append(list, swap.LookAhead(o.Lookahead))
	}
	return list
}

// order says which pass must come before which, and why. A test checks the list
// against it; it changes nothing.
var order = []struct{ before, after, why string }{
	{"deadcode", "partition", "a dead operation would take up a place in a partition"},
	{"partition", "swap", "idleness is measured in partitions between uses"},
	{"deadcode", "placement", "a dead reader would keep part of an update on the device"},
	{"placement", "swap", "a use on the host is not a use of the device's copy"},
}

// program checks what is to be compiled and runs the passes.
func program(ctx context.Context, g *graph.Graph, t Target,
	o Options) (*pass.Program, []pass.Timing, error) {
	if err := o.Validate(); err != nil {
		return nil, nil, err
	}
	if err := g.Verify(); err != nil {
		return nil, nil, err
	}
	return decide(ctx, g, t, o)
}

// decide runs the passes.
func decide(ctx context.Context, g *graph.Graph, t Target,
	o Options) (*pass.Program, []pass.Timing, error) {
	p := pass.New(g, t.Fetches, t.Updates)
	timings, err := pass.Run(ctx, p, passes(o))
	return p, timings, err
}

// Compile makes the plan of a target: the most relaxed on the ladder that fits
// the budgets. The plan is verified. If none fits, the error is an
// *[ErrOutOfMemory].
func Compile(ctx context.Context, g *graph.Graph, t Target, o Options) (*Result, error) {
	start := time.Now()
	o.EnsureDefaults()
	p, timings, err := program(ctx, g, t, o)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", t.Name, err)
	}
	c := climb{ctx: ctx, graph: g, target: t, options: o, first: p}
	found, err := c.best()
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, outOfMemory(ctx, g, t, o, c.tried)
	}
	r := &Result{Plan: found.plan, Program: found.program, Timings: timings, Rung: found.Rung}
	if err := plan.Verify(r.Plan, g, t.Fetches, t.Updates); err != nil {
		return nil, fmt.Errorf("compile %s: %w", t.Name, err)
	}
	r.Took = time.Since(start)
	return r, nil
}

// MinDevice is the smallest device budget for which Compile makes a plan within
// the host budget.
func MinDevice(ctx context.Context, g *graph.Graph, t Target, o Options) (int64, error) {
	p, err := Least(ctx, g, t, o)
	if err != nil {
		return 0, err
	}
	return p.Spaces[space.Device].Bytes, nil
}

// Least is the plan with the smallest device peak of those within the host
// budget; the device's budget does not count. It is not verified. If there is
// none, the error is an *[ErrOutOfMemory].
func Least(ctx context.Context, g *graph.Graph, t Target, o Options) (*plan.Plan, error) {
	o.EnsureDefaults()
	o.DeviceBytes = math.MaxInt64
	p, _, err := program(ctx, g, t, o)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", t.Name, err)
	}
	var least *plan.Plan
	var tried []*plan.Plan
	for _, r := range rungs(o) {
		made := lower(p, o, r)
		tried = append(tried, made)
		if fits(made) && (least == nil ||
			made.Spaces[space.Device].Bytes < least.Spaces[space.Device].Bytes) {
			least = made
		}
	}
	if least == nil {
		return nil, outOfMemory(ctx, g, t, o, tried)
	}
	return least, nil
}

// Estimate is the device's peak as the passes of a policy guess it, before
// anything is lowered; only Grappler guesses.
func Estimate(ctx context.Context, g *graph.Graph, t Target, o Options) (int64, error) {
	o.EnsureDefaults()
	p, _, err := program(ctx, g, t, o)
	if err != nil {
		return 0, fmt.Errorf("compile %s: %w", t.Name, err)
	}
	return p.Estimate, nil
}

func fits(p *plan.Plan) bool {
	for _, s := range p.Spaces {
		if s.Bytes > s.Budget {
			return false
		}
	}
	return true
}
