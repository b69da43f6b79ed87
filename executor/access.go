package executor

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/plan"
)

// Write puts data into the slot of a leaf, once the network does not have it. No step may
// be running.
func (e *Executor) Write(b plan.Binding, data []byte) error {
	if err := fits(b.Name, e.plan.Slots[b.Slot].Bytes, data); err != nil {
		return err
	}
	return e.WriteAt(b, data, 0)
}

// WriteAt is Write of those bytes that begin at an offset.
func (e *Executor) WriteAt(b plan.Binding, data []byte, off int64) error {
	s, err := e.settled(b, data, off)
	if err != nil {
		return err
	}
	return e.memory[s.Space].Write(s.Off+off, data)
}

// Read copies the slot of a leaf, once the network does not have it. No step may be
// running.
func (e *Executor) Read(b plan.Binding, data []byte) error {
	if err := fits(b.Name, e.plan.Slots[b.Slot].Bytes, data); err != nil {
		return err
	}
	return e.ReadAt(b, data, 0)
}

// ReadAt is Read of those bytes that begin at an offset.
func (e *Executor) ReadAt(b plan.Binding, data []byte, off int64) error {
	s, err := e.settled(b, data, off)
	if err != nil {
		return err
	}
	return e.memory[s.Space].Read(s.Off+off, data)
}

// settled is the slot of a leaf, which has bytes at an offset, and which the network does not have.
func (e *Executor) settled(b plan.Binding, data []byte, off int64) (plan.Slot, error) {
	s := e.plan.Slots[b.Slot]
	if off < 0 || int64(len(data)) > s.Bytes-off {
		return s, fmt.Errorf("%s has no %d bytes at %d: it has %d", b.Name, len(data), off, s.Bytes)
	}
	return s, e.Settle(context.Background(), b.Name)
}

// Fetch copies a fetched value into data, after a run.
func (e *Executor) Fetch(f plan.Fetch, data []byte) error {
	if err := fits(f.Value, f.Type.Bytes(), data); err != nil {
		return err
	}
	s := e.plan.Slots[f.Ref.Slot]
	return e.memory[s.Space].Read(s.Off+f.Ref.Off, data)
}

// fits reports data of another size than what it is for.
func fits(name string, bytes int64, data []byte) error {
	if int64(len(data)) != bytes {
		return fmt.Errorf("%s has %d bytes, not %d", name, bytes, len(data))
	}
	return nil
}
