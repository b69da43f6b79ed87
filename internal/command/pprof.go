package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
)

// profiler is a kind of profile: what begins it, and what ends it and has it in the file.
type profiler struct {
	file  string
	begin func(*os.File) error
	end   func(*os.File) error
}

// heapRate is the bytes from one sample of the heap to the next: often enough that buffers
// of small runs are seen.
const heapRate = 4096

// profilers are the kinds that --pprof takes.
func profilers() map[string]profiler {
	rate := runtime.MemProfileRate
	write := func(name string, f *os.File) error { return pprof.Lookup(name).WriteTo(f, 0) }
	return map[string]profiler{
		"cpu": {"cpu.pprof", func(f *os.File) error { return pprof.StartCPUProfile(f) },
			func(*os.File) error { pprof.StopCPUProfile(); return nil }},
		"mem": {"mem.pprof",
			func(*os.File) error { runtime.MemProfileRate = heapRate; return nil },
			func(f *os.File) error { runtime.MemProfileRate = rate; return write("heap", f) }},
		"trace": {"trace.out", func(f *os.File) error { return trace.Start(f) },
			func(*os.File) error { trace.Stop(); return nil }},
		"block": {"block.pprof",
			func(*os.File) error { runtime.SetBlockProfileRate(1); return nil },
			func(f *os.File) error { runtime.SetBlockProfileRate(0); return write("block", f) }},
		"mutex": {"mutex.pprof",
			func(*os.File) error { runtime.SetMutexProfileFraction(1); return nil },
			func(f *os.File) error {
				runtime.SetMutexProfileFraction(0)
				return write("mutex", f)
			}},
		"goroutine": {"goroutine.pprof", func(*os.File) error { return nil },
			func(f *os.File) error { return write("goroutine", f) }},
	}
}

// startProfile begins a profile of a kind, or nothing if kind is empty. What stop returns
// names the file.
func startProfile(kind, dir string) (stop func() error, err error) {
	if kind == "" {
		return func() error { return nil }, nil
	}
	p, ok := profilers()[kind]
	if !ok {
		return nil, usagef("--pprof %q: want cpu, mem, trace, block, mutex or goroutine", kind)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("--pprof-dir %s: %w", dir, bare(err))
	}
	f, err := os.Create(filepath.Join(dir, p.file))
	if err != nil {
		return nil, fmt.Errorf("--pprof-dir %s: %w", dir, bare(err))
	}
	if err := p.begin(f); err != nil {
		return nil, errors.Join(fmt.Errorf("--pprof %s: %w", kind, err), f.Close())
	}
	return func() error {
		if err := errors.Join(p.end(f), f.Close()); err != nil {
			return fmt.Errorf("--pprof %s: %w", f.Name(), bare(err))
		}
		return nil
	}, nil
}
