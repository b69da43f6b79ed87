package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
)

// keeping has plans leave of a device's budget what a GPU's context, kernels and libraries take: as
// much as is said, or as they take here. It refuses flags that keep nothing, or leave no plan any.
func (f *planFlags) keeping(e *env, device string, interpret bool) (err error) {
	said, none := f.DeviceReserve > 0, []string{"", gomem.CPU, gomem.Null}
	switch {
	case said && slices.Contains(none, device):
		return usagef("--device-reserve %s: it is of a GPU's memory, and --device %s is none: "+
			"leave it out, or use --device %s", size(int64(f.DeviceReserve)), device, gomem.CUDA)
	case said:
		f.reserved = int64(f.DeviceReserve)
	default:
		if f.reserved, err = gomem.Reserve(gomem.Options{Device: device, Streams: int(f.Streams),
			InterpretChains: interpret, Logger: e.log}); err != nil {
			return err
		}
	}
	if b := f.beside(device); f.DeviceBytes > 0 && b >= int64(f.DeviceBytes) {
		return usagef("--device-memory %s: the GPU's context, kernels and libraries take %s, and "+
			"matrix products %s: want more than %s", size(int64(f.DeviceBytes)), size(f.reserved),
			size(b-f.reserved), exact(b))
	}
	return nil
}

// beside is what no plan has of a device's budget.
func (f *planFlags) beside(device string) int64 {
	return gomem.Options{Device: device, Streams: int(f.Streams), ReserveBytes: f.reserved}.Beside()
}

// full is the refusal of a GPU with too little memory, with what would help as flags.
type full struct {
	error
	text string
}

// Error is one line.
func (f full) Error() string { return f.text }

// Unwrap is the library's error.
func (f full) Unwrap() error { return f.error }

// onGPU adds to the refusal of a GPU with too little memory what would help, once.
func onGPU(err error) error {
	if _, ok := errors.AsType[full](err); ok {
		return err
	}
	if _, ok := errors.AsType[*gomem.ErrGPUMemory](err); ok {
		return full{err, fmt.Sprintf("%v: end what else uses it, lower --device-memory, or use "+
			"--device %s", err, gomem.CPU)}
	}
	if e, ok := errors.AsType[*gomem.ErrReserve](err); ok {
		return full{err, fmt.Sprintf("the GPU's context, kernels and libraries take %s, and plans "+
			"leave %s of --device-memory %s: with --device-reserve %dMiB they leave enough, or "+
			"say which budget would", exact(e.Taken), size(e.Budget-e.Plans), size(e.Budget),
			e.Enough()>>20)}
	}
	return err
}
