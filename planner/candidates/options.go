package candidates

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/machine"
)

// Options are the decisions that are the user's. The zero value is the thesis
// policy with its defaults, without budgets.
type Options struct {
	Policy    Policy             // "" is Thesis
	Strategy  partition.Strategy // "" is DFS
	Partition int                // operations a partition; 0 is 20
	// partitions a value must be idle for to leave the device, under Auto at least; 0 is 2
	Lookahead   int
	NoPlacement bool // keep variables and constants on the device
	NoSwap      bool // keep intermediates on the device
	// Streams is how many compute streams a plan has; 0 is 1. What auto's search finds has one,
	// and is taken where that is faster.
	Streams     int
	DeviceBytes int64 // budget of the device; 0 is none
	HostBytes   int64 // budget of the host; 0 is none
	DiskBytes   int64 // budget of the disk behind the host; 0: there is no disk
	NoFusion    bool  // plan the model's graph as it is; see package graph/fuse
	// Mesh divides the graph before all else, and what is planned is the part of the process
	// Rank of those that it is for: see package mesh. nil does not.
	Mesh *mesh.Spec
	Rank int
	// Gathers has nothing awaited before all that is sent before it is handed over, for networks
	// of jobs that go on without a worker that is lost in a step.
	Gathers bool
	// Precision is in what numbers the graph is computed; "" is precision.F32.
	Precision precision.Precision

	NoRecompute bool            // Auto: execute every operation once
	Effort      int             // Auto: evaluations, and as long for addresses; 0: a second each
	Draft       bool            // Auto: the first plan that fits, of one graph and one order
	Device      machine.Device  // what plans are for; nil is the reference, which runs all
	Machine     machine.Machine // what prices are by; nil is machine.Default
	Model       string          // by which name the machine knows the graph, if it does
}

// pairs is how many pairs of blocks packing looks at in the time of an evaluation, roughly.
const pairs = lower.Effort / 5000

// packing is how long addresses are looked for that keep to the budgets, in pairs of blocks: as
// long as the evaluations take that the options ask for, if that is less than usual.
func (o Options) packing() int64 {
	switch {
	case o.Draft:
		return lower.Draft
	case o.Effort > 0:
		return min(int64(o.Effort), lower.Effort/pairs) * pairs
	}
	return lower.Effort
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
	if o.Machine == nil {
		o.Machine = machine.Default()
	}
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

// Concurrent reports whether the host is known to compute while the device does: by the prices of
// the reference. Those of another device do not say how it shares its host.
func (o Options) Concurrent() bool { return o.Device == nil && machine.Concurrent(o.Machine) }

// maxStreams keeps stream numbers small; devices have few engines. maxSize keeps
// numbers of operations and partitions, and twice as many, within 32 bits.
const (
	maxStreams = 8
	MaxSize    = 1_000_000_000
)

// Unlimited are the options without budgets.
func (o Options) Unlimited() Options {
	o.DeviceBytes, o.HostBytes, o.DiskBytes = 0, 0, 0
	return o
}

// Budget is the budget of a space, in bytes, to be read or changed.
func (o *Options) Budget(of space.ID) *int64 {
	switch of {
	case space.Device:
		return &o.DeviceBytes
	case space.Host:
		return &o.HostBytes
	}
	return &o.DiskBytes
}

// Budgets are the budgets by space, in bytes.
func (o Options) Budgets() lower.Need {
	return lower.Need{o.DeviceBytes, o.HostBytes, o.DiskBytes}
}

// Validate reports an option that makes no sense.
func (o Options) Validate() error {
	o.EnsureDefaults()
	switch {
	case !slices.Contains(Policies(), o.Policy):
		return fmt.Errorf("unknown policy %.60q: want one of %q", o.Policy, Policies())
	case o.Partition < 0 || o.Partition > MaxSize:
		return fmt.Errorf("partition size %d: want 1 to %d operations", o.Partition, MaxSize)
	case o.Lookahead < 1 || o.Lookahead > MaxSize:
		return fmt.Errorf("look-ahead %d: want 1 to %d partitions", o.Lookahead, MaxSize)
	case o.Streams < 1 || o.Streams > maxStreams:
		return fmt.Errorf("%d compute streams: want 1 to %d", o.Streams, maxStreams)
	case o.DeviceBytes < 0:
		return fmt.Errorf("device budget of %d bytes: want at least 1, or 0 for none",
			o.DeviceBytes)
	case o.Effort < 0:
		return fmt.Errorf("effort of %d evaluations: want at least 1, or 0 for a second's worth",
			o.Effort)
	case o.HostBytes < 0:
		return fmt.Errorf("host budget of %d bytes: want at least 1, or 0 for none", o.HostBytes)
	case o.DiskBytes < 0:
		return fmt.Errorf("disk budget of %d bytes: want at least 1, or 0 for no disk",
			o.DiskBytes)
	}
	if _, err := precision.Parse(string(o.Precision)); err != nil {
		return err
	}
	if err := o.divisible(); err != nil {
		return err
	}
	if o.Policy.Partitioned() {
		_, err := partition.Parse(string(o.Strategy))
		return err
	}
	return nil
}

// divisible reports a mesh that cannot be, and a rank that it does not have.
func (o Options) divisible() error {
	processes := 1
	if o.Mesh != nil {
		if err := o.Mesh.Check(); err != nil {
			return err
		}
		processes = o.Mesh.Mesh.Processes()
	}
	if o.Rank < 0 || o.Rank >= processes {
		return fmt.Errorf("there is no rank %d of %d", o.Rank, processes)
	}
	return nil
}

// String is the options in a line, as in a plan's title.
func (o Options) String() string {
	o.EnsureDefaults()
	if p := o.Precision; !p.Plain() {
		o.Precision = ""
		return o.String() + " precision=" + string(p)
	}
	if o.Mesh != nil {
		m, rank := o.Mesh, o.Rank
		o.Mesh, o.Rank = nil, 0
		if m.Mesh.Processes() > 1 {
			return fmt.Sprintf("%s mesh=%s rank=%d", o.String(), m, rank)
		}
		return o.String() + " mesh=" + m.String()
	}
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
