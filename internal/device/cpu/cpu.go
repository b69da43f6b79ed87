// Package cpu is the reference device: memories are ordinary memory, kernels
// are Go and assembly, and a stream is a goroutine with a queue. Copies are real
// copies on goroutines of their own, so they overlap with kernels as a GPU's
// copy engines do; they can be slowed down to a given bandwidth. A directory makes a
// third memory, in a file, with engines between it and the host.
package cpu

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/plan/space"
)

// MaxThreads is the most threads of a kernel: they are all started when the device is opened.
const MaxThreads = 1024

// Options configure a device. The zero value works.
type Options struct {
	Threads            int            // threads of a kernel; 0 means one for every processor
	CopyBytesPerSecond int64          // between device and host, each way; 0 means no limit
	DiskDir            string         // where the files of a disk memory are; "" means no disk
	Listener           trace.Listener // told of every task; nil means nobody is

	// For a device of which this one is the host's part.

	// Allocate makes memory instead of [Allocate].
	Allocate func(s space.ID, bytes int64) (data []byte, free func() error, err error)
	Fault    *device.Fault // both devices' error; nil: one of its own
}

// Device is the processor and its memory.
type Device struct {
	options  Options
	opened   time.Time               // when the clock of events is zero
	places   map[space.Engine]*place // the engines that there are
	pool     *pool.Pool
	streams  []*stream
	memories []*memory
	disks    []*disk
	create   func(dir string, bytes int64) (file, error)
	fault    *device.Fault
	workers  sync.WaitGroup
	closed   bool
}

// Open makes a device. Close it to end its goroutines.
func Open(o Options) (*Device, error) {
	if o.Threads < 0 || o.Threads > MaxThreads || o.CopyBytesPerSecond < 0 {
		return nil, fmt.Errorf("cpu device: %d threads, %d bytes a second: want at most %d "+
			"threads, and nothing negative", o.Threads, o.CopyBytesPerSecond, MaxThreads)
	}
	d := &Device{options: o, places: map[space.Engine]*place{}, opened: time.Now(),
		pool: pool.New(o.Threads), create: createFile, fault: o.Fault}
	if d.fault == nil {
		d.fault = &device.Fault{}
	}
	engines := []space.Engine{space.Compute, space.CopyIn, space.CopyOut, space.HostCompute,
		space.Send, space.Await, space.Peer}
	if o.DiskDir != "" {
		engines = append(engines, space.Copier(diskSpace, space.Host),
			space.Copier(space.Host, diskSpace))
	}
	for _, e := range engines {
		d.places[e] = &place{d, e}
	}
	return d, nil
}

// place is an engine of a device. A task has the address of the one that its
// operands were checked for, a stream that of its own.
type place struct {
	device *Device
	engine space.Engine
}

// place is the engine of a kind, or an error that there is none.
func (d *Device) place(e space.Engine) (*place, error) {
	if p, ok := d.places[e]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("cpu device: no engine %s", e)
}

// Alloc makes a memory, zeroed and aligned to a page, or a file of zeros.
func (d *Device) Alloc(s space.ID, bytes int64) (device.Memory, error) {
	switch {
	case bytes < 0 || s > diskSpace || s == diskSpace && d.options.DiskDir == "":
		return nil, fmt.Errorf("cpu device: there are no %d bytes of %s memory", bytes, s)
	case s == diskSpace:
		return d.allocDisk(bytes)
	}
	allocate := d.options.Allocate
	if allocate == nil {
		allocate = func(_ space.ID, bytes int64) ([]byte, func() error, error) {
			return Allocate(bytes)
		}
	}
	data, free, err := allocate(s, bytes)
	if err != nil {
		return nil, fmt.Errorf("cpu device: %d bytes of %s memory: %w", bytes, s, err)
	}
	m := &memory{device: d, space: s, data: data, free: free}
	d.memories = append(d.memories, m)
	return m, nil
}

// Err is the error since Open or Reset.
func (d *Device) Err() error { return d.fault.Err() }

// Stop skips what has not begun, and cuts short what a throttled copy waits.
func (d *Device) Stop(cause error) { d.fault.Set(cause) }

// Reset lets tasks run again.
func (d *Device) Reset() {
	for _, s := range d.streams {
		s.Sync()
	}
	d.fault.Clear()
}

// Close ends the streams after what they have queued and frees the memories.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	for _, s := range d.streams {
		s.close()
	}
	d.workers.Wait()
	d.pool.Close()
	var errs []error
	for _, m := range d.memories {
		m.data = nil
		errs = append(errs, m.free())
	}
	for _, m := range d.disks {
		errs = append(errs, m.file.Close())
	}
	return errors.Join(errs...)
}

// memory is one allocation.
type memory struct {
	device.Water
	device *Device
	space  space.ID
	data   []byte
	free   func() error
}

func (m *memory) Space() space.ID { return m.space }
func (m *memory) Bytes() int64    { return int64(len(m.data)) }

func (m *memory) Write(off int64, data []byte) error { return m.access(off, data, copyIn) }
func (m *memory) Read(off int64, data []byte) error  { return m.access(off, data, copyOut) }

func copyIn(mem, data []byte)  { copy(mem, data) }
func copyOut(mem, data []byte) { copy(data, mem) }

func (m *memory) access(off int64, data []byte, move func(mem, data []byte)) error {
	r := device.Region{Mem: m, Off: off, Bytes: int64(len(data))}
	if err := r.Check(); err != nil {
		return err
	}
	m.Touch(off + r.Bytes)
	move(m.data[off:], data)
	return nil
}

// Window is the bytes of a region, which has been checked, of one of this
// device's memories, or none of a file; and the memory's mark.
func (d *Device) Window(r device.Region) ([]byte, *device.Water, error) {
	switch m := r.Mem.(type) {
	case *memory:
		if m.device == d {
			return m.data[r.Off : r.Off+r.Bytes : r.Off+r.Bytes], &m.Water, nil
		}
	case *disk:
		if m.device == d {
			return nil, &m.Water, nil
		}
	}
	return nil, nil, fmt.Errorf("memory %T is not this device's", r.Mem)
}
