//go:build linux && amd64 && !nocuda

package driver

import (
	"math"
	"os"
	"unsafe"
)

// NVML's functions.
const (
	nvmlInit = iota
	nvmlShutdown
	nvmlErrorString
	nvmlDeviceGetHandleByPCIBusID
	nvmlDeviceGetComputeRunningProcesses
)

func nvmlSymbols() []string {
	return []string{
		nvmlInit:                             "nvmlInit_v2",
		nvmlShutdown:                         "nvmlShutdown",
		nvmlErrorString:                      "nvmlErrorString",
		nvmlDeviceGetHandleByPCIBusID:        "nvmlDeviceGetHandleByPciBusId_v2",
		nvmlDeviceGetComputeRunningProcesses: "nvmlDeviceGetComputeRunningProcesses_v3",
	}
}

// Monitor is the library that nvidia-smi shows by who has the memory of a GPU.
type Monitor struct {
	lib    *library
	handle uintptr // of the GPU
}

// process is nvmlProcessInfo_v2_t.
type process struct {
	pid                 uint32
	bytes               uint64
	instance, computing uint32 // of a GPU that is divided
}

// OpenMonitor starts the library for a GPU. Close it. The error is a *[MissingError] where there is
// none, an *[OldError] or an *[Error].
func OpenMonitor(g *GPU) (*Monitor, error) {
	lib, err := source{what: "NVML", names: []string{"libnvidia-ml.so.1"},
		symbols: nvmlSymbols()}.load(g.options)
	if err != nil {
		return nil, err
	}
	m := &Monitor{lib: lib}
	if err := m.do(nvmlInit); err != nil {
		return nil, err
	}
	if err := m.do(nvmlDeviceGetHandleByPCIBusID, uintptr(unsafe.Pointer(cString(g.Bus))),
		uintptr(unsafe.Pointer(&m.handle))); err != nil {
		call(lib.fn[nvmlShutdown])
		return nil, err
	}
	return m, nil
}

// Close ends what OpenMonitor has started.
func (m *Monitor) Close() error { return m.do(nvmlShutdown) }

// Process is what this process has of the GPU's memory, in bytes: its context, what was loaded, and
// all that it took. known is false where the library does not list it, as in a container that has
// numbers of processes of its own.
func (m *Monitor) Process() (bytes int64, known bool, err error) {
	list, err := m.processes()
	for _, p := range list {
		if p.pid == uint32(os.Getpid()) && p.bytes != math.MaxUint64 {
			bytes, known = bytes+int64(p.bytes), true
		}
	}
	return bytes, known, err
}

// processes are those that have contexts on the GPU. There may be more of them by the next call.
func (m *Monitor) processes() ([]process, error) {
	for room := uint32(1); ; room *= 2 {
		list, n := make([]process, room), room
		err := m.do(nvmlDeviceGetComputeRunningProcesses, m.handle, uintptr(unsafe.Pointer(&n)),
			uintptr(unsafe.Pointer(unsafe.SliceData(list))))
		if e, ok := err.(*Error); ok && e.Code == insufficientSize && room < 1<<16 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return list[:min(n, room)], nil
	}
}

//go:uintptrescapes
func (m *Monitor) do(fn int, args ...uintptr) error {
	if code := int32(call(m.lib.fn[fn], args...)); code != 0 {
		return &Error{Func: nvmlSymbols()[fn], Code: code,
			Name: goString(call(m.lib.fn[nvmlErrorString], word(code)))}
	}
	return nil
}
