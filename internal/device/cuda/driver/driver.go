//go:build linux && amd64 && !nocuda

package driver

import (
	"fmt"
	"unsafe"
)

// The driver's functions.
const (
	cuInit = iota
	cuDriverGetVersion
	cuGetErrorName
	cuGetErrorString
	cuDeviceGet
	cuDeviceGetCount
	cuDeviceGetName
	cuDeviceGetPCIBusID
	cuDeviceGetAttribute
	cuDeviceTotalMem
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxSetCurrent
	cuCtxSynchronize
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemHostRegister
	cuMemHostUnregister
	cuMemcpyHtoD
	cuMemcpyDtoH
	cuMemsetD8
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuMemcpyDtoDAsync
	cuMemcpyPeerAsync
	cuDeviceCanAccessPeer
	cuCtxEnablePeerAccess
	cuMemsetD8Async
	cuMemsetD32Async
	cuStreamCreate
	cuStreamDestroy
	cuStreamWaitEvent
	cuStreamBeginCapture
	cuStreamEndCapture
	cuGraphInstantiate
	cuGraphUpload
	cuGraphLaunch
	cuGraphExecDestroy
	cuGraphDestroy
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventQuery
	cuEventSynchronize
	cuEventElapsedTime
	cuModuleLoadData
	cuModuleUnload
	cuModuleGetFunction
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuLaunchKernel
)

// driverSymbols are their names in the library.
func driverSymbols() []string {
	return []string{
		cuInit:                    "cuInit",
		cuDriverGetVersion:        "cuDriverGetVersion",
		cuGetErrorName:            "cuGetErrorName",
		cuGetErrorString:          "cuGetErrorString",
		cuDeviceGet:               "cuDeviceGet",
		cuDeviceGetCount:          "cuDeviceGetCount",
		cuDeviceGetName:           "cuDeviceGetName",
		cuDeviceGetPCIBusID:       "cuDeviceGetPCIBusId",
		cuDeviceGetAttribute:      "cuDeviceGetAttribute",
		cuDeviceTotalMem:          "cuDeviceTotalMem_v2",
		cuDevicePrimaryCtxRetain:  "cuDevicePrimaryCtxRetain",
		cuDevicePrimaryCtxRelease: "cuDevicePrimaryCtxRelease_v2",
		cuCtxSetCurrent:           "cuCtxSetCurrent",
		cuCtxSynchronize:          "cuCtxSynchronize",
		cuMemGetInfo:              "cuMemGetInfo_v2",
		cuMemAlloc:                "cuMemAlloc_v2",
		cuMemFree:                 "cuMemFree_v2",
		cuMemHostRegister:         "cuMemHostRegister_v2",
		cuMemHostUnregister:       "cuMemHostUnregister",
		cuMemcpyHtoD:              "cuMemcpyHtoD_v2",
		cuMemcpyDtoH:              "cuMemcpyDtoH_v2",
		cuMemsetD8:                "cuMemsetD8_v2",
		cuMemcpyHtoDAsync:         "cuMemcpyHtoDAsync_v2",
		cuMemcpyDtoHAsync:         "cuMemcpyDtoHAsync_v2",
		cuMemcpyDtoDAsync:         "cuMemcpyDtoDAsync_v2",
		cuMemcpyPeerAsync:         "cuMemcpyPeerAsync",
		cuDeviceCanAccessPeer:     "cuDeviceCanAccessPeer",
		cuCtxEnablePeerAccess:     "cuCtxEnablePeerAccess",
		cuMemsetD8Async:           "cuMemsetD8Async",
		cuMemsetD32Async:          "cuMemsetD32Async",
		cuStreamCreate:            "cuStreamCreate",
		cuStreamDestroy:           "cuStreamDestroy_v2",
		cuStreamWaitEvent:         "cuStreamWaitEvent",
		cuStreamBeginCapture:      "cuStreamBeginCapture_v2",
		cuStreamEndCapture:        "cuStreamEndCapture",
		cuGraphInstantiate:        "cuGraphInstantiateWithFlags",
		cuGraphUpload:             "cuGraphUpload",
		cuGraphLaunch:             "cuGraphLaunch",
		cuGraphExecDestroy:        "cuGraphExecDestroy",
		cuGraphDestroy:            "cuGraphDestroy",
		cuEventCreate:             "cuEventCreate",
		cuEventDestroy:            "cuEventDestroy_v2",
		cuEventRecord:             "cuEventRecord",
		cuEventQuery:              "cuEventQuery",
		cuEventSynchronize:        "cuEventSynchronize",
		cuEventElapsedTime:        "cuEventElapsedTime",
		cuModuleLoadData:          "cuModuleLoadData",
		cuModuleUnload:            "cuModuleUnload",
		cuModuleGetFunction:       "cuModuleGetFunction",
		cuFuncGetAttribute:        "cuFuncGetAttribute",
		cuFuncSetAttribute:        "cuFuncSetAttribute",
		cuLaunchKernel:            "cuLaunchKernel",
	}
}

// Driver is the loaded driver.
type Driver struct {
	// Version of CUDA that the driver has: 13000 is 13.0.
	Version int
	// Path of the library, or its name if the linker found it.
	Path string

	lib     *library
	options Options
}

// oldest is the version of CUDA that a driver must have at least.
const oldest = 12000

// Load finds and starts the driver. The error is a *[MissingError], an *[OldError] or an
// *[Error].
func Load(o Options) (*Driver, error) {
	lib, err := source{what: "CUDA driver", names: []string{"libcuda.so.1"},
		symbols: driverSymbols()}.load(o)
	if err != nil {
		return nil, err
	}
	d := &Driver{lib: lib, Path: lib.path, options: o}
	if err := d.do(cuInit, 0); err != nil {
		return nil, err
	}
	var v int32
	if err := d.do(cuDriverGetVersion, uintptr(unsafe.Pointer(&v))); err != nil {
		return nil, err
	}
	if d.Version = int(v); d.Version < oldest {
		return nil, fmt.Errorf("the CUDA driver is too old: %s has CUDA %s, want %s or newer",
			lib.path, version(d.Version), version(oldest))
	}
	return d, nil
}

// String is the version of CUDA.
func (d *Driver) String() string { return "CUDA " + version(d.Version) }

// do calls a function of the driver.
//
//go:uintptrescapes
func (d *Driver) do(fn int, args ...uintptr) error {
	if code := int32(call(d.lib.fn[fn], args...)); code != 0 {
		return d.fail(fn, code)
	}
	return nil
}

// fail is the error of a function.
func (d *Driver) fail(fn int, code int32) error {
	e := &Error{Func: driverSymbols()[fn], Code: code, Name: "unknown error"}
	var name, text uintptr
	ask := func(fn int, to *uintptr) bool {
		return call(d.lib.fn[fn], word(code), uintptr(unsafe.Pointer(to))) == 0
	}
	if ask(cuGetErrorName, &name) {
		e.Name = goString(name)
	}
	if ask(cuGetErrorString, &text) {
		e.Text = goString(text)
	}
	return e
}

// Count is the number of GPUs.
func (d *Driver) Count() (int, error) {
	var n int32
	err := d.do(cuDeviceGetCount, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}
