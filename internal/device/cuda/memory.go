//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/plan/space"
)

// memory is an allocation of the GPU's memory.
type memory struct {
	device.Water
	device *Device
	addr   uint64
	bytes  int64
}

// allocDevice takes memory of the GPU, zeroed.
func (d *Device) allocDevice(bytes int64) (device.Memory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("cuda device: there are no %d bytes of device memory", bytes)
	}
	m := &memory{device: d, bytes: bytes}
	err := d.bound(func() (err error) {
		if bytes == 0 {
			return nil
		}
		if m.addr, err = d.take(bytes); err != nil {
			return err
		}
		return d.gpu.Clear(m.addr, bytes)
	})
	if m.addr != 0 {
		d.memories = append(d.memories, m)
	}
	if err != nil {
		return nil, fmt.Errorf("cuda device: %w", err)
	}
	return m, nil
}

// take is an allocation; where there is too little memory, the error says how much there is.
func (d *Device) take(bytes int64) (uint64, error) {
	addr, err := d.gpu.Alloc(bytes)
	if e, ok := errors.AsType[*driver.Error](err); ok && e.OutOfMemory() {
		return 0, d.short(bytes, nil)
	}
	return addr, err
}

// short is a MemoryError, or why it is not known how much is free.
func (d *Device) short(bytes int64, library error) error {
	free, total, err := d.gpu.Free()
	if err != nil {
		return err
	}
	return &MemoryError{d.gpu.Name, bytes, free, total, library}
}

// taking is the error of a library: a MemoryError where it has taken no memory.
func (d *Device) taking(err error) error {
	if e, ok := errors.AsType[*driver.Error](err); ok && e.OutOfMemory() {
		return d.short(0, err)
	}
	return err
}

// unopened is the error of a GPU, by its number, that does not open: a MemoryError where it has no
// room for a context.
func unopened(lib *driver.Driver, number int, err error) error {
	e, ok := errors.AsType[*driver.Error](err)
	if !ok || !e.OutOfMemory() {
		return err
	}
	g, failed := lib.Look(number)
	if failed != nil {
		return err
	}
	return &MemoryError{GPU: g.Name, Free: -1, Total: g.Memory, Err: err}
}

func (m *memory) free() error { return m.device.gpu.Release(m.addr) }

// Space is the device's.
func (m *memory) Space() space.ID { return space.Device }

// Bytes is the size.
func (m *memory) Bytes() int64 { return m.bytes }

// Write copies data to an address, at once.
func (m *memory) Write(off int64, data []byte) error {
	return m.access(off, data, m.device.gpu.Write)
}

// Read copies bytes from an address, at once.
func (m *memory) Read(off int64, data []byte) error {
	return m.access(off, data, m.device.gpu.Read)
}

func (m *memory) access(off int64, data []byte, move func(uint64, []byte) error) error {
	r := device.Region{Mem: m, Off: off, Bytes: int64(len(data))}
	if err := r.Check(); err != nil || len(data) == 0 {
		return err
	}
	m.Touch(off + r.Bytes)
	return m.device.bound(func() error { return move(m.addr+uint64(off), data) })
}

// allocate makes memory of the host and begins to pin it.
func (d *Device) allocate(_ space.ID, bytes int64) ([]byte, func() error, error) {
	data, free, err := cpu.Allocate(bytes)
	if err != nil || bytes == 0 {
		return data, free, err
	}
	if err := d.stage.open(d.gpu); err != nil {
		return nil, nil, errors.Join(&PinError{stagingBytes, err}, free())
	}
	p := &pins{gpu: d.gpu, data: data, piece: d.options.Piece}
	p.moved = sync.NewCond(&p.mu)
	p.all.Go(p.pin)
	d.pinning = p
	return data, func() error { return errors.Join(p.unpin(), free()) }, nil
}

// Pull copies bytes from a GPU's memory to this one's, and returns when they are there.
func (d *Device) Pull(dst, src device.Region) error {
	to, own := dst.Mem.(*memory)
	from, theirs := src.Mem.(*memory)
	if !own || !theirs || to.device != d || dst.Bytes != src.Bytes {
		return fmt.Errorf("cuda device: no copy of %d bytes of %T to %d of %T", src.Bytes, src.Mem,
			dst.Bytes, dst.Mem)
	}
	if dst.Bytes == 0 {
		return nil
	}
	return d.peer.waited(d, func(s *driver.Stream) error {
		if err := d.peer.reach(d, from.device); err != nil {
			return err
		}
		return s.FromPeer(to.addr+uint64(dst.Off), from.device.gpu,
			from.addr+uint64(src.Off), dst.Bytes)
	})
}

// Clear zeroes bytes of this GPU's memory.
func (d *Device) Clear(dst device.Region) error {
	to, own := dst.Mem.(*memory)
	if !own || to.device != d {
		return fmt.Errorf("cuda device: no %T to clear", dst.Mem)
	}
	if dst.Bytes == 0 {
		return nil
	}
	return d.peer.waited(d, func(s *driver.Stream) error {
		return s.FillBytes(to.addr+uint64(dst.Off), 0, dst.Bytes)
	})
}
