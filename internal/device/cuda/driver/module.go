//go:build linux && amd64 && !nocuda

package driver

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// Module is machine code that is loaded.
type Module struct {
	gpu    *GPU
	handle uintptr
}

// Load loads what [Compiler.Compile] made.
func (g *GPU) Load(cubin []byte) (*Module, error) {
	m := &Module{gpu: g}
	cubin = append(slices.Clip(cubin), 0) // the driver reads what is no machine code to its end
	return m, g.do(cuModuleLoadData, uintptr(unsafe.Pointer(&m.handle)),
		uintptr(unsafe.Pointer(unsafe.SliceData(cubin))))
}

// Close unloads it.
func (m *Module) Close() error { return m.gpu.do(cuModuleUnload, m.handle) }

// Kernel is a function of a module.
type Kernel struct {
	gpu    *GPU
	name   string
	handle uintptr
}

// Kernel is the function that the source declares extern "C" under a name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	k := &Kernel{gpu: m.gpu, name: name}
	if err := m.gpu.do(cuModuleGetFunction, uintptr(unsafe.Pointer(&k.handle)), m.handle,
		uintptr(unsafe.Pointer(cString(name)))); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	return k, nil
}

// freeShared is the bytes of dynamic shared memory that a kernel may have without asking.
const freeShared = 48 << 10

// Allow lets launches of the kernel have so many bytes of dynamic shared memory.
func (k *Kernel) Allow(shared uint32) error {
	if shared <= freeShared {
		return nil
	}
	if err := k.gpu.do(cuFuncSetAttribute, k.handle, maxDynamicShared,
		uintptr(shared)); err != nil {
		return fmt.Errorf("kernel %s: %d bytes of shared memory: %w", k.name, shared, err)
	}
	return nil
}

// Local is the bytes of the GPU's memory that each thread of the kernel has for itself. The driver
// takes as much for all threads that the GPU has at once, by the first launch at the latest.
func (k *Kernel) Local() (int64, error) {
	var v int32
	if err := k.gpu.do(cuFuncGetAttribute, uintptr(unsafe.Pointer(&v)), localSize,
		k.handle); err != nil {
		return 0, fmt.Errorf("kernel %s: %w", k.name, err)
	}
	return int64(v), nil
}

// Launch is a kernel with all that it is launched with, prepared once for many launches.
type Launch struct {
	kernel *Kernel
	args   []byte
	size   uint64
	extra  [5]uintptr
	words  [11]uintptr // arguments of cuLaunchKernel
}

// Prepare makes a launch. args are the packed arguments.
func (k *Kernel) Prepare(grid, block [3]uint32, shared uint32, args []byte) *Launch {
	l := &Launch{kernel: k, args: args, size: uint64(len(args))}
	// Go's heap does not move, and l keeps alive what these are the addresses of.
	l.extra = [5]uintptr{paramBufferPointer,
		uintptr(unsafe.Pointer(unsafe.SliceData(args))), paramBufferSize,
		uintptr(unsafe.Pointer(&l.size)), paramEnd}
	l.words = [11]uintptr{0: k.handle, 7: uintptr(shared),
		10: uintptr(unsafe.Pointer(&l.extra))}
	for i := range 3 {
		l.words[1+i], l.words[4+i] = uintptr(grid[i]), uintptr(block[i])
	}
	return l
}

// Launch gives a launch to the stream. One launch is given by one goroutine at a time.
func (s *Stream) Launch(l *Launch) error {
	l.words[8] = s.handle
	code := int32(call(s.gpu.lib.fn[cuLaunchKernel], l.words[:]...))
	runtime.KeepAlive(l)
	if code != 0 {
		return fmt.Errorf("kernel %s: %w", l.kernel.name, s.gpu.fail(cuLaunchKernel, code))
	}
	return nil
}
