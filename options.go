package gomem

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/device/null"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
)

// Tensor is a typed value in memory of its own. It prints as its values; its methods
// F32, I32 and so on are its elements, which may be read and written, and To is a copy
// of another element type. Package tensor documents them all.
type Tensor = tensor.View

// NewTensor makes a zeroed tensor.
func NewTensor(t graph.Type) Tensor { return tensor.New(t) }

// F32 makes a tensor of 32-bit floats with the given sizes, of which x has exactly
// the elements; no sizes make a scalar.
func F32(x []float32, sizes ...int) (Tensor, error) { return own(tensor.MakeF32(x, sizes...)) }

// I32 makes a tensor of 32-bit integers with the given sizes, of which x has
// exactly the elements; no sizes make a scalar.
func I32(x []int32, sizes ...int) (Tensor, error) { return own(tensor.MakeI32(x, sizes...)) }

// I64 makes a tensor of 64-bit integers; see I32.
func I64(x []int64, sizes ...int) (Tensor, error) {
	return own(tensor.Make(graph.I64, x, sizes...))
}

// F64 makes a tensor of 64-bit floats; see F32.
func F64(x []float64, sizes ...int) (Tensor, error) {
	return own(tensor.Make(graph.F64, x, sizes...))
}

// U8 makes a tensor of bytes; see I32.
func U8(x []uint8, sizes ...int) (Tensor, error) { return own(tensor.Make(graph.U8, x, sizes...)) }

// Bool makes a tensor of truth values; see I32.
func Bool(x []bool, sizes ...int) (Tensor, error) {
	return own(tensor.Make(graph.Bool, x, sizes...))
}

// BF16 makes a tensor of bfloat16 numbers, to which x is rounded; see F32.
func BF16(x []float32, sizes ...int) (Tensor, error) { return rounded(graph.BF16, x, sizes) }

// F16 makes a tensor of 16-bit floats, to which x is rounded; see F32.
func F16(x []float32, sizes ...int) (Tensor, error) { return rounded(graph.F16, x, sizes) }

func rounded(d graph.DType, x []float32, sizes []int) (Tensor, error) {
	t, err := F32(x, sizes...)
	if err != nil {
		return Tensor{}, err
	}
	return t.To(d), nil
}

func own(t Tensor, err error) (Tensor, error) {
	if err != nil {
		return Tensor{}, fmt.Errorf("gomem: tensor: %w", err)
	}
	return t, nil
}

// Scalar makes a tensor f32[], such as a learning rate.
func Scalar(x float32) Tensor { return tensor.FromF32([]float32{x}) }

// Pair makes a tensor i32[2], such as the seed of random operations: the run's and
// the number of the step.
func Pair(a, b int32) Tensor { return tensor.FromI32([]int32{a, b}, 2) }

// Feeds gives inputs their values for one step.
type Feeds map[graph.Value]Tensor

// Target is what one kind of step computes: values to fetch, and updates to
// apply.
type Target = planner.Target

// Training is the target "train": fetch the values and apply every update of
// the graph, of which each variable then has one at most.
func Training(g *graph.Graph, fetches ...graph.Value) Target {
	return Updating("train", g.Updates(), fetches...)
}

// Updating is the target that fetches the values and applies some updates: one of
// several for the same variables, such as a training step for batches of another size.
// An update that could not be made is left out, since the graph has the error.
func Updating(name string, updates []*graph.Node, fetches ...graph.Value) Target {
	t := Target{Name: name, Fetches: fetches}
	for _, n := range updates {
		if n != nil {
			t.Updates = append(t.Updates, n.ID)
		}
	}
	return t
}

// Evaluation is the target "eval": fetch the values and change nothing.
func Evaluation(fetches ...graph.Value) Target {
	return Target{Name: "eval", Fetches: fetches}
}

// The devices.
const (
	CPU  = "cpu"  // the processor; the reference
	Null = "null" // runs nothing and keeps count of memory
)

// Devices are the names that Options.Device takes; [Sim] and a path is another.
func Devices() []string {
	names := []string{CPU, Null}
	for _, p := range machine.Builtin() {
		names = append(names, Sim+p)
	}
	return names
}

// TraceRecorder keeps what the streams did, and writes it as a timeline.
type TraceRecorder = trace.Recorder

// MaxThreads is the most threads of a kernel. They are started at once and wait for work side by
// side, whether or not there are processors for them.
const MaxThreads = cpu.MaxThreads

// Options configure a session. The zero value works: the thesis policy with its
// defaults, no budgets, every processor.
type Options struct {
	// What Plan decides by; see planner.Options.
	Policy    planner.Policy     // "" is planner.Thesis
	Strategy  partition.Strategy // "" is partition.DFS
	Partition int                // operations a partition; 0 is 20
	// partitions a value must be idle for to leave the device, under Auto at least; 0 is 2
	Lookahead   int
	NoPlacement bool  // keep variables and constants on the device
	NoSwap      bool  // keep intermediates on the device
	Streams     int   // compute streams; 0 is 1
	DeviceBytes int64 // budget of the device; 0 is none
	// ReserveBytes are the bytes of the device's budget that are not for plans, but for the
	// context of a GPU, kernels and libraries: what [Reserve] has measured. 0 is none; Compile
	// measures it then.
	ReserveBytes int64
	HostBytes    int64 // budget of the host; 0 is none
	// NetworkBytes are the bytes of the host's budget that are not for plans, but for what
	// Network and those behind it have there: buffers, caches, outboxes.
	NetworkBytes int64
	// ProcessBytes are the bytes of the host's budget that are not for plans, but for all else that
	// the process has: the program, the graph, data. Nothing keeps to them but the caller.
	ProcessBytes int64
	// Meter says how many of these bytes have been used; nil: Network, if it is a [Meter].
	Meter Meter
	// Gathers has plans for a Network that is a [Gatherer]: nothing is awaited before all that is
	// sent before it is handed over. It is so, too, where Network is one.
	Gathers   bool
	DiskBytes int64 // budget of the disk behind the host; 0: there is no disk
	NoFusion  bool  // run the model's graph as it is; see package graph/fuse
	// Mesh divides the graph over processes, which exchange what they need of each other's
	// parts by Network, and over slices that a process runs one after the other, so that each
	// can be staged and swapped alone: see package mesh. nil does not. Rank is this process;
	// its session takes the whole of what is fed, and fetches the whole.
	Mesh *mesh.Spec
	Rank int
	// Precision is in what numbers the graph is computed; "" is precision.F32. The processor
	// refuses precision.TF32.
	Precision precision.Precision

	NoRecompute bool            // Auto: execute every operation once
	Effort      int             // Auto: evaluations, and as long for addresses; 0: a second each
	Draft       bool            // Auto: the first plan that fits, for who cannot wait
	Machine     machine.Machine // prices; nil is the simulated device's, or machine.Default
	Model       string          // by which name the machine knows the graph, if it does

	// How Open runs the plans.
	Device             string // "" is CPU
	Threads            int    // threads of a kernel; 0 means one for every processor
	CopyBytesPerSecond int64  // speed of each copy engine; 0 means as fast as memory
	// NoCUDAGraphs has every operation launched by itself on a GPU. Otherwise the launches between
	// two waits are captured in the second step and launched as one graph from then on, unless
	// Trace is told of each or data says what runs. Graphs take some memory of the GPU that no
	// budget counts; where there is none left, operations are launched as without.
	NoCUDAGraphs bool
	// InterpretChains has elementwise operations on a GPU, one after the other, by one kernel for
	// all of them. Otherwise Open has kernels of their own compiled for them, which the user's
	// cache keeps, and which take some of the GPU's memory, of ReserveBytes. Bits are the
	// same.
	InterpretChains bool
	Disk            string // directory of the file that is CPU's disk, if it has one
	// Network carries the exchanges of the graph's Sends and Awaits between the workers of
	// a job, each of which has a session of its own; nil if there is one worker, which
	// awaits what it has sent.
	Network Network
	Trace   *TraceRecorder // records every task; nil records nothing
	Logger  *slog.Logger   // nil logs nothing
	Seed    uint64         // selects the initial values of variables
	// NoInitialize leaves variables zero: for who sets all of them at once, as from a
	// checkpoint. Constants have their data nevertheless.
	NoInitialize bool
}

// Planning is the part of the options that package planner decides by.
func (o Options) Planning() planner.Options {
	host := o.HostBytes
	if host > 0 {
		host = max(host-o.reserved(), 1)
	}
	near := o.DeviceBytes
	if near > 0 {
		near = max(near-o.Beside(), 1)
	}
	return planner.Options{
		Policy: o.Policy, Strategy: o.Strategy, Partition: o.Partition, Lookahead: o.Lookahead,
		NoPlacement: o.NoPlacement, NoSwap: o.NoSwap, Streams: o.Streams,
		DeviceBytes: near, HostBytes: host, DiskBytes: o.DiskBytes,
		NoFusion: o.NoFusion, Mesh: o.Mesh, Rank: o.Rank, Gathers: o.Gathers || gathers(o.Network),
		Precision:   o.Precision,
		NoRecompute: o.NoRecompute, Effort: o.Effort, Draft: o.Draft,
		Device: o.plannedFor(), Machine: o.machine(), Model: o.Model,
	}
}

// reserved is what plans may not have of the host's budget.
func (o Options) reserved() int64 { return o.NetworkBytes + o.ProcessBytes }

// With is the options with all that package planner decides by taken from c.
func (o Options) With(c planner.Options) Options {
	o.Policy, o.Strategy, o.Partition, o.Lookahead = c.Policy, c.Strategy, c.Partition, c.Lookahead
	o.NoPlacement, o.NoSwap, o.Streams = c.NoPlacement, c.NoSwap, c.Streams
	o.DeviceBytes, o.HostBytes, o.DiskBytes = c.DeviceBytes, c.HostBytes, c.DiskBytes
	if o.HostBytes > 0 && o.HostBytes <= math.MaxInt64-o.reserved() {
		o.HostBytes += o.reserved()
	}
	if b := o.Beside(); o.DeviceBytes > 0 && o.DeviceBytes <= math.MaxInt64-b {
		o.DeviceBytes += b
	}
	o.NoFusion, o.Mesh, o.Rank, o.Precision = c.NoFusion, c.Mesh, c.Rank, c.Precision
	o.Gathers = c.Gathers
	o.NoRecompute, o.Effort, o.Draft = c.NoRecompute, c.Effort, c.Draft
	o.Machine, o.Model = c.Machine, c.Model
	return o
}

// Validate reports an option that makes no sense.
func (o Options) Validate() error {
	if o.Threads < 0 || o.Threads > MaxThreads {
		return fmt.Errorf("%d threads: want 1 to %d, or 0 for one for every processor", o.Threads,
			MaxThreads)
	}
	if o.CopyBytesPerSecond < 0 {
		return fmt.Errorf("copies of %d bytes a second: want at least 1, or 0 for no limit",
			o.CopyBytesPerSecond)
	}
	if o.Disk != "" && o.DiskBytes == 0 {
		return fmt.Errorf("disk %.200q: its budget is missing", o.Disk)
	}
	if o.NetworkBytes < 0 || o.HostBytes > 0 && o.NetworkBytes >= o.HostBytes {
		return fmt.Errorf("%d bytes for the network: want none, or less than the host's budget of "+
			"%d", o.NetworkBytes, o.HostBytes)
	}
	if o.ProcessBytes < 0 {
		return fmt.Errorf("%d bytes for the process beside its plans: want none, or some",
			o.ProcessBytes)
	}
	profile, err := Simulated(o.Device)
	_, gpu := GPU(o.Device)
	several, listed := Several(o.Device)
	switch {
	case err != nil:
		return err
	case listed != nil:
		return listed
	case len(several) > 1:
		return fmt.Errorf("devices %.60q: this is for one of them; several are for gomem train "+
			"and gomem plan", o.Device)
	case profile == nil && !gpu && o.Device != "" && o.Device != CPU && o.Device != Null:
		return fmt.Errorf("unknown device %.60q: want %s, %s, %s or %s:NUMBER, or %sPROFILE",
			o.Device, CPU, Null, CUDA, CUDA, Sim)
	case o.Precision == precision.TF32 && (o.Device == "" || o.Device == CPU):
		return fmt.Errorf("precision %s: the processor has no such products; want device %s",
			o.Precision, CUDA)
	case o.NoCUDAGraphs && !gpu:
		return fmt.Errorf("device %s has no CUDA graphs to do without; want device %s",
			cmp.Or(o.Device, CPU), CUDA)
	case o.InterpretChains && !gpu:
		return fmt.Errorf("device %s compiles no chains that could be interpreted; want device %s",
			cmp.Or(o.Device, CPU), CUDA)
	case gpu && o.CopyBytesPerSecond > 0:
		return fmt.Errorf("device %s: the speed of its copies is its own", o.Device)
	case o.ReserveBytes < 0 || o.ReserveBytes > 0 && !gpu && profile == nil:
		return fmt.Errorf("%d bytes of device %s are reserved: want none, or those of a GPU's "+
			"context, kernels and libraries", o.ReserveBytes, cmp.Or(o.Device, CPU))
	case o.DeviceBytes > 0 && o.Beside() >= o.DeviceBytes:
		return fmt.Errorf("device %s: a budget of %d bytes, of which matrix products take %d, "+
			"and the GPU's context, kernels and libraries %d: want more than both", o.Device,
			o.DeviceBytes, o.Beside()-o.ReserveBytes, o.ReserveBytes)
	}
	return o.Planning().Validate()
}

// open makes the device for plans.
func (o Options) open(p *Planned) (device.Device, error) {
	profile, err := o.Profile()
	switch {
	case err != nil:
		return nil, err
	case profile != nil:
		return o.openSim(profile, p), nil
	case o.Device == Null:
		return null.Open(), nil
	}
	if o.Disk == "" && p.Peak(space.Disk) > 0 {
		return nil, fmt.Errorf("plans put %d bytes on a disk: the directory for it is missing",
			p.Peak(space.Disk))
	}
	if number, ok := GPU(o.Device); ok {
		return o.openGPU(number)
	}
	c := cpu.Options{Threads: o.Threads, CopyBytesPerSecond: o.CopyBytesPerSecond,
		DiskDir: o.Disk}
	if o.Trace != nil {
		c.Listener = o.Trace.Listen
	}
	d, err := cpu.Open(c)
	if err != nil {
		return nil, err // not d: a nil pointer in an interface is not nil
	}
	return d, nil
}
