package gomlx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/gomem/gomem"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/planner"
)

// setting is a key of a configuration.
type setting struct {
	key, example string
	set          func(o *gomem.Options, text string) error
}

// settings are all of them.
func settings() []setting {
	return []setting{
		{"device", "64MiB", size(func(o *gomem.Options) *int64 { return &o.DeviceBytes })},
		{"host", "2GiB", size(func(o *gomem.Options) *int64 { return &o.HostBytes })},
		{"disk", "8GiB", size(func(o *gomem.Options) *int64 { return &o.DiskBytes })},
		{"disk-dir", "/var/tmp", func(o *gomem.Options, s string) error {
			o.Disk = s
			return nil
		}},
		{"policy", "auto", func(o *gomem.Options, s string) error {
			o.Policy = planner.Policy(s)
			return nil
		}},
		{"strategy", "dfs", func(o *gomem.Options, s string) error {
			o.Strategy = partition.Strategy(s)
			return nil
		}},
		{"partition", "20", number(func(o *gomem.Options) *int { return &o.Partition })},
		{"streams", "1", number(func(o *gomem.Options) *int { return &o.Streams })},
		{"effort", "100", number(func(o *gomem.Options) *int { return &o.Effort })},
		{"threads", "2", number(func(o *gomem.Options) *int { return &o.Threads })},
	}
}

// size reads a number of bytes, which is not zero: that would be no budget.
func size(of func(*gomem.Options) *int64) func(*gomem.Options, string) error {
	return func(o *gomem.Options, text string) error {
		n, err := units.RAMInBytes(text)
		if err != nil || n <= 0 {
			return fmt.Errorf("%q is no size such as 64MiB", text)
		}
		*of(o) = n
		return nil
	}
}

// number reads a whole number.
func number(of func(*gomem.Options) *int) func(*gomem.Options, string) error {
	return func(o *gomem.Options, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no whole number from 1", text)
		}
		*of(o) = n
		return nil
	}
}

// parse reads a configuration, such as "device=64MiB,policy=auto".
func parse(config string) (o gomem.Options, err error) {
	var seen []string
	for part := range strings.SplitSeq(config, ",") {
		if part == "" && config == "" {
			continue
		}
		key, text, _ := strings.Cut(part, "=")
		i := slices.IndexFunc(settings(), func(s setting) bool { return s.key == key })
		switch {
		case i < 0:
			return o, fmt.Errorf("gomem: configuration %q: no setting is called %q; there are %s",
				config, key, known())
		case slices.Contains(seen, key):
			return o, fmt.Errorf("gomem: configuration %q: %s is set twice", config, key)
		}
		if err := settings()[i].set(&o, text); err != nil {
			return o, fmt.Errorf("gomem: configuration %q: %s: %w", config, key, err)
		}
		seen = append(seen, key)
	}
	if err := o.Validate(); err != nil {
		return o, fmt.Errorf("gomem: configuration %q: %w", config, err)
	}
	return o, nil
}

// known lists the settings, each with an example.
func known() string {
	var list []string
	for _, s := range settings() {
		list = append(list, s.key+"="+s.example)
	}
	return strings.Join(list, ", ")
}
