//go:build linux && amd64 && !nocuda

package cuda

import (
	"encoding/binary"
	"errors"

	"github.com/gomem/gomem/graph/tensor"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
)

// dataError is an error of what data says, after which the GPU is as sound as before.
type dataError struct{ err error }

func (e *dataError) Error() string { return e.err.Error() }

// branch prepares commands of which data says which are run.
func (t *task) branch(d *Device, c kernels.Branch) error {
	lists := make([][]part, len(c.Lists))
	for i, list := range c.Lists {
		inner := &task{place: t.place}
		for _, c := range list {
			if err := d.prepare(inner, c); err != nil {
				return err
			}
		}
		lists[i] = inner.parts
	}
	t.looks = true
	t.parts = append(t.parts, func(s *stream) error {
		n, err := s.look(c.Addr, c.Type)
		if err != nil {
			return err
		}
		lo, hi, err := c.Choose(n)
		if err != nil {
			return &dataError{err}
		}
		for _, list := range lists[lo:hi] {
			for _, p := range list {
				if err := p(s); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return nil
}

// look is the number at an address, once the stream has done what it was given. What it was given
// waits for nothing that is yet to be issued, so this ends.
func (s *stream) look(addr uint64, d tensor.DType) (n int32, err error) {
	e, err := s.device.gpu.Event(false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := s.cu.Record(e); err != nil {
		return 0, err
	}
	if err := e.Await(); err != nil {
		return 0, err
	}
	seen := make([]byte, 4)
	if err := s.device.gpu.Read(addr, seen[:d.Size()]); err != nil {
		return 0, err
	}
	return int32(binary.LittleEndian.Uint32(seen)), nil
}
