//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/plan/space"
)

// assumedContext is what a context is held to take at most where NVML does not say it: from 107 to
// 555 MiB were seen (issue 23604 of github.com/ggml-org/llama.cpp).
const assumedContext = 576 << 20

// account is who has the memory of a GPU beside what devices of this process have allocated.
type account struct {
	monitor *driver.Monitor // nil: there is none
	context int64           // bytes of the context
	first   int64           // bytes that were seen when there was nothing but the context
	local   int64           // bytes of a thread, the most of any kernel that was asked for
}

// Measure is how many bytes of a GPU's memory a process has beside plans and workspaces, once it
// has a context, the kernels, so many compute streams and what the libraries load for their first
// products. All of it is given back. The error wraps [ErrNone] where there is no GPU.
func Measure(o Options, streams int) (bytes int64, err error) {
	d, err := Open(o)
	if err != nil {
		return 0, none(err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for i := range max(streams, 1) {
		if _, err := d.Stream(fmt.Sprintf("compute %d", i), space.Compute); err != nil {
			return 0, err
		}
	}
	for _, e := range []space.Engine{space.CopyIn, space.CopyOut} {
		if _, err := d.Stream(e.String(), e); err != nil {
			return 0, err
		}
	}
	if o.Interpret { // its threads need more than others'
		if err := d.bound(func() error {
			_, err := d.kernel(interpreter, 0)
			return err
		}); err != nil {
			return 0, err
		}
	}
	return d.Beside()
}

// interpreter is the kernel of chains that are not compiled.
const interpreter = "chain"

// begin opens the account of a device that has nothing but a context.
func (a *account) begin(d *Device) error {
	why := a.listen(d.gpu)
	seen, err := a.seen(d)
	a.first, a.context = seen, seen
	if a.monitor == nil {
		a.context = min(seen, assumedContext)
		note(d.options, "the GPU's memory is counted by what is free, and the context is assumed",
			"context_bytes", a.context, "why", why)
	}
	return err
}

// errUnlisted is why NVML says nothing of a process, as in a container with numbers of its own.
var errUnlisted = errors.New("NVML does not list this process")

// listen has NVML say what the process has. The error is why it does not, as where it is not
// installed or, on a GPU that is divided, does not tell everybody.
func (a *account) listen(g *driver.GPU) error {
	m, err := driver.OpenMonitor(g)
	if err != nil {
		return err
	}
	_, known, err := m.Process()
	if err == nil && !known {
		err = errUnlisted
	}
	if err != nil {
		return errors.Join(err, m.Close())
	}
	a.monitor = m
	return nil
}

// close ends what was started.
func (a *account) close() error {
	if a.monitor == nil {
		return nil
	}
	return a.monitor.Close()
}

// seen is what this process has of the GPU's memory but for what it has allocated, as NVML says it,
// or what all processes have.
func (a *account) seen(d *Device) (bytes int64, err error) {
	allocated, err := d.gpu.Allocated(func() error {
		if a.monitor == nil {
			free, total, err := d.gpu.Free()
			bytes = total - free
			return err
		}
		own, known, err := a.monitor.Process()
		if bytes = own; err == nil && !known {
			err = errUnlisted // any more
		}
		return err
	})
	return bytes - allocated, err
}

// uses counts what threads of a kernel have for themselves.
func (a *account) uses(k *driver.Kernel) error {
	bytes, err := k.Local()
	a.local = max(a.local, bytes)
	return err
}

// threads is what the driver takes for the threads of kernels, of as many as the GPU has at once.
func (a *account) threads(g *driver.GPU) int64 {
	return a.local * int64(g.Units) * int64(g.Threads)
}

// beside is how many bytes of the GPU's memory the process has beside what its devices have
// allocated.
func (a *account) beside(d *Device) (int64, error) {
	seen, err := a.seen(d)
	loaded, threads := max(seen-a.first, 0), a.threads(d.gpu)
	note(d.options, "the GPU's memory", "total_bytes", d.gpu.Memory,
		"context_bytes", a.context,
		"loaded_bytes", loaded, "threads_bytes", threads,
		"of_this_process", a.monitor != nil)
	return a.context + loaded + threads, err
}

// note logs, if somebody reads it.
func note(o Options, text string, args ...any) {
	if o.Logger != nil {
		o.Logger.Info(text, args...)
	}
}
