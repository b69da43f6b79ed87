package command

import (
	"fmt"
	"os"

	"github.com/pkg/profile"
)

// profiles are the kinds that --pprof takes.
var profiles = map[string]func(*profile.Profile){
	"cpu":   profile.CPUProfile,
	"mem":   profile.MemProfile,
	"trace": profile.TraceProfile,
	"block": profile.BlockProfile,
}

// startProfile begins a profile of a kind, or nothing if kind is empty. The
// profiler ends the process if it cannot write, so the directory is tried first.
func startProfile(kind, dir string) (stop func(), err error) {
	if kind == "" {
		return func() {}, nil
	}
	mode, ok := profiles[kind]
	if !ok {
		return nil, usagef("--pprof %q: want cpu, mem, trace or block", kind)
	}
	if err := writable(dir); err != nil {
		return nil, fmt.Errorf("--pprof-dir %s: %w", dir, bare(err))
	}
	return profile.Start(mode, profile.ProfilePath(dir), profile.NoShutdownHook,
		profile.Quiet).Stop, nil
}

// writable makes a directory if need be and tries to write in it.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return takesFiles(dir)
}

// takesFiles reports why no file can be made in a directory.
func takesFiles(dir string) error {
	f, err := os.CreateTemp(dir, ".gomem-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	return f.Close()
}
