package compile

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan"
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
)

// Options are the decisions that are the user's. The zero value is the thesis
// policy with its defaults, without budgets.
type Options struct {
	Policy      Policy             // "" is Thesis
	Strategy    partition.Strategy // "" is DFS
	Partition   int                // operations a partition; 0 is 20
	Lookahead   int                // partitions a value must be idle for to leave the device; 0 is 2
	NoPlacement bool               // keep variables and constants on the device
	NoSwap      bool               // keep intermediates on the device
	Streams     int                // compute streams; 0 is 1
	DeviceBytes int64              // budget of the device; 0 is none
	HostBytes   int64              // budget of the host; 0 is none
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
	if o.Policy == Vanilla {
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
	case o.Policy != Vanilla && o.Policy != Thesis:
		return fmt.Errorf("unknown policy %q: want %s or %s", o.Policy, Vanilla, Thesis)
	case o.Partition < 0:
		return fmt.Errorf("partition size %d: want at least 1 operation", o.Partition)
	case o.Lookahead < 1:
		return fmt.Errorf("look-ahead %d: want at least 1 partition", o.Lookahead)
	case o.Streams < 1 || o.Streams > maxStreams:
		return fmt.Errorf("%d compute streams: want 1 to %d", o.Streams, maxStreams)
	case o.DeviceBytes < 0 || o.HostBytes < 0:
		return fmt.Errorf("a memory budget is negative")
	}
	if o.Policy == Thesis {
		_, err := partition.Parse(string(o.Strategy))
		return err
	}
	return nil
}

// String is the options in a line, as in a plan's title.
func (o Options) String() string {
	o.EnsureDefaults()
	if o.Policy == Vanilla {
		return fmt.Sprintf("policy=%s streams=%d", o.Policy, o.Streams)
	}
	s := fmt.Sprintf("policy=%s strategy=%s partition=%d lookahead=%d streams=%d", o.Policy, o.Strategy, o.Partition, o.Lookahead, o.Streams)
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
	// Prefetch is the number of operations by which copies run ahead.
	Prefetch int
}

// passes is the pass list of a policy, in order. order documents why.
func passes(o Options) []pass.Pass {
	list := []pass.Pass{
		pass.DeadCode(),
		partition.Pass(o.Strategy, o.Partition),
		placement.Pass(!o.NoPlacement),
	}
	if !o.NoSwap {
		list = append(list, swap.LookAhead(o.Lookahead))
	}
	return list
}

// order says which pass must come before which, and why. A test checks the list
// against it; it changes nothing.
var order = []struct{ before, after, why string }{
	{"deadcode", "partition", "a dead operation would take up a place in a partition"},
	{"partition", "swap", "idleness is measured in partitions between uses"},
	{"placement", "swap", "a use on the host is not a use of the device's copy"},
}

// decide runs the passes.
func decide(ctx context.Context, g *graph.Graph, t Target, o Options) (*pass.Program, []pass.Timing, error) {
	if err := o.Validate(); err != nil {
		return nil, nil, err
	}
	if err := g.Verify(); err != nil {
		return nil, nil, err
	}
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
	p, timings, err := decide(ctx, g, t, o)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", t.Name, err)
	}
	r := &Result{Program: p, Timings: timings}
	var rungs []*plan.Plan
	for _, r.Prefetch = range ladder(o) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		candidate := lower(p, o, r.Prefetch)
		if fits(candidate) {
			r.Plan = candidate
			break
		}
		rungs = append(rungs, candidate)
	}
	if r.Plan == nil {
		return nil, outOfMemory(ctx, g, t, o, rungs)
	}
	if err := plan.Verify(r.Plan, g, t.Fetches, t.Updates); err != nil {
		return nil, fmt.Errorf("compile %s: %w", t.Name, err)
	}
	r.Took = time.Since(start)
	return r, nil
}

// MinDevice is the smallest device budget for which Compile makes a plan within
// the host budget.
func MinDevice(ctx context.Context, g *graph.Graph, t Target, o Options) (int64, error) {
	o.EnsureDefaults()
	o.DeviceBytes = math.MaxInt64
	p, _, err := decide(ctx, g, t, o)
	if err != nil {
		return 0, fmt.Errorf("compile %s: %w", t.Name, err)
	}
	least := int64(math.MaxInt64)
	var rungs []*plan.Plan
	for _, prefetch := range ladder(o) {
		candidate := lower(p, o, prefetch)
		rungs = append(rungs, candidate)
		if fits(candidate) {
			least = min(least, candidate.Spaces[pass.Device].Bytes)
		}
	}
	if least == math.MaxInt64 {
		return 0, outOfMemory(ctx, g, t, o, rungs)
	}
	return least, nil
}

// ladder lists the prefetch distances to try, longest first.
func ladder(o Options) []int {
	var rungs []int
	for d := o.Partition; d > 0; d /= 4 {
		rungs = append(rungs, d)
	}
	return append(rungs, 0)
}

func fits(p *plan.Plan) bool {
	for _, s := range p.Spaces {
		if s.Bytes > s.Budget {
			return false
		}
	}
	return true
}
