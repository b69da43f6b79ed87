//go:build linux && amd64 && !nocuda

package driver_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	"github.com/gomem/gomem/internal/longtest"
)

const source = `
extern "C" __global__ void scale(float *y, const float *x, float a, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void reverse(float *x, int n) {
	__shared__ float s[256];
	s[threadIdx.x] = x[threadIdx.x];
	__syncthreads();
	x[threadIdx.x] = s[n - 1 - threadIdx.x];
}
extern "C" __global__ void hasty(float *x, int n) {
	__shared__ float s[256];
	s[threadIdx.x] = x[threadIdx.x];
	x[threadIdx.x] = s[n - 1 - threadIdx.x];
}
extern "C" __global__ void falls() { __trap(); }
`

var code []byte // of source, once it is compiled

// machine is an emulated GPU to which the test's goroutine is bound.
type machine struct {
	*driver.GPU
	t    *testing.T
	s    *driver.Stream
	mod  *driver.Module
	free []func() error

	unbind func() // nil once it is closed
}

func open(t *testing.T) *machine {
	t.Helper()
	d, err := driver.Load(driver.Options{Dirs: []string{emu.Dir(t)}})
	ok(t, err)
	m := &machine{t: t}
	m.GPU, err = d.Open(0)
	ok(t, err)
	m.unbind, err = m.Bind()
	ok(t, err)
	m.s, err = m.Stream()
	ok(t, err)
	t.Cleanup(m.end)
	return m
}

// end closes the machine, unless it is closed.
func (m *machine) end() {
	if m.unbind == nil {
		return
	}
	var errs []error
	for _, f := range append(m.free, m.s.Close, m.Close) {
		errs = append(errs, f())
	}
	m.unbind()
	m.unbind = nil
	if err := errors.Join(errs...); err != nil && !m.t.Failed() {
		m.t.Log("close:", err)
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// compile loads the kernels.
func (m *machine) compile() {
	m.t.Helper()
	var err error
	if code == nil {
		c, err := m.Compiler()
		ok(m.t, err)
		code, err = c.Compile(source, "test")
		ok(m.t, err)
	}
	m.mod, err = m.Load(code)
	ok(m.t, err)
	m.free = append(m.free, m.mod.Close)
}

func (m *machine) alloc(bytes int64) uint64 {
	m.t.Helper()
	p, err := m.Alloc(bytes)
	ok(m.t, err)
	m.free = append(m.free, func() error { return m.Release(p) })
	return p
}

func (m *machine) put(x []float32) uint64 {
	m.t.Helper()
	p := m.alloc(int64(4 * len(x)))
	b, err := binary.Append(nil, binary.LittleEndian, x)
	ok(m.t, err)
	ok(m.t, m.Write(p, b))
	return p
}

func (m *machine) get(p uint64, n int) []float32 {
	m.t.Helper()
	ok(m.t, m.Sync())
	b, x := make([]byte, 4*n), make([]float32, n)
	ok(m.t, m.Read(p, b))
	_, err := binary.Decode(b, binary.LittleEndian, x)
	ok(m.t, err)
	return x
}

func (m *machine) run(name string, block uint32, args ...any) error {
	m.t.Helper()
	k, err := m.mod.Kernel(name)
	ok(m.t, err)
	var buf []byte
	for _, a := range args {
		if buf, err = binary.Append(buf, binary.LittleEndian, a); err != nil {
			m.t.Fatal(err)
		}
	}
	return m.s.Launch(k.Prepare([3]uint32{1, 1, 1}, [3]uint32{block, 1, 1}, 0, buf))
}

// TestKernels: kernels are compiled, and run on what they are given.
func TestKernels(t *testing.T) {
	longtest.Skip(t)
	m := open(t)
	m.compile()
	x, y := m.put([]float32{1, 2, 3}), m.alloc(12)
	ok(t, m.run("scale", 4, y, x, float32(2), int32(3)))
	ok(t, m.run("reverse", 3, y, int32(3)))
	if got := m.get(y, 3); got[0] != 6 || got[1] != 4 || got[2] != 2 {
		t.Errorf("got %v", got)
	}
	if err := m.run("scale", 4, y, x); err != nil {
		t.Error(err)
	}
	if err := m.Sync(); err == nil || !strings.Contains(err.Error(), "takes 24 bytes") {
		t.Errorf("with too few arguments: %v", err)
	}
	if _, err := m.mod.Kernel("unheard_of"); err == nil {
		t.Error("there is a kernel that nobody wrote")
	}
}

// TestNewerGPU: for a GPU that is newer than the compiler kernels are PTX of the newest that it
// knows, which the driver takes; an older one is refused.
func TestNewerGPU(t *testing.T) {
	longtest.Skip(t)
	t.Setenv("EMU_ARCHS", "70 80")
	m := open(t)
	m.compile()
	x, y := m.put([]float32{1, 2, 3}), m.alloc(12)
	ok(t, m.run("scale", 4, y, x, float32(2), int32(3)))
	if got := m.get(y, 3); got[0] != 2 || got[1] != 4 || got[2] != 6 {
		t.Errorf("got %v", got)
	}
	c, err := m.Compiler()
	ok(t, err)
	if !slices.Contains(c.Options, "--gpu-architecture=compute_80") {
		t.Errorf("options are %q", c.Options)
	}
	t.Setenv("EMU_ARCHS", "120 100")
	if _, err = m.Compiler(); err == nil || !strings.Contains(err.Error(),
		"compiles for GPUs of compute capability 10.0 or newer, this one has 9.0") {
		t.Errorf("an older GPU: %v", err)
	}
}

// TestMissingBarrier: what lacks a barrier depends on the order of threads.
func TestMissingBarrier(t *testing.T) {
	want := map[string]bool{"reverse": true, "hasty": false}
	for name, right := range want {
		all := true
		for _, order := range []string{"0", "1", "2"} {
			t.Setenv("EMU_ORDER", order)
			t.Run(name+order, func(t *testing.T) {
				m := open(t)
				m.compile()
				x := m.put([]float32{1, 2, 3, 4})
				ok(t, m.run(name, 4, x, int32(4)))
				got := m.get(x, 4)
				all = all && got[0] == 4 && got[1] == 3 && got[2] == 2 && got[3] == 1
			})
		}
		if all != right {
			t.Errorf("%s is right in every order: %v", name, all)
		}
	}
}

// TestFault: an error of a kernel is that of every call after it, and gone with the
// context.
func TestFault(t *testing.T) {
	t.Run("fault", func(t *testing.T) {
		m := open(t)
		m.compile()
		ok(t, m.run("falls", 1))
		for range 2 {
			e, is := errors.AsType[*driver.Error](m.Sync())
			if !is || e.Name != "CUDA_ERROR_LAUNCH_FAILED" || !strings.Contains(e.Text, "trap") {
				t.Errorf("error is %v", e)
			}
		}
	})
	ok(t, open(t).Sync())
}

// TestProducts: products of all forms are those of a plain loop.
func TestProducts(t *testing.T) {
	m := open(t)
	blas, err := m.Blas()
	ok(t, err)
	p, err := blas.Products(m.s, m.alloc(1<<16), 1<<16)
	ok(t, err)
	m.free = append([]func() error{p.Close}, m.free...)
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	a, b := m.put(x), m.put(x)
	for _, batch := range []int{1, 2} {
		c := m.put([]float32{1, 1, 1, 1, 1, 1, 1, 1})
		g := &driver.Gemm{TransA: true, M: 2, N: 2, K: 3, Alpha: 2, Beta: 1, A: a, B: b, C: c,
			LdA: 3, LdB: 3, LdC: 2, Batch: batch, StrideA: 6, StrideB: 6, StrideC: 4}
		g.Prepare()
		ok(t, p.Run(g))
		ok(t, p.Run(g))
		got := m.get(c, 8)
		for z := range 2 {
			for i := range 4 {
				var want float32
				for k := range 3 {
					want += x[6*z+3*(i%2)+k] * x[6*z+3*(i/2)+k]
				}
				if want = 4*want + 1; z >= batch {
					want = 1
				}
				if got[4*z+i] != want {
					t.Errorf("batch %d: matrix %d has %v at %d, want %v", batch, z, got[4*z+i], i,
						want)
				}
			}
		}
	}
	fine, c := m.put([]float32{1 + 1.0/(1<<10), 1 + 1.0/(1<<12)}), m.put([]float32{0, 0})
	for tf32, want := range map[bool]float32{false: 2 + 1.0/(1<<10) + 1.0/(1<<12),
		true: 2 + 1.0/(1<<10)} {
		g := &driver.Gemm{M: 1, N: 1, K: 2, Alpha: 1, A: fine, B: m.put([]float32{1, 1}), C: c,
			LdA: 1, LdB: 2, LdC: 1, TF32: tf32}
		g.Prepare()
		ok(t, p.Run(g))
		if got := m.get(c, 1)[0]; got != want {
			t.Errorf("TF32 %v: %v, want %v", tf32, got, want)
		}
	}
	bad := &driver.Gemm{M: 2, N: 2, K: 3, A: a, B: b, C: a, LdA: 1, LdB: 3, LdC: 2}
	bad.Prepare()
	if err := p.Run(bad); err == nil || !strings.Contains(err.Error(), "INVALID_VALUE") {
		t.Errorf("a leading dimension that is too small: %v", err)
	}
}

// TestHalfProducts: a long sum of bfloat16 products is made in f32, whatever its parts are added
// up in: in bfloat16 it would end at 256.
func TestHalfProducts(t *testing.T) {
	m := open(t)
	blas, err := m.Blas()
	ok(t, err)
	p, err := blas.Products(m.s, m.alloc(1<<20), 1<<20)
	ok(t, err)
	m.free = append([]func() error{p.Close}, m.free...)
	const length, one = 1 << 12, 0x3f80
	pairs := make([]float32, length/2)
	for i := range pairs {
		pairs[i] = math.Float32frombits(one<<16 | one)
	}
	x, c := m.put(pairs), m.put([]float32{0})
	g := &driver.Gemm{M: 1, N: 1, K: length, Alpha: 1, A: x, B: x, C: c, LdA: 1, LdB: length,
		LdC: 1, HalfIn: true, HalfOut: true}
	g.Prepare()
	ok(t, p.Run(g))
	if got := math.Float32frombits(math.Float32bits(m.get(c, 1)[0]) << 16); got != length {
		t.Errorf("%d ones add up to %v", length, got)
	}
}

// TestProductsOnStacks: a product that is on a stack when it is prepared is the same when the stack
// has grown, and moved, and others have what was its place.
func TestProductsOnStacks(t *testing.T) {
	m := open(t)
	blas, err := m.Blas()
	ok(t, err)
	p, err := blas.Products(m.s, m.alloc(1<<16), 1<<16)
	ok(t, err)
	m.free = append([]func() error{p.Close}, m.free...)
	one, c := m.put([]float32{1}), m.put([]float32{1})
	g := driver.Gemm{M: 1, N: 1, K: 1, Alpha: 2, Beta: 3, A: one, B: one, C: c, LdA: 1, LdB: 1,
		LdC: 1}
	g.Prepare()
	deep(1 << 12)
	var others sync.WaitGroup
	for range 64 {
		others.Go(func() { deep(1 << 6) })
	}
	others.Wait()
	ok(t, p.Run(&g))
	if got := m.get(c, 1)[0]; got != 5 {
		t.Errorf("%v, want 5", got)
	}
}

// deep takes so many frames of a stack, and leaves something in each.
func deep(frames int) (sum float32) {
	var frame [64]float32
	for i := range frame {
		frame[i] = float32(frames + i)
	}
	if frames > 0 {
		sum = deep(frames - 1)
	}
	return sum + frame[frames%64]
}

// TestCopies: asynchronous copies are of pinned memory; another stream sees what they
// brought after an event.
func TestCopies(t *testing.T) {
	t.Setenv("EMU_JITTER_US", "200")
	m := open(t)
	host, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	ok(t, err)
	p := m.alloc(8192)
	if err := m.s.ToDevice(p, host); err == nil {
		t.Error("memory that is not pinned is copied while others run")
	}
	ok(t, m.Pin(host))
	out, err := m.Stream()
	ok(t, err)
	e, err := m.Event(false)
	ok(t, err)
	for round := range byte(50) {
		host[0], host[4096] = round, 0
		ok(t, m.s.ToDevice(p, host[:1]))
		ok(t, m.s.Record(e))
		ok(t, out.Wait(e))
		ok(t, out.ToHost(host[4096:4097], p))
		ok(t, m.Sync())
		if host[4096] != round {
			t.Fatalf("round %d: %d comes back", round, host[4096])
		}
	}
	happened, err := e.Happened()
	ok(t, err)
	if !happened {
		t.Error("the event has not happened")
	}
	ok(t, errors.Join(e.Close(), out.Close(), m.Unpin(host), unix.Munmap(host)))
}

// TestMemory starts as something that is no number, ends, and can be cleared.
func TestMemory(t *testing.T) {
	t.Setenv("EMU_MEM", "65536")
	m := open(t)
	p := m.alloc(64)
	if got := m.get(p, 1); !math.IsNaN(float64(got[0])) {
		t.Errorf("memory that nobody wrote has %v", got)
	}
	ok(t, m.Clear(p, 64))
	ok(t, m.s.Fill(p+4, 0x3f800000, 1))
	ok(t, m.s.FillBytes(p+8, 0xff, 4))
	ok(t, m.s.Copy(p+16, p+4, 8))
	got := m.get(p, 6)
	if got[0] != 0 || got[1] != 1 || !math.IsNaN(float64(got[2])) || got[3] != 0 || got[4] != 1 ||
		!math.IsNaN(float64(got[5])) {
		t.Errorf("filled memory has %v", got)
	}
	if m.s.Copy(p+32, p+28, 8) == nil {
		t.Error("bytes are copied to where they overlap")
	}
	if m.Read(p+60, make([]byte, 8)) == nil {
		t.Error("bytes behind an allocation are read")
	}
	_, err := m.Alloc(1 << 20)
	if e, is := errors.AsType[*driver.Error](err); !is || !e.OutOfMemory() {
		t.Errorf("a MiB of 64 KiB: %v", err)
	}
	free, total, err := m.Free()
	if err != nil || total != 65536 || free != 65536-64 {
		t.Errorf("%d of %d free, %v", free, total, err)
	}
}

// TestUnbound: a goroutine that is not bound fails, always.
func TestUnbound(t *testing.T) {
	m := open(t)
	done := make(chan error)
	go func() { done <- m.Sync() }()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "INVALID_CONTEXT") {
		t.Errorf("an unbound goroutine: %v", err)
	}
}

// TestUnusable: what is missing, too old or broken is said in one line.
func TestUnusable(t *testing.T) {
	emulator := emu.Dir(t)
	empty := t.TempDir()
	if _, err := driver.Load(driver.Options{}); err == nil {
		t.Log("this machine has a driver")
	} else if want := "no CUDA driver: libcuda.so.1 not found"; err.Error() != want {
		t.Errorf("without a driver: %v", err)
	}
	broken := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(broken, "libcuda.so.1"), []byte("no library"), 0o666))
	_, err := driver.Load(driver.Options{Dirs: []string{broken}})
	if e, is := errors.AsType[*driver.MissingError](err); !is || e.Err == nil ||
		!strings.Contains(err.Error(), broken) {
		t.Errorf("a file that is no library: %v", err)
	}
	for name, want := range map[string]string{"EMU_INIT=100": "CUDA_ERROR_NO_DEVICE",
		"EMU_VERSION=11080": "too old: " + emulator + "/libcuda.so.1 has CUDA 11.8, want 12.0"} {
		key, value, _ := strings.Cut(name, "=")
		t.Run(name, func(t *testing.T) {
			t.Setenv(key, value)
			_, err := driver.Load(driver.Options{Dirs: []string{emulator}})
			if err == nil || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v", err)
			}
		})
	}
	t.Setenv("GOMEM_CUDA_PATH", "") // or its libraries would be found
	ok(t, os.Symlink(filepath.Join(emulator, "libcuda.so.1"), filepath.Join(empty, "libcuda.so.1")))
	d, err := driver.Load(driver.Options{Dirs: []string{empty}})
	ok(t, err)
	if _, err := d.Open(1); err == nil || err.Error() != "no GPU 1: the machine has 1" {
		t.Errorf("a second GPU: %v", err)
	}
	g, err := d.Open(0)
	ok(t, err)
	defer g.Close()
	_, err = g.Compiler()
	if err == nil || err.Error() != "no CUDA compiler: libnvrtc.so.13 not found" {
		t.Errorf("without NVRTC: %v", err)
	}
	if _, err = g.Blas(); err == nil || err.Error() != "no cuBLAS: libcublas.so.13 not found" {
		t.Errorf("without cuBLAS: %v", err)
	}
}

// TestCompilerKeepsArithmetic: kernels are compiled so that every operation is rounded by itself,
// as IEEE 754 has it, subnormal numbers too. The results' bits depend on it.
func TestCompilerKeepsArithmetic(t *testing.T) {
	c, err := open(t).Compiler()
	ok(t, err)
	for _, o := range []string{"--fmad=false", "--ftz=false", "--prec-div=true",
		"--prec-sqrt=true"} {
		if !slices.Contains(c.Options, o) {
			t.Errorf("%q lack %s", c.Options, o)
		}
	}
}

// TestCompilerComplains: the log of a source that does not compile is in the error.
func TestCompilerComplains(t *testing.T) {
	m := open(t)
	c, err := m.Compiler()
	ok(t, err)
	if _, err := c.Compile("nonsense;", "test"); err == nil ||
		!strings.Contains(err.Error(), "nonsense") {
		t.Errorf("error is %v", err)
	}
}
