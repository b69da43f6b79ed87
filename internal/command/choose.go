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
