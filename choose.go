package gomem

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/internal/device/cuda"
)

// Choice is a device that was chosen.
type Choice struct {
	Device string // [CUDA] or [CPU]: for Options.Device
	GPU    string // the GPU's name
	// Why a GPU of this machine, or its driver, cannot be used, in one line; nil where one
	// was chosen, or there is none.
	Why error
}

// ErrGPUMemory says that a GPU has too little memory left for what a session takes. Open's
// errors wrap it.
type ErrGPUMemory struct {
	GPU   string // its name
	Bytes int64  // asked for
	Free  int64  // bytes; -1: that is not known, for there is too little for a context
	Total int64  // bytes

	err error
}

// Error is one line.
func (e *ErrGPUMemory) Error() string {
	if e.err == nil { // of no device
		return fmt.Sprintf("%s has %d of %d bytes free, and %d are needed", e.GPU, e.Free, e.Total,
			e.Bytes)
	}
	return e.err.Error()
}

// Unwrap is the device's error.
func (e *ErrGPUMemory) Unwrap() error { return e.err }

// gpuMemory is an error of a device, for callers to tell whether memory is what is missing.
func gpuMemory(err error) error {
	if e, ok := errors.AsType[*cuda.MemoryError](err); ok {
		return &ErrGPUMemory{GPU: e.GPU, Bytes: e.Bytes, Free: e.Free, Total: e.Total, err: err}
	}
	return err
}

// Choose is the device to run on where nobody says: the machine's first GPU, if its driver
// and libraries are there, or else the processor. Options.Device "" is always the processor,
// so that programs compute the same bits everywhere unless they ask for something else; a
// program that wants what is fastest sets it to Choose().Device. Nothing of the GPU is taken,
// and whether enough of its memory is free is not asked: Open will tell.
func Choose() Choice {
	g, err := cuda.Find(nil, 0)
	switch {
	case errors.Is(err, cuda.ErrNone):
		return Choice{Device: CPU}
	case err != nil:
		return Choice{Device: CPU, Why: err}
	case g.Why != "":
		return Choice{Device: CPU, Why: fmt.Errorf("%s: %s", g.Name, g.Why)}
	}
	return Choice{Device: CUDA, GPU: g.Name}
}

// ShareGPUs is [CUDA] for one of several processes of a machine, by its number among them, from 0:
// the GPUs are dealt out in turn, so that each process has one of its own if there are enough.
func ShareGPUs(process int) string {
	n, err := cuda.Count(nil)
	if err != nil || n == 0 || process%n == 0 {
		return CUDA // where there is none, Open says why
	}
	return fmt.Sprintf("%s:%d", CUDA, process%n)
}

// FindGPU describes the GPU that a device's name says, as [GPUs] does but for the memory that
// is free, without taking anything of it.
func FindGPU(device string) (GPUInfo, error) {
	n, ok := GPU(device)
	if !ok {
		return GPUInfo{}, fmt.Errorf("device %s is no GPU", device)
	}
	g, err := cuda.Find(nil, n)
	return GPUInfo(g), err
}

// Reach reports whether some devices of this process, as of [Several], reach each other's memory,
// so that what workers exchange before updates may go from device to device: GPUs that the driver
// says so of, and the processor several times.
func Reach(devices []string) bool {
	var numbers []int
	for _, name := range devices {
		if number, gpu := GPU(name); gpu {
			numbers = append(numbers, number)
		} else if name != CPU {
			return false
		}
	}
	if len(numbers) == 0 {
		return len(devices) > 1
	}
	reach, err := cuda.Reach(nil, numbers)
	return err == nil && reach && len(numbers) == len(devices) && len(devices) > 1
}

// Several are the devices of a list: GPUs, as in "cuda:0,1" or "cuda:0,cuda:1", or the processor
// several times, as in "cpu,cpu", so that there are lists without GPUs. A name of one device is a
// list of itself. The error says what makes no list.
func Several(list string) ([]string, error) {
	words := strings.Split(list, ",")
	if len(words) == 1 || strings.HasPrefix(list, Sim) { // a file's name may have commas
		return []string{list}, nil
	}
	var devices []string
	_, gpus := GPU(words[0])
	for _, word := range words {
		if _, err := strconv.ParseUint(word, 10, 16); err == nil && gpus {
			word = CUDA + ":" + word
		}
		number, gpu := GPU(word)
		if gpu {
			word = fmt.Sprintf("%s:%d", CUDA, number)
		}
		switch {
		case !gpu && word != CPU:
			return nil, fmt.Errorf("device %.60q of %.60q: want a list such as %s:0,1, or %s,%s",
				word, list, CUDA, CPU, CPU)
		case gpu != gpus:
			return nil, fmt.Errorf("devices %.60q: GPUs and the processor round otherwise; want "+
				"one kind, such as %s:0,1", list, CUDA)
		case gpu && slices.Contains(devices, word):
			return nil, fmt.Errorf("devices %.60q: %s is there twice; each has a worker of its own",
				list, word)
		}
		devices = append(devices, word)
	}
	return devices, nil
}
