//go:build linux && amd64 && !nocuda

package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/internal/invariants"
	"github.com/gomem/gomem/plan/space"
)

// Options configure a device.
type Options struct {
	GPU      int            // number of the GPU, from 0
	Source   string         // of all kernels
	Threads  int            // threads of a kernel of the host; 0: one for every processor
	DiskDir  string         // where the files of a disk memory are; "" means no disk
	Listener trace.Listener // told of every task; nil means nobody is
	Dirs     []string       // where libraries are looked for first
	Cache    string         // folder of compiled kernels; "" is the user's
	// Poison fills results with NaN before they are computed, as debug builds always do.
	Poison    bool
	Piece     int64 // bytes that are pinned at once; 0 is 1 GiB
	Chunk     int64 // bytes that are copied at once; 0 is 8 MiB
	Workspace int64 // bytes of a compute stream's workspace; 0 is Workspace
	TF32      bool  // matrix products round their operands to 10 bits behind the point
	// Eager has every task given to the GPU by itself. Otherwise what a compute stream is given at
	// once is captured the second time, and launched as one graph from then on, unless there is a
	// Listener. Graphs take memory of the GPU that is not counted.
	Eager bool
	// Interpret has no kernels compiled for chains: they are interpreted, to the same bits.
	Interpret bool
	Logger    *slog.Logger // told of what is not captured, and what takes long; nil logs nothing
}

// workspace is that of a compute stream.
func (o Options) workspace() int64 { return cmp.Or(o.Workspace, Workspace) }

// Device is a GPU and, beside it, the host's processor and memory.
type Device struct {
	options  Options
	opened   time.Time
	gpu      *driver.GPU
	account  account
	host     *cpu.Device
	code     code
	blas     *driver.Blas
	dnn      *driver.DNN // nil: there is none
	noDNN    error       // why it is not, if it is there and cannot be loaded
	convs    convolutions
	ones     ones // products to be tried
	fault    device.Fault
	broken   atomic.Bool // the GPU has told of an error
	clock    clock
	places   map[space.Engine]*place
	queue    chan command
	issuer   sync.WaitGroup
	streams  []device.Stream
	memories []*memory
	pins     map[device.Memory]*pins
	pinning  *pins // of the memory that is being made
	stage    staging
	peer     peer
	closed   bool
}

// place is an engine of a device: a task has the address of its own, as a stream has.
type place struct {
	device *Device
	engine space.Engine
}

// Open starts the driver and makes a device of a GPU. Close it. Errors are one line each: no
// driver, one that is too old, no such GPU, no compiler for kernels, no cuBLAS.
func Open(o Options) (*Device, error) {
	o.Poison = o.Poison || invariants.Enabled
	if o.Piece == 0 {
		o.Piece = 1 << 30
	}
	if o.Chunk == 0 {
		o.Chunk = 8 << 20
	}
	o.Workspace = o.workspace()
	d := &Device{options: o, opened: time.Now(), queue: make(chan command, queueLength),
		places: map[space.Engine]*place{}, pins: map[device.Memory]*pins{},
		stage: staging{log: o.Logger}}
	for _, e := range []space.Engine{space.Compute, space.CopyIn, space.CopyOut} {
		d.places[e] = &place{d, e}
	}
	if err := d.open(); err != nil {
		if d.gpu != nil {
			err = errors.Join(err, d.account.close(), d.gpu.Close())
		}
		return nil, fmt.Errorf("cuda device: %w", err)
	}
	if o.Listener != nil {
		o.forbidden("a trace is told of each")
	}
	d.issuer.Go(d.issue)
	return d, nil
}

func (d *Device) open() error {
	lib, err := driver.Load(driver.Options{Dirs: d.options.Dirs})
	if err != nil {
		return err
	}
	if d.gpu, err = lib.Open(d.options.GPU); err != nil {
		return unopened(lib, d.options.GPU, err)
	}
	if err := d.bound(d.gpu.Sync); err != nil {
		return &BrokenError{d.gpu.Name, err}
	}
	if err := d.bound(func() error { return d.account.begin(d) }); err != nil {
		return err
	}
	if d.blas, err = d.gpu.Blas(); err != nil {
		return err
	}
	d.dnn, d.noDNN = library(d.gpu)
	if err := d.bound(func() error {
		return errors.Join(d.loadCode(), d.convs.open(d))
	}); err != nil {
		return err
	}
	d.host, err = cpu.Open(cpu.Options{Threads: d.options.Threads, DiskDir: d.options.DiskDir,
		Listener: d.options.Listener, Allocate: d.allocate, Fault: &d.fault})
	return err
}

// bound calls a function on a thread where the GPU's context is current.
func (d *Device) bound(f func() error) error { return d.gpu.Bound(f) }

// Alloc makes a memory: of the GPU, of the host, pinned, or a file.
func (d *Device) Alloc(s space.ID, bytes int64) (device.Memory, error) {
	if s == space.Device {
		return d.allocDevice(bytes)
	}
	m, err := d.host.Alloc(s, bytes)
	if err == nil && d.pinning != nil {
		d.pins[m] = d.pinning
	}
	d.pinning = nil
	return m, err
}

// Stream starts a stream of the GPU, or of the host.
func (d *Device) Stream(name string, e space.Engine) (device.Stream, error) {
	if p, ok := d.places[e]; ok {
		return d.newStream(name, p)
	}
	if e == space.Peer {
		if err := d.peer.open(d); err != nil {
			return nil, fmt.Errorf("cuda device: stream %s: %w", name, err)
		}
	}
	inner, err := d.host.Stream(name, e)
	if err != nil {
		return nil, err
	}
	s := &hostStream{Queue: inner.(cpu.Queue), device: d, id: len(d.streams),
		inner: inner.Record().Stream}
	d.streams = append(d.streams, s)
	return s, nil
}

// Launch prepares an operation's kernels for the GPU, or resolves its kernel of the host.
func (d *Device) Launch(l device.Launch) (device.Task, error) {
	p, ok := d.places[l.Engine]
	if !ok {
		return d.host.Launch(l)
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	return d.launch(p, l)
}

// Copy prepares a copy between the GPU and the host, or resolves one of the host.
func (d *Device) Copy(c device.Copy) (device.Task, error) {
	p, ok := d.places[c.Engine]
	if !ok {
		return d.host.Copy(c)
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return d.copy(p, c)
}

// Call resolves a call, which is the host's, also of what other GPUs copy.
func (d *Device) Call(c device.Call) (device.Task, error) {
	if c.Engine == space.Peer {
		return d.exchange(c)
	}
	return d.host.Call(c)
}

// Err is the error since Open or Reset.
func (d *Device) Err() error { return d.fault.Err() }

// Stop skips what was not issued to the GPU or has not begun on the host.
func (d *Device) Stop(cause error) { d.fault.Set(cause) }

// Reset lets tasks run again. What a GPU does after an error of its own fails still.
func (d *Device) Reset() {
	d.settle()
	d.host.Reset()
}

// Try has every product of the tasks that were made computed once, of ones, where the tasks have
// their operands, and zeroes the memory. A product that comes to something else is a
// *[ProductError].
func (d *Device) Try() error {
	for _, s := range d.streams {
		s, ok := s.(*stream)
		if !ok || s.products == nil {
			continue
		}
		err := d.bound(func() error {
			err := errors.Join(d.ones.try(d, s), d.gpu.Sync())
			for _, m := range d.memories {
				err = errors.Join(err, d.gpu.Clear(m.addr, m.bytes))
			}
			return errors.Join(err, d.gpu.Sync())
		})
		if err != nil {
			return fmt.Errorf("cuda device: %w", err)
		}
		return nil
	}
	return nil
}

// Beside is how many bytes of the GPU's memory the process has beside what its devices have
// allocated: the context, kernels, what libraries took, and what threads of the kernels that tasks
// were made of have for themselves. Once kernels have run that is counted twice.
func (d *Device) Beside() (bytes int64, err error) {
	err = d.bound(func() (err error) {
		bytes, err = d.account.beside(d)
		return err
	})
	return bytes, err
}

// settle waits until the GPU's streams are done.
func (d *Device) settle() {
	for _, s := range d.streams {
		if s, ok := s.(*stream); ok {
			s.settle()
		}
	}
}

// Close ends the streams after what they have queued, frees the memories and lets the GPU
// go.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	d.settle()
	errs := []error{d.host.Close()}
	close(d.queue)
	d.issuer.Wait()
	errs = append(errs, d.bound(func() error {
		var errs []error
		for _, s := range d.streams {
			if s, ok := s.(*stream); ok {
				errs = append(errs, s.close())
			}
		}
		for _, m := range d.memories {
			errs = append(errs, m.free())
		}
		errs = append(errs, d.convs.close(), d.stage.close(), d.peer.close())
		return errors.Join(append(errs, d.clock.close(), d.closeCode())...)
	}), d.account.close(), d.gpu.Close())
	if d.broken.Load() {
		return nil // the driver repeats the GPU's error with every call
	}
	return errors.Join(errs...)
}
