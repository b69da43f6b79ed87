//go:build linux && amd64 && !nocuda

package driver

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// NVRTC's functions.
const (
	nvrtcVersion = iota
	nvrtcGetErrorString
	nvrtcCreateProgram
	nvrtcDestroyProgram
	nvrtcCompileProgram
	nvrtcGetProgramLogSize
	nvrtcGetProgramLog
	nvrtcGetCUBINSize
	nvrtcGetCUBIN
	nvrtcGetPTXSize
	nvrtcGetPTX
	nvrtcGetNumSupportedArchs
	nvrtcGetSupportedArchs
)

func nvrtcSymbols() []string {
	return []string{
		nvrtcVersion:              "nvrtcVersion",
		nvrtcGetErrorString:       "nvrtcGetErrorString",
		nvrtcCreateProgram:        "nvrtcCreateProgram",
		nvrtcDestroyProgram:       "nvrtcDestroyProgram",
		nvrtcCompileProgram:       "nvrtcCompileProgram",
		nvrtcGetProgramLogSize:    "nvrtcGetProgramLogSize",
		nvrtcGetProgramLog:        "nvrtcGetProgramLog",
		nvrtcGetCUBINSize:         "nvrtcGetCUBINSize",
		nvrtcGetCUBIN:             "nvrtcGetCUBIN",
		nvrtcGetPTXSize:           "nvrtcGetPTXSize",
		nvrtcGetPTX:               "nvrtcGetPTX",
		nvrtcGetNumSupportedArchs: "nvrtcGetNumSupportedArchs",
		nvrtcGetSupportedArchs:    "nvrtcGetSupportedArchs",
	}
}

// Compiler is NVRTC for one GPU.
type Compiler struct {
	Version string   // "13.0"
	Path    string   // of the library
	Options []string // that everything is compiled with
	Log     string   // what the compiler said of what it compiled last
	lib     *library
	ptx     bool // the GPU is newer than the compiler: the driver translates for it
}

// Compiler loads the compiler. The error is a *[MissingError] or an *[OldError], or
// the compiler's own.
func (g *GPU) Compiler() (*Compiler, error) {
	return g.options.Compiler(g.Version, g.Capability)
}

// Compiler loads the compiler that suits a driver's version, 13000 is 13.0, for GPUs of a compute
// capability, 90 is 9.0. It needs neither driver nor GPU. Errors are those of [GPU.Compiler].
func (o Options) Compiler(driver, capability int) (*Compiler, error) {
	lib, err := source{what: "CUDA compiler", names: versions("libnvrtc", driver),
		beside: "libnvrtc-builtins", symbols: nvrtcSymbols()}.load(o)
	if err != nil {
		return nil, err
	}
	c := &Compiler{lib: lib, Path: lib.path}
	architecture, err := c.architecture(capability)
	if err != nil {
		return nil, err
	}
	c.Options = []string{"--gpu-architecture=" + architecture, "--std=c++17",
		// no more than one rounding an operation, and no fewer numbers
		"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"}
	var major, minor int32
	err = c.do(nvrtcVersion, uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor)))
	c.Version = fmt.Sprintf("%d.%d", major, minor)
	return c, err
}

// architecture is what to compile for: machine code of a GPU, or the newest virtual one that the
// compiler knows where the GPU is newer. One that is older than all that it knows is an error.
func (c *Compiler) architecture(capability int) (string, error) {
	var n int32
	if err := c.do(nvrtcGetNumSupportedArchs, uintptr(unsafe.Pointer(&n))); err != nil {
		return "", err
	}
	known := make([]int32, max(n, 1))
	if err := c.do(nvrtcGetSupportedArchs,
		uintptr(unsafe.Pointer(unsafe.SliceData(known)))); err != nil {
		return "", err
	}
	slices.Sort(known)
	if slices.Contains(known, int32(capability)) {
		return fmt.Sprintf("sm_%d", capability), nil
	}
	slices.Reverse(known)
	for _, k := range known {
		if int(k) < capability {
			c.ptx = true
			return fmt.Sprintf("compute_%d", k), nil
		}
	}
	return "", fmt.Errorf("%s compiles for GPUs of compute capability %.1f or newer, this one has "+
		"%.1f", c.Path, float64(slices.Min(known))/10, float64(capability)/10)
}

//go:uintptrescapes
func (c *Compiler) do(fn int, args ...uintptr) error {
	code := int32(call(c.lib.fn[fn], args...))
	if code == 0 {
		return nil
	}
	return &Error{Func: nvrtcSymbols()[fn], Code: code,
		Name: goString(call(c.lib.fn[nvrtcGetErrorString], word(code)))}
}

// Compile makes machine code of CUDA C++, or PTX, which the driver takes as well. The error of a
// source that does not compile has the compiler's log.
func (c *Compiler) Compile(source, name string) (cubin []byte, err error) {
	var program uintptr
	if err := c.do(nvrtcCreateProgram, uintptr(unsafe.Pointer(&program)),
		uintptr(unsafe.Pointer(cString(source))), uintptr(unsafe.Pointer(cString(name))),
		0, 0, 0); err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, c.do(nvrtcDestroyProgram, uintptr(unsafe.Pointer(&program))))
	}()
	options := make([]*byte, len(c.Options))
	for i, o := range c.Options {
		options[i] = cString(o)
	}
	err = c.do(nvrtcCompileProgram, program, word(len(options)),
		uintptr(unsafe.Pointer(unsafe.SliceData(options))))
	runtime.KeepAlive(options)
	c.Log = c.log(program)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Text = c.Log
		return nil, e
	}
	sizeOf, get := nvrtcGetCUBINSize, nvrtcGetCUBIN
	if c.ptx {
		sizeOf, get = nvrtcGetPTXSize, nvrtcGetPTX
	}
	var size uint64
	if err := c.do(sizeOf, program, uintptr(unsafe.Pointer(&size))); err != nil {
		return nil, err
	}
	cubin = make([]byte, size)
	return cubin, c.do(get, program,
		uintptr(unsafe.Pointer(unsafe.SliceData(cubin))))
}

// log is what the compiler said; nothing if it does not say.
func (c *Compiler) log(program uintptr) string {
	var size uint64
	if c.do(nvrtcGetProgramLogSize, program, uintptr(unsafe.Pointer(&size))) != nil {
		return ""
	}
	text := make([]byte, size+1)
	if c.do(nvrtcGetProgramLog, program,
		uintptr(unsafe.Pointer(unsafe.SliceData(text)))) != nil {
		return ""
	}
	return trimmed(text)
}
