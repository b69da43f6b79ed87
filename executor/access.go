package executor

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/plan"
)

// Write puts data into the slot of a leaf, once the network does not have it. No step may
// be running.
func (e *Executor) Write(b plan.Binding, data []byte) error {
	s := e.plan.Slots[b.Slot]
	if err := fits(b.Name, s.Bytes, data); err != nil {
		return err
	}
	if err := e.Settle(context.Background(), b.Name); err != nil {
		return err
	}
	return e.memory[s.Space].Write(s.Off, data)
}

// Read copies the slot of a leaf, once the network does not have it. No step may be
// running.
func (e *Executor) Read(b plan.Binding, data []byte) error {
	s := e.plan.Slots[b.Slot]
	if err := fits(b.Name, s.Bytes, data); err != nil {
		return err
	}
	if err := e.Settle(context.Background(), b.Name); err != nil {
		return err
	}
	return e.memory[s.Space].Read(s.Off, data)
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
