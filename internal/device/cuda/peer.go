//go:build linux && amd64 && !nocuda

package cuda

import (
	"errors"

	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// Reach reports whether all GPUs of some numbers can copy from each other's memory directly.
func Reach(dirs []string, numbers []int) (bool, error) {
	d, err := driver.Load(driver.Options{Dirs: dirs})
	if err != nil {
		return false, err
	}
	for _, a := range numbers {
		for _, b := range numbers {
			if a == b {
				continue
			}
			if can, err := d.Reaches(a, b); err != nil || !can {
				return false, err
			}
		}
	}
	return true, nil
}

// peer is the stream of copies from other GPUs, which the host waits for: what it copies was made
// when the exchange began, and nobody goes on before it has ended.
type peer struct {
	stream *driver.Stream
	done   *driver.Event
	known  map[*driver.GPU]bool // whose memory is reached
}

// open makes the stream of a device, once.
func (p *peer) open(d *Device) error {
	if p.stream != nil {
		return nil
	}
	p.known = map[*driver.GPU]bool{d.gpu: true}
	return d.bound(func() (err error) {
		if p.stream, err = d.gpu.Stream(); err == nil {
			p.done, err = d.gpu.Event(false)
		}
		return d.taking(err)
	})
}

// reach has copies of a device read another one's memory.
func (p *peer) reach(d, other *Device) error {
	if p.known[other.gpu] {
		return nil
	}
	err := d.gpu.Reach(other.gpu)
	p.known[other.gpu] = err == nil
	return err
}

// close ends the stream.
func (p *peer) close() error {
	var errs []error
	if p.done != nil {
		errs = append(errs, p.done.Close())
	}
	if p.stream != nil {
		errs = append(errs, p.stream.Close())
	}
	return errors.Join(errs...)
}

// waited gives the stream of a device something, and returns when it is done.
func (p *peer) waited(d *Device, give func(s *driver.Stream) error) error {
	err := d.bound(func() error {
		if err := give(p.stream); err != nil {
			return err
		}
		if err := p.stream.Record(p.done); err != nil {
			return err
		}
		return p.done.Await()
	})
	if err != nil {
		d.broken.Store(true)
	}
	return d.taking(err)
}
