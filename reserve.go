package gomem

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/plan/space"
)

// reserved is a multiple of what memory is kept in: what a process takes of a GPU varies by less
// from one run to the next, so that plans do not.
const reserved = 16 << 20

// kept is bytes up to a multiple of it.
func kept(bytes int64) int64 { return (bytes + reserved - 1) / reserved * reserved }

// Reserve measures what a process takes of a GPU's memory before it has plans, and is the bytes of
// a budget that are to be kept for that: as much, and an eighth of it for what is loaded only when
// there are plans, such as kernels of chains, and those of libraries for shapes. It opens the GPU
// and closes it. Of other devices, and where there is no GPU, it is 0.
func Reserve(o Options) (int64, error) {
	number, ok := GPU(o.Device)
	if !ok {
		return 0, nil
	}
	c := o.cuda(number)
	c.Listener = nil
	taken, err := cuda.Measure(c, o.Streams)
	if errors.Is(err, cuda.ErrNone) {
		return 0, nil // who opens it says so
	}
	if err != nil {
		return 0, fmt.Errorf("gomem: %w", gpuMemory(err))
	}
	return kept(taken + taken/8), nil
}

// ErrReserve says that a GPU's context, kernels and libraries take more of a device's budget than
// plans leave them. Open's errors wrap it, before the first step.
type ErrReserve struct {
	Budget   int64 // of the device, in bytes
	Plans    int64 // bytes of it that plans and products have
	Taken    int64 // bytes that are taken beside
	Reserved int64 // bytes that plans were to leave
}

// Error is one line.
func (e *ErrReserve) Error() string {
	return fmt.Sprintf("the GPU's context, kernels and libraries take %d bytes, and plans leave "+
		"%d of a budget of %d: plan with Options.ReserveBytes of %d", e.Taken, e.Budget-e.Plans,
		e.Budget, e.Enough())
}

// Enough are the bytes to reserve with which plans leave what was taken.
func (e *ErrReserve) Enough() int64 { return kept(e.Taken) }

// ready has a device try what its tasks are made of, and refuses what it has taken beside plans, if
// they leave less of its budget.
func ready(d device.Device, p *Planned, o Options) error {
	if d, ok := d.(device.Trier); ok {
		if err := d.Try(); err != nil {
			return err
		}
	}
	a, ok := d.(device.Accountant)
	if !ok {
		return nil
	}
	e := ErrReserve{Budget: o.DeviceBytes, Reserved: o.ReserveBytes,
		Plans: p.Peak(space.Device) + workspaces(p.Results)}
	var err error
	if e.Taken, err = a.Beside(); err != nil || e.Budget == 0 || e.Plans+e.Taken <= e.Budget {
		return err
	}
	return &e
}
