//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// pins is a memory of the host whose pages are locked one piece after the other.
type pins struct {
	gpu   *driver.GPU
	data  []byte
	piece int64

	mu    sync.Mutex
	moved *sync.Cond
	ready int64 // bytes that are pinned
	err   error
	stop  bool
	all   sync.WaitGroup
}

// pin locks the pieces, until one fails.
func (p *pins) pin() {
	unbind, err := p.gpu.Bind()
	if err != nil {
		p.pinned(0, err)
		return
	}
	defer unbind()
	for off := int64(0); off < int64(len(p.data)); off += p.piece {
		p.mu.Lock()
		stop := p.stop
		p.mu.Unlock()
		if stop {
			return
		}
		end := min(off+p.piece, int64(len(p.data)))
		err := p.gpu.Pin(p.data[off:end])
		if p.pinned(end, err); err != nil {
			return
		}
	}
}

// pinned says that the memory is pinned up to an end, or why it is not.
func (p *pins) pinned(end int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.err = &PinError{int64(len(p.data)), err}
	} else {
		p.ready = end
	}
	p.moved.Broadcast()
}

// await returns when the memory is pinned up to an end, or cannot be.
func (p *pins) await(end int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.ready < end && p.err == nil {
		p.moved.Wait()
	}
	if p.ready >= end {
		return nil
	}
	return p.err
}

// unpin unlocks what is locked.
func (p *pins) unpin() error {
	p.mu.Lock()
	p.stop = true
	p.mu.Unlock()
	p.all.Wait()
	return p.gpu.Bound(func() error {
		var errs []error
		for off := int64(0); off < p.ready; off += p.piece {
			errs = append(errs, p.gpu.Unpin(p.data[off:min(off+p.piece, p.ready)]))
		}
		return errors.Join(errs...)
	})
}

// stagingBytes are copied at once where memory cannot be pinned.
const stagingBytes = 1 << 20

// staging is a little pinned memory, through which copies go whose memory of the host cannot be
// pinned, as where a system limits that: slowly, for nothing else is issued meanwhile.
type staging struct {
	gpu  *driver.GPU
	data []byte
	free func() error
	done *driver.Event
	used bool
	log  *slog.Logger
}

// open takes the memory, once.
func (g *staging) open(gpu *driver.GPU) (err error) {
	if g.data != nil {
		return nil
	}
	data, free, err := cpu.Allocate(stagingBytes)
	if err != nil {
		return err
	}
	err = gpu.Bound(func() error {
		if err := gpu.Pin(data); err != nil {
			return err
		}
		g.gpu, g.data, g.free = gpu, data, free
		g.done, err = gpu.Event(false)
		return err
	})
	if g.data == nil {
		return errors.Join(err, free())
	}
	return err
}

// copy copies bytes that cannot be pinned, for a reason. What the stream was given before is done
// first, since the host reads and writes here.
func (g *staging) copy(s *stream, in bool, addr uint64, data []byte, why error) error {
	if !g.used && g.log != nil {
		g.log.Warn("copies go through pinned memory of their own, and are slow", "error", why)
	}
	g.used = true
	if err := g.wait(s); err != nil {
		return err
	}
	for len(data) > 0 {
		n := min(len(data), len(g.data))
		part, room := data[:n], g.data[:n]
		var err error
		if in {
			copy(room, part)
			err = s.cu.ToDevice(addr, room)
		} else {
			err = s.cu.ToHost(room, addr)
		}
		if err := errors.Join(err, g.wait(s)); err != nil {
			return err
		}
		if !in {
			copy(part, room)
		}
		addr, data = addr+uint64(n), data[n:]
	}
	return nil
}

// wait returns when a stream has done what it was given.
func (g *staging) wait(s *stream) error {
	if err := s.cu.Record(g.done); err != nil {
		return err
	}
	return g.done.Await()
}

// close gives the memory back.
func (g *staging) close() error {
	if g.data == nil {
		return nil
	}
	errs := []error{g.gpu.Unpin(g.data), g.free()}
	if g.done != nil {
		errs = append(errs, g.done.Close())
	}
	return errors.Join(errs...)
}
