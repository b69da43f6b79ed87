package command

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"github.com/docker/go-units"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/planner"
)

// maxCount is the most of anything that is counted: models get the number of a
// step as a 32-bit float, which is exact up to there.
const maxCount = 1 << 24

// count is a whole number of at least 1; zero means that none was given.
type count int

// UnmarshalText reads a count.
func (c *count) UnmarshalText(text []byte) error {
	n, err := wholeNumber(text, 1, maxCount)
	*c = count(n)
	return err
}

// whole is a whole number from 0.
type whole int

// UnmarshalText reads a whole number.
func (w *whole) UnmarshalText(text []byte) error {
	n, err := wholeNumber(text, 0, maxCount)
	*w = whole(n)
	return err
}

// times reads times: kong's own reader says how Go reads them.
var times = kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(
	func(c *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := c.Scan.PopValueInto("time", &text); err != nil {
			return err
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%.60q: want a time such as 30s or 1h30m", text)
		}
		target.SetInt(int64(d))
		return nil
	}))

// threads is a number of threads; zero means that none was given.
type threads int

// maxThreads is the most threads of an operation. They are started at once and
// wait for work side by side, whether or not there are processors for them.
const maxThreads = 1024

// UnmarshalText reads a number of threads.
func (t *threads) UnmarshalText(text []byte) error {
	n, err := wholeNumber(text, 1, maxThreads)
	*t = threads(n)
	return err
}

// wholeNumber reads a whole number within limits.
func wholeNumber(text []byte, least, most int) (int, error) {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q: want a whole number from %d to %d", text, least, most)
	}
	return n, nil
}

// passes is a number of passes over the data; zero means that none was given.
type passes float64

// UnmarshalText reads a number of passes.
func (p *passes) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(x > 0) || x > maxCount {
		return fmt.Errorf("%q: want a number above 0, at most %d", text, maxCount)
	}
	*p = passes(x)
	return nil
}

// countable refuses more passes over the data than there are steps to number.
func (p passes) countable(b data.Batches, m *models.Model) error {
	steps := float64(p) * float64(b.StepsPerEpoch()) / float64(m.Executions())
	if steps > maxCount {
		return usagef("--epochs %v: that is %.0f steps, want at most %d", float64(p), steps,
			maxCount)
	}
	return nil
}

// fraction is a number from 0, below 1.
type fraction float32

// UnmarshalText reads a fraction.
func (f *fraction) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 32)
	if err != nil || !(x >= 0 && x < 1) {
		return fmt.Errorf("%q: want a number from 0, below 1", text)
	}
	*f = fraction(x)
	return nil
}

// share is a part of the data, above 0 and below 1; zero means that none was given.
type share float64

// UnmarshalText reads a share.
func (s *share) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(x > 0 && x < 1) {
		return fmt.Errorf("%q: want a number above 0, below 1", text)
	}
	*s = share(x)
	return nil
}

// positive is a finite number above 0; zero means that none was given.
type positive float64

// UnmarshalText reads a positive number.
func (p *positive) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(x > 0) || x > math.MaxFloat32 {
		return fmt.Errorf("%q: want a positive number", text)
	}
	*p = positive(x)
	return nil
}

// speed is in gigabytes (1e9 bytes) a second; zero means that none was given.
type speed float64

// The speeds of copies: slower than any disk and faster than any cache.
const minSpeed, maxSpeed = 0.001, 1e6

// UnmarshalText reads a speed.
func (s *speed) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(x >= minSpeed && x <= maxSpeed) {
		return fmt.Errorf("%q: want a number from %v to %.0f", text, minSpeed, maxSpeed)
	}
	*s = speed(x)
	return nil
}

// maxBytes is the largest size that is taken: 1EiB, of which several add up to no
// more than a number holds.
const maxBytes = 1 << 60

// byteSize is a number of bytes of at least 1; zero means that none was given.
type byteSize int64

// UnmarshalText reads a size with a binary unit, such as 192MiB or 1.5g, or a
// plain number of bytes.
func (s *byteSize) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		n, err = units.RAMInBytes(string(text))
	}
	if err != nil || n < 1 || n > maxBytes {
		return fmt.Errorf("%q: want a size such as 192MiB, 12GiB or a number of bytes", text)
	}
	*s = byteSize(n)
	return nil
}

// planFlags are the decisions about memory and time that are the user's.
type planFlags struct {
	Policy      string        `group:"plan" placeholder:"NAME"`
	Strategy    string        `group:"plan" placeholder:"NAME"`
	Partition   count         `group:"plan" placeholder:"N"`
	Lookahead   count         `group:"plan" placeholder:"K"`
	Fuse        bool          `group:"plan" default:"true" negatable:""`
	Mesh        string        `group:"plan" placeholder:"AXES"`
	Layout      string        `group:"plan" placeholder:"ASSIGNMENTS"`
	Precision   string        `group:"model" placeholder:"NAME"`
	NoPlacement bool          `group:"plan" help:"Keep variables and constants on the device."`
	NoSwap      bool          `group:"plan" help:"Keep intermediate values on the device."`
	Streams     count         `group:"plan" placeholder:"N"`
	PlanTime    time.Duration `group:"plan" placeholder:"TIME"`
	DeviceBytes byteSize      `name:"device-memory" group:"plan" placeholder:"SIZE"`
	HostBytes   byteSize      `name:"host-memory" group:"plan" placeholder:"SIZE"`
	DiskBytes   byteSize      `name:"disk-memory" group:"plan" placeholder:"SIZE"`

	DeviceReserve byteSize `group:"plan" placeholder:"SIZE"`

	// reserved is what plans leave of the device's budget to what a GPU takes itself: see keeping.
	reserved int64
	// size and rank are the processes that a mesh of several may be for, and this one's
	// place among them. Without, it must be for one, unless it is only planned.
	size, rank int
	plans      bool
	reach      bool // the devices are of one process, and reach each other's memory
}

// given are the flags that are there, by name.
func (f planFlags) given() []option {
	return []option{{"policy", f.Policy != ""}, {"strategy", f.Strategy != ""},
		{"partition", f.Partition > 0}, {"lookahead", f.Lookahead > 0}, {"no-fuse", !f.Fuse},
		{"mesh", f.Mesh != ""}, {"layout", f.Layout != ""}, {"precision", f.Precision != ""},
		{"no-placement", f.NoPlacement}, {"no-swap", f.NoSwap}, {"streams", f.Streams > 0},
		{"plan-time", f.PlanTime > 0}, {"device-memory", f.DeviceBytes > 0},
		{"device-reserve", f.DeviceReserve > 0},
		{"host-memory", f.HostBytes > 0}, {"disk-memory", f.DiskBytes > 0}}
}

// options are the flags as Compile takes them. The budgets that were not given
// are the defaults passed here; vanilla has none, since it is there to show what
// a model needs without them.
func (f planFlags) options(device, host int64) (gomem.Options, error) {
	o := gomem.Options{
		Policy: f.policy(), Strategy: partition.Strategy(f.Strategy),
		Partition: int(f.Partition), Lookahead: int(f.Lookahead),
		NoPlacement: f.NoPlacement, NoSwap: f.NoSwap, Streams: int(f.Streams),
		DeviceBytes: int64(f.DeviceBytes), HostBytes: int64(f.HostBytes),
		DiskBytes: int64(f.DiskBytes),
		NoFusion:  !f.Fuse,
	}
	if err := f.senseless(); err != nil {
		return o, err
	}
	var err error
	if o.Mesh, err = f.mesh(); err != nil {
		return o, err
	}
	if processes(o) > 1 {
		o.Rank = f.rank
	}
	if err := f.conflict(); err != nil {
		return o, err
	}
	if o.Policy != baseline {
		setDefault(&o.DeviceBytes, device)
		setDefault(&o.HostBytes, host)
	}
	if err := o.Validate(); err != nil {
		return o, usagef("%w", err)
	}
	p, err := precision.Parse(f.Precision)
	if err != nil {
		return o, usagef("--precision: %w", err)
	}
	o.Precision = p // what a device computes in, it says itself: plans need none
	return o, nil
}

// mesh is what the graph is divided over, if anything.
func (f planFlags) mesh() (*mesh.Spec, error) {
	if f.Mesh == "" {
		if f.Layout != "" {
			return nil, usagef("--layout needs --mesh: what it divides axes along")
		}
		return nil, nil
	}
	m, err := mesh.ParseMesh(f.Mesh)
	if err != nil {
		return nil, usagef("--mesh: %w", err)
	}
	l, err := mesh.ParseLayout(f.Layout, m)
	if err != nil {
		return nil, usagef("--layout: %w", err)
	}
	s := &mesh.Spec{Mesh: m, Layout: l, Peers: f.reach && m.Processes() > 1}
	if err := s.Check(); err != nil {
		return nil, usagef("--mesh: %w", err)
	}
	switch n := s.Mesh.Processes(); {
	case n == 1 || f.plans || n == f.size:
		return s, nil
	case f.size > 1:
		return nil, usagef("--mesh %s is for %d processes, there are %d", f.Mesh, n, f.size)
	default:
		return nil, usagef("--mesh %s is for %d processes, this is one: want slices alone, as in "+
			"batch:4, %d devices, as in --device cuda:0,1, or gomem-cluster train --local %d",
			f.Mesh, n, n, n)
	}
}

func setDefault(field *int64, value int64) {
	if *field == 0 {
		*field = value
	}
}

// senseless reports a flag that makes no sense whatever the others are.
func (f planFlags) senseless() error {
	for _, flag := range []struct {
		name  string
		alone planner.Options
	}{
		{"policy", planner.Options{Policy: planner.Policy(f.Policy)}},
		{"strategy", planner.Options{Strategy: partition.Strategy(f.Strategy)}},
		{"streams", planner.Options{Streams: int(f.Streams)}},
	} {
		if err := flag.alone.Validate(); err != nil {
			return usagef("--%s: %w", flag.name, err)
		}
	}
	switch {
	case f.PlanTime < 0:
		return usagef("--plan-time %s: want a time such as 30s", f.PlanTime)
	case f.PlanTime > 0 && !f.policy().Searches():
		return usagef("--plan-time does nothing under --policy %s: leave one of them out",
			f.policy())
	}
	return nil
}

// conflict reports a flag of policies that cut partitions under one that does
// not.
func (f planFlags) conflict() error {
	policy := f.policy()
	if policy.Partitioned() {
		return nil
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"strategy", f.Strategy != ""},
		{"partition", f.Partition > 0},
		{"lookahead", f.Lookahead > 0},
		{"no-placement", f.NoPlacement},
		{"no-swap", f.NoSwap},
	} {
		if flag.given {
			return usagef("--%s does nothing under --policy %s: leave one of them out", flag.name,
				policy)
		}
	}
	return nil
}

// deviceFlags say what a run computes on.
type deviceFlags struct {
	Device   string   `group:"machine" placeholder:"NAME"`
	Threads  threads  `group:"machine" placeholder:"N"`
	CopyGbps speed    `group:"machine" placeholder:"GB/S"`
	Disk     location `group:"machine" placeholder:"DIR"`

	NoCUDAGraphs    bool `name:"no-cuda-graphs" group:"machine"`
	InterpretChains bool `group:"machine"`
}

// session are the options of a run's session.
func (f deviceFlags) session(o gomem.Options) (gomem.Options, error) {
	o.Device, o.Threads = f.Device, int(f.Threads)
	o.CopyBytesPerSecond, o.Disk = int64(float64(f.CopyGbps)*1e9), string(f.Disk)
	o.NoCUDAGraphs, o.InterpretChains = f.NoCUDAGraphs, f.InterpretChains
	switch {
	case o.Disk != "" && o.DiskBytes == 0:
		return o, usagef("--disk needs --disk-memory SIZE: how much of it may be taken")
	case o.Disk == "" && o.DiskBytes > 0 && gomem.Computes(o.Device):
		return o, usagef("--disk-memory needs --disk DIR: where the disk is")
	}
	if o.Disk != "" {
		if err := takesFiles(o.Disk); err != nil {
			return o, fmt.Errorf("--disk %s: %w", o.Disk, bare(err))
		}
	}
	if _, err := profileOf(gomem.Options{Device: f.Device}); err != nil {
		return o, misnamed(err)
	}
	if err := (gomem.Options{Device: f.Device}).Validate(); err != nil {
		return o, usagef("--device %s: %w", f.Device, err)
	}
	if err := o.Validate(); err != nil {
		return o, usagef("%w", err)
	}
	return o, nil
}

// misnamed makes the error of a machine's file that is not there a usage error, as that of any
// other machine that is not there is.
func misnamed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("--%w", err)
	}
	return err
}

// The choices of flags are what some flags take; nothing is the default.
const (
	rateForms      = ",constant,linear,cosine,inverse-sqrt,step"
	optimizerNames = ",sgd,momentum,adam,adam-bf16,adam-8bit,adamw,adamw-bf16,adamw-8bit," +
		"lion,muon,adafactor"
)
