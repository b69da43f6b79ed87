package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/docker/go-units"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/partition"
)

// count is a whole number of at least 1; zero means that none was given.
type count int

// UnmarshalText reads a count.
func (c *count) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("%q: want a whole number from 1", text)
	}
	*c = count(n)
	return nil
}

// whole is a whole number from 0.
type whole int

// UnmarshalText reads a whole number.
func (w *whole) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 || n > math.MaxInt32 {
		return fmt.Errorf("%q: want a whole number from 0", text)
	}
	*w = whole(n)
	return nil
}

// positive is a number above 0; zero means that none was given.
type positive float64

// UnmarshalText reads a positive number.
func (p *positive) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return fmt.Errorf("%q: want a number above 0", text)
	}
	*p = positive(x)
	return nil
}

// byteSize is a number of bytes of at least 1; zero means that none was given.
type byteSize int64

// UnmarshalText reads a size with a binary unit, such as 192MiB or 1.5g, or a
// plain number of bytes.
func (s *byteSize) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		n, err = units.RAMInBytes(string(text))
	}
	if err != nil || n < 1 {
		return fmt.Errorf("%q: want a size such as 192MiB, 12GiB or a number of bytes", text)
	}
	*s = byteSize(n)
	return nil
}

// planFlags are the decisions about memory and time that are the user's.
type planFlags struct {
	Policy      string   `group:"plan" default:"thesis" placeholder:"NAME"`
	Strategy    string   `group:"plan" placeholder:"NAME"`
	Partition   count    `group:"plan" placeholder:"N"`
	Lookahead   count    `group:"plan" placeholder:"K"`
	Fuse        bool     `group:"plan" default:"true" negatable:""`
	NoPlacement bool     `group:"plan" help:"Keep variables and constants on the device."`
	NoSwap      bool     `group:"plan" help:"Keep intermediate values on the device."`
	Streams     count    `group:"plan" placeholder:"N" help:"Compute streams, 1 to 8 (default 1)."`
	DeviceBytes byteSize `name:"device-memory" group:"plan" placeholder:"SIZE"`
	HostBytes   byteSize `name:"host-memory" group:"plan" placeholder:"SIZE"`
}

// options are the flags as Compile takes them. The budgets that were not given
// are the defaults passed here; vanilla has none, since it is there to show what
// a model needs without them.
func (f planFlags) options(device, host int64) (gomem.Options, error) {
	o := gomem.Options{
		Policy: compile.Policy(f.Policy), Strategy: partition.Strategy(f.Strategy),
		Partition: int(f.Partition), Lookahead: int(f.Lookahead),
		NoPlacement: f.NoPlacement, NoSwap: f.NoSwap, Streams: int(f.Streams),
		DeviceBytes: int64(f.DeviceBytes), HostBytes: int64(f.HostBytes),
		NoFusion: !f.Fuse,
	}
	if err := f.conflict(); err != nil {
		return o, err
	}
	if o.Policy != compile.Vanilla {
		setDefault(&o.DeviceBytes, device)
		setDefault(&o.HostBytes, host)
	}
	if err := o.Validate(); err != nil {
		return o, usagef("%w", err)
	}
	return o, nil
}

func setDefault(field *int64, value int64) {
	if *field == 0 {
		*field = value
	}
}

// conflict reports a flag of policies that cut partitions under one that does
// not.
func (f planFlags) conflict() error {
	policy := compile.Policy(f.Policy)
	if policy.Partitioned() || !slices.Contains(compile.Policies(), policy) {
		return nil
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"strategy", f.Strategy != ""}, {"partition", f.Partition > 0}, {"lookahead",
			f.Lookahead > 0},
		{"no-placement", f.NoPlacement}, {"no-swap", f.NoSwap},
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
	Device   string   `group:"plan" default:"cpu" placeholder:"NAME"`
	Threads  count    `group:"plan" placeholder:"N"`
	CopyGbps positive `group:"plan" placeholder:"GB/S"`
}

// session are the options of a run's session.
func (f deviceFlags) session(o gomem.Options) (gomem.Options, error) {
	o.Device, o.Threads = f.Device, int(f.Threads)
	o.CopyBytesPerSecond = int64(float64(f.CopyGbps) * 1e9)
	if err := o.Validate(); err != nil {
		return o, usagef("%w", err)
	}
	return o, nil
}
