package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/train"
)

// onto is the device that a flag says or, if it says none, the one that gomem chooses. Where a
// GPU is there that cannot be used, that is said.
func (e *env) onto(flag string) string {
	if flag != "" {
		return flag
	}
	c := gomem.Choose()
	if c.Why != nil {
		fmt.Fprintf(e.stderr, "gomem: warning: on %s, for the GPU cannot be used: %v\n", c.Device,
			c.Why)
	}
	return c.Device
}

// settle names the device of a run that says none. One that is resumed goes on where it was,
// as far as the machine has that, so that its bits stay; one of several workers is on the
// processor, for all of them must round alike, unless it is to be on GPUs: then those of a machine
// are dealt out to its workers.
func (f *deviceFlags) settle(e *env, w World, resumed location) {
	if f.Device == gomem.CUDA && w.Size > 1 {
		f.Device = gomem.ShareGPUs(w.Local)
	}
	if f.Device != "" {
		return
	}
	if w.Size > 1 || resumed != "" && !ranOnGPU(string(resumed)) {
		f.Device = gomem.CPU
		return
	}
	f.Device = e.onto("")
}

// ranOnGPU reports whether the run of a checkpoint was on a GPU. One that cannot be read is an
// error later.
func ranOnGPU(path string) bool {
	x, err := train.Inspect(path)
	return err == nil && strings.HasPrefix(x.Machine, gomem.CUDA)
}

// keeping has plans leave of a device's budget what a GPU's context, kernels and libraries take: as
// much as is said, or as they take here.
func (f *planFlags) keeping(e *env, device string, interpret bool) (err error) {
	if f.reserved = int64(f.DeviceReserve); f.reserved == 0 {
		f.reserved, err = gomem.Reserve(gomem.Options{Device: device, Streams: int(f.Streams),
			InterpretChains: interpret, Logger: e.log})
	}
	return onGPU(err)
}

// beside is what no plan has of a device's budget.
func (f *planFlags) beside(device string) int64 {
	return gomem.Options{Device: device, Streams: int(f.Streams), ReserveBytes: f.reserved}.Beside()
}

// unreserved is the refusal of a GPU that has taken more than plans leave, as flags.
type unreserved struct{ *gomem.ErrReserve }

// Error is one line.
func (u unreserved) Error() string {
	return fmt.Sprintf("the GPU's context, kernels and libraries take %s, and plans leave %s of "+
		"--device-memory %s: with --device-reserve %dMiB they leave enough, or say which budget "+
		"would", exact(u.Taken), size(u.Budget-u.Plans), size(u.Budget), u.Enough()>>20)
}

// Unwrap is the library's error.
func (u unreserved) Unwrap() error { return u.ErrReserve }

// onGPU adds to the refusal of a GPU with too little memory what would help.
func onGPU(err error) error {
	if _, ok := errors.AsType[*gomem.ErrGPUMemory](err); ok {
		return fmt.Errorf("%w: end what else uses it, lower --device-memory, or use --device cpu",
			err)
	}
	if e, ok := errors.AsType[*gomem.ErrReserve](err); ok {
		return unreserved{e}
	}
	return err
}

// failedOnGPU reports whether an error is that of a step on a GPU.
func failedOnGPU(device string, err error) bool {
	_, gpu := gomem.GPU(device)
	_, failed := errors.AsType[*gomem.StepError](err)
	return gpu && failed
}

// gpuFact says on which GPU a run is; nothing of other devices.
func gpuFact(device string) string {
	if _, ok := gomem.GPU(device); !ok {
		return ""
	}
	g, err := gomem.FindGPU(device)
	if err != nil { // who opens it says so
		return device
	}
	return fmt.Sprintf("%s: %s of %s, %s, %s", device, g.Name, size(g.Memory), g.Driver,
		g.Products)
}
