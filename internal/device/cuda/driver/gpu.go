//go:build linux && amd64 && !nocuda

package driver

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// GPU is one GPU with its primary context, the one that NVIDIA's libraries use too.
type GPU struct {
	*Driver
	Name       string
	Bus        string // its PCI address, "0000:3B:00.0"
	Memory     int64  // bytes
	Capability int    // 90 is 9.0
	Units      int    // multiprocessors
	Copiers    int    // copy engines
	Shared     int    // bytes of shared memory that a block can ask for
	Threads    int    // that a multiprocessor has at once

	ordinal int32
	context uintptr
}

// Open opens a GPU by its number, from 0. Close it.
func (d *Driver) Open(number int) (*GPU, error) {
	g, err := d.Look(number)
	if err != nil {
		return nil, err
	}
	if err := d.do(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&g.context)),
		word(g.ordinal)); err != nil {
		return nil, err
	}
	return g, nil
}

// Look describes a GPU by its number, from 0, without taking anything of it: what needs a
// context fails.
func (d *Driver) Look(number int) (*GPU, error) {
	g := &GPU{Driver: d}
	count, err := d.Count()
	if err != nil {
		return nil, err
	}
	if number < 0 || number >= count {
		return nil, fmt.Errorf("no GPU %d: the machine has %d", number, count)
	}
	if err := d.do(cuDeviceGet, uintptr(unsafe.Pointer(&g.ordinal)), word(number)); err != nil {
		return nil, err
	}
	return g, g.describe()
}

// describe asks for what a GPU is.
func (g *GPU) describe() error {
	var name [256]byte
	if err := g.do(cuDeviceGetName, uintptr(unsafe.Pointer(&name)), word(len(name)),
		word(g.ordinal)); err != nil {
		return err
	}
	g.Name = trimmed(name[:])
	var bus [32]byte
	if err := g.do(cuDeviceGetPCIBusID, uintptr(unsafe.Pointer(&bus)), word(len(bus)),
		word(g.ordinal)); err != nil {
		return err
	}
	g.Bus = trimmed(bus[:])
	if err := g.do(cuDeviceTotalMem, uintptr(unsafe.Pointer(&g.Memory)),
		word(g.ordinal)); err != nil {
		return err
	}
	var major, minor int
	for _, a := range []struct {
		id uintptr
		to *int
	}{
		{attributeMajor, &major}, {attributeMinor, &minor}, {attributeUnits, &g.Units},
		{attributeCopiers, &g.Copiers}, {attributeShared, &g.Shared},
		{attributeThreads, &g.Threads}} {
		var v int32
		if err := g.do(cuDeviceGetAttribute, uintptr(unsafe.Pointer(&v)), a.id,
			word(g.ordinal)); err != nil {
			return err
		}
		*a.to = int(v)
	}
	g.Capability = major*10 + minor
	return nil
}

// Bind ties the calling goroutine to its thread and makes the GPU's context current there,
// until unbind is called. Bindings do not nest. After an error nothing is bound.
func (g *GPU) Bind() (unbind func(), err error) {
	runtime.LockOSThread()
	if err := g.do(cuCtxSetCurrent, g.context); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() {
		// a GPU that has failed says so here, too: whoever used it knows
		call(g.lib.fn[cuCtxSetCurrent], 0)
		runtime.UnlockOSThread()
	}, nil
}

// Bound calls a function on a thread where the GPU's context is current.
func (g *GPU) Bound(f func() error) error {
	unbind, err := g.Bind()
	if err != nil {
		return err
	}
	defer unbind()
	return f()
}

// Reach has copies of this GPU's, which is bound, read the memory of another one directly, until
// its context ends.
func (g *GPU) Reach(other *GPU) error {
	if other.context == g.context {
		return nil // it is this one
	}
	code := int32(call(g.lib.fn[cuCtxEnablePeerAccess], other.context, 0))
	if code == 0 || code == peerEnabled {
		return nil
	}
	return g.fail(cuCtxEnablePeerAccess, code)
}

// Close gives the context back. Nothing made of the GPU may be used after it.
func (g *GPU) Close() error { return g.do(cuDevicePrimaryCtxRelease, word(g.ordinal)) }

// Sync waits for all that the GPU was given.
func (g *GPU) Sync() error { return g.do(cuCtxSynchronize) }

// Free is the free and total bytes of the GPU's memory.
func (g *GPU) Free() (free, total int64, err error) {
	err = g.do(cuMemGetInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return free, total, err
}

// Alloc takes so many bytes of the GPU's memory, at least one, and returns the address.
func (g *GPU) Alloc(bytes int64) (addr uint64, err error) {
	taken.Lock()
	defer taken.Unlock()
	err = g.do(cuMemAlloc, uintptr(unsafe.Pointer(&addr)), word(bytes))
	if err == nil {
		taken.bytes[allocation{g.ordinal, addr}] = bytes
	}
	return addr, err
}

// Release gives back what Alloc took.
func (g *GPU) Release(addr uint64) error {
	taken.Lock() // what the GPU was given ends without anybody's help
	defer taken.Unlock()
	delete(taken.bytes, allocation{g.ordinal, addr})
	return g.do(cuMemFree, uintptr(addr))
}

// allocation is what Alloc took.
type allocation struct {
	ordinal int32
	addr    uint64
}

// taken are the bytes of what was not given back. NVML knows nothing smaller than a process, and
// the driver has one context of a GPU in it, however often libraries are loaded and GPUs opened: so
// this is the process's, too. It is held while it changes, with the GPU's own account.
var taken = struct {
	sync.Mutex
	bytes map[allocation]int64
}{bytes: map[allocation]int64{}}

// Allocated is how many bytes of the GPU's memory this process has by Alloc, when a function that
// asks for all that is taken was called.
func (g *GPU) Allocated(ask func() error) (total int64, err error) {
	taken.Lock()
	defer taken.Unlock()
	err = ask()
	for a, bytes := range taken.bytes {
		if a.ordinal == g.ordinal {
			total += bytes
		}
	}
	return total, err
}

// Pin locks pages of ordinary memory, which must not be the Go heap's, so that the GPU
// copies from and to them at full speed and while others compute.
func (g *GPU) Pin(b []byte) error {
	return g.do(cuMemHostRegister, uintptr(unsafe.Pointer(unsafe.SliceData(b))), word(len(b)),
		portable) // for every context
}

// Unpin undoes Pin.
func (g *GPU) Unpin(b []byte) error {
	return g.do(cuMemHostUnregister, uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// Write copies data to an address and waits until it is there.
func (g *GPU) Write(addr uint64, data []byte) error {
	if err := g.do(cuMemcpyHtoD, uintptr(addr), uintptr(unsafe.Pointer(unsafe.SliceData(data))),
		word(len(data))); err != nil {
		return err
	}
	return g.Sync() // the call may return with bytes on their way
}

// Read copies bytes from an address.
func (g *GPU) Read(addr uint64, data []byte) error {
	return g.do(cuMemcpyDtoH, uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(addr),
		word(len(data)))
}

// Clear zeroes bytes and waits until they are.
func (g *GPU) Clear(addr uint64, bytes int64) error { return g.set(addr, 0, bytes) }

// Blank makes bytes NaNs and waits until they are.
func (g *GPU) Blank(addr uint64, bytes int64) error { return g.set(addr, 0xff, bytes) }

func (g *GPU) set(addr uint64, x byte, bytes int64) error {
	if err := g.do(cuMemsetD8, uintptr(addr), uintptr(x), word(bytes)); err != nil {
		return err
	}
	return g.Sync()
}
