//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/plan/space"
)

const source = `
extern "C" __global__ void test_trap() { __trap(); }
extern "C" __global__ void test_first(float *y) { y[0] = 1; }
`

// commands is an operation that is the test's commands.
type commands struct {
	make *func(c *kernels.Call) ([]kernels.Command, error)
}

func init() {
	kernels.Register(func(o commands, c *kernels.Call) ([]kernels.Command, error) {
		return (*o.make)(c)
	}, nil)
	kernels.Convolves(func(commands, []tensor.Type, []tensor.Type) (kernels.Conv, bool) {
		return kernels.Conv{}, true
	})
}

// none are the commands of an operation that does nothing.
func none(*kernels.Call) ([]kernels.Command, error) { return nil, nil }

// rig is a device with memories and a stream of each of the GPU's engines.
type rig struct {
	*cuda.Device
	t                *testing.T
	near, far        device.Memory
	compute, in, out device.Stream
}

func newRig(t *testing.T, o cuda.Options) *rig {
	t.Helper()
	r := &rig{Device: open(t, o), t: t}
	var errs [5]error
	r.near, errs[0] = r.Alloc(space.Device, 1<<20)
	r.far, errs[1] = r.Alloc(space.Host, 1<<20)
	r.compute, errs[2] = r.Stream("compute", space.Compute)
	r.in, errs[3] = r.Stream("in", space.CopyIn)
	r.out, errs[4] = r.Stream("out", space.CopyOut)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return r
}

func f32(m device.Memory, off int64, sizes ...int) device.Operand {
	ty := tensor.Of(tensor.F32, sizes...)
	return device.Operand{Region: device.Region{Mem: m, Off: off, Bytes: ty.Bytes()}, Type: ty}
}

// do runs commands as an operation.
func (r *rig) do(in, out []device.Operand, c func(*kernels.Call) ([]kernels.Command, error)) error {
	r.t.Helper()
	return r.by("", in, out, c)
}

// by runs commands as an operation that a plan has computed by a library.
func (r *rig) by(library string, in, out []device.Operand,
	c func(*kernels.Call) ([]kernels.Command, error)) error {
	r.t.Helper()
	l := device.Launch{Engine: space.Compute, Step: 3, Name: "node", What: "test",
		Op: commands{&c}, In: in, Out: out, Library: library}
	if library != "" {
		l.Scratch = device.Region{Mem: r.near, Off: 1 << 19, Bytes: 4096}
	}
	task, err := r.Launch(l)
	if err != nil {
		return err
	}
	r.compute.Run(task)
	return r.compute.Sync()
}

func (r *rig) read(o device.Operand) []float32 {
	r.t.Helper()
	v := tensor.New(o.Type)
	if err := r.near.Read(o.Off, v.Data); err != nil {
		r.t.Fatal(err)
	}
	return v.As(tensor.F32).F32()
}

func (r *rig) write(o device.Operand, x []float32) {
	r.t.Helper()
	v := tensor.FromF32(x, len(x)).As(o.Type.DType)
	if err := r.near.Write(o.Off, v.Data); err != nil {
		r.t.Fatal(err)
	}
}

// TestCopiesInPieces: copies of any size between any addresses bring all bytes, though they
// are made in chunks and the host's memory is pinned in pieces; also where a part of it cannot be
// pinned, which is told once.
func TestCopiesInPieces(t *testing.T) {
	for _, pinned := range []int{0, 1<<20 + 200<<10} {
		t.Run(fmt.Sprint(pinned), func(t *testing.T) {
			t.Setenv("EMU_PINS", fmt.Sprint(pinned))
			t.Setenv("EMU_JITTER_US", "20")
			var log bytes.Buffer
			o := options(t, source)
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			copyInPieces(t, o)
			if n := strings.Count(log.String(), "slow"); (n == 1) != (pinned > 0) {
				t.Errorf("%d warnings: %s", n, &log)
			}
		})
	}
}

func copyInPieces(t *testing.T, o cuda.Options) {
	o.Piece, o.Chunk = 64<<10, 40<<10
	r := newRig(t, o)
	rng := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	if err := r.far.Write(0, want); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		n := rng.Int64N(300 << 10)
		from, to := rng.Int64N(1<<20-n), rng.Int64N(1<<20-n)
		here := device.Region{Mem: r.near, Off: to, Bytes: n}
		there := device.Region{Mem: r.far, Off: from, Bytes: n}
		in, err1 := r.Copy(device.Copy{Engine: space.CopyIn, Dst: here, Src: there})
		out, err2 := r.Copy(device.Copy{Engine: space.CopyOut, Dst: there, Src: here})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		r.in.Run(in)
		if err := r.in.Sync(); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, n)
		if err := r.near.Read(to, got); err != nil || !bytes.Equal(got, want[from:from+n]) {
			t.Fatalf("%d bytes from %d to %d arrive as others, %v", n, from, to, err)
		}
		if err := r.far.Write(from, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		r.out.Run(out)
		if err := r.out.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 1<<20)
	if err := r.far.Read(0, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other bytes come back, %v", err)
	}
}

// TestProductsByRows: a product is that of a plain loop over rows, for all forms.
func TestProductsByRows(t *testing.T) {
	r := newRig(t, options(t, source))
	const m, n, k, batch = 3, 5, 4, 2
	a, b, c := f32(r.near, 0, batch, m*k), f32(r.near, 1024, batch, k*n), f32(r.near, 2048, batch,
		m*n)
	x := make([]float32, 64)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	r.write(a, x[:batch*m*k])
	r.write(b, x[5:5+batch*k*n])
	for form := range 4 {
		ta, tb := form&1 != 0, form&2 != 0
		lda, ldb := k, n
		if ta {
			lda = m
		}
		if tb {
			ldb = k
		}
		err := r.do([]device.Operand{a, b}, []device.Operand{c},
			func(call *kernels.Call) ([]kernels.Command, error) {
				return []kernels.Command{
					kernels.Fill{Addr: call.Out[0].Addr, Words: batch * m * n, Word: 0x3f800000},
					kernels.Gemm{A: call.In[0].Addr, B: call.In[1].Addr, C: call.Out[0].Addr,
						TransA: ta, TransB: tb, M: m, N: n, K: k, LdA: lda, LdB: ldb, LdC: n,
						Batch: batch, StrideA: m * k, StrideB: k * n, StrideC: m * n, Alpha: 1,
						Beta: 3}}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range r.read(c) {
			z, row, col := i/(m*n), i/n%m, i%n
			want := float32(3)
			for l := range k {
				at, bt := row*k+l, l*n+col
				if ta {
					at = l*m + row
				}
				if tb {
					bt = col*k + l
				}
				want += x[z*m*k+at] * x[5+z*k*n+bt]
			}
			if got != want {
				t.Fatalf("transposed %v, %v: element %d is %v, want %v", ta, tb, i, got, want)
			}
		}
	}
}

// TestFault: an error in a kernel is the step's, in one line; everything after it is
// skipped, and the device can be closed. The next one works.
func TestFault(t *testing.T) {
	t.Run("fault", func(t *testing.T) {
		r := newRig(t, options(t, source))
		trap := func(*kernels.Call) ([]kernels.Command, error) {
			one := [3]uint32{1, 1, 1}
			return []kernels.Command{kernels.Kernel{Name: "test_trap", Grid: one, Block: one}}, nil
		}
		for range 2 {
			err := r.do(nil, nil, trap)
			if e, ok := errors.AsType[*device.Error](err); !ok || e.Step != 3 ||
				!strings.Contains(err.Error(), "CUDA_ERROR_LAUNCH_FAILED") ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v", err)
			}
			r.Reset()
		}
	})
	r := newRig(t, options(t, source))
	if err := r.do(nil, nil, none); err != nil {
		t.Error(err)
	}
}

// TestUnusable: what cannot be is an error of one line when the device, the memory or the
// task is made.
func TestUnusable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*cuda.Options)
		want   string
	}{
		"no GPU": {func(o *cuda.Options) { o.GPU = 1 },
			"cuda device: no GPU 1: the machine has 1"},
		"no context": {func(*cuda.Options) { t.Setenv("EMU_UNBOUND", "1") },
			"cuCtxSetCurrent: CUDA_ERROR_INVALID_CONTEXT"},
		"no kernels": {func(o *cuda.Options) { o.Source = "nonsense;" },
			"the kernels do not compile"},
	} {
		o := options(t, source)
		c.change(&o)
		if _, err := cuda.Open(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		t.Setenv("EMU_UNBOUND", "")
	}
	t.Setenv("EMU_MEM", "4194304")
	r := newRig(t, options(t, source))
	_, err := r.Alloc(space.Device, 8<<20)
	e, ok := errors.AsType[*cuda.MemoryError](err)
	if !ok || e.Bytes != 8<<20 || e.Total != 4<<20 || err.Error() !=
		"cuda device: emulated has 2.9 MiB of 4.0 MiB free, and 8.0 MiB are needed" {
		t.Errorf("8 MiB of 4: %v", err)
	}
	for name, c := range map[string]kernels.Command{
		"no such kernel": kernels.Kernel{Name: "unheard_of"},
		"shared memory":  kernels.Kernel{Name: "test_first", Shared: 1 << 20},
	} {
		if err := r.do(nil, nil, func(*kernels.Call) ([]kernels.Command, error) {
			return []kernels.Command{c}, nil
		}); err == nil || r.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForgotten: a result that an operation forgets to write is no number.
func TestForgotten(t *testing.T) {
	r := newRig(t, options(t, source))
	y := f32(r.near, 256, 2)
	err := r.do(nil, []device.Operand{y}, func(c *kernels.Call) ([]kernels.Command, error) {
		one := [3]uint32{1, 1, 1}
		return []kernels.Command{kernels.Kernel{Name: "test_first", Grid: one, Block: one,
			Args: kernels.Add(nil, c.Out[0].Addr)}}, nil
	})
	if got := r.read(y); err != nil || got[0] != 1 || got[1] == got[1] {
		t.Errorf("the result is %v, %v", got, err)
	}
}

// TestTrace: who listens hears of every task of the GPU, in order.
func TestTrace(t *testing.T) {
	rec := &trace.Recorder{}
	o := options(t, source)
	o.Listener = rec.Listen
	r := newRig(t, o)
	y := f32(r.near, 0, 64)
	in, err := r.Copy(device.Copy{Engine: space.CopyIn, Name: "x", What: "stage", Step: 1,
		Dst: y.Region, Src: device.Region{Mem: r.far, Bytes: y.Bytes}})
	if err != nil {
		t.Fatal(err)
	}
	r.in.Run(in, in)
	r.compute.Wait(r.in.Record())
	if err := errors.Join(r.do(nil, nil, none), r.in.Sync()); err != nil {
		t.Fatal(err)
	}
	events := map[string][]trace.Event{}
	for _, e := range rec.Events() {
		if e.End < e.Start {
			t.Errorf("%+v ends before it starts", e)
		}
		events[e.Stream] = append(events[e.Stream], e)
	}
	copies, launches := events["in"], events["compute"]
	if len(copies) != 2 || len(launches) != 1 || copies[0].Bytes != 256 ||
		copies[0].Name != "x" || launches[0].Step != 3 || launches[0].Start < copies[1].End {
		t.Errorf("events: %+v", rec.Events())
	}
}

// TestTraceAfterLong: times within a step are as fine when the device was opened long before it,
// though the driver tells 10 days, here, in eights of a second.
func TestTraceAfterLong(t *testing.T) {
	t.Setenv("EMU_HURRY", "12345678.9")
	rec := &trace.Recorder{}
	o := options(t, source)
	o.Listener = rec.Listen
	r := newRig(t, o)
	time.Sleep(100 * time.Millisecond)
	if err := errors.Join(r.do(nil, nil, none), r.do(nil, nil, none)); err != nil {
		t.Fatal(err)
	}
	for _, e := range rec.Events() {
		if (e.End-e.Start)%time.Millisecond != 0 {
			return
		}
	}
	t.Errorf("all times are whole milliseconds: %+v", rec.Events())
}

// TestGPUs are described, or it is said why there are none.
func TestGPUs(t *testing.T) {
	list, err := cuda.GPUs([]string{emu.Dir(t)})
	if err != nil || len(list) != 1 || list[0].Name != "emulated" || list[0].Why != "" ||
		list[0].Capability != "9.0" || list[0].Driver != "CUDA 13.0" ||
		list[0].Compiler != "NVRTC 13.0" || list[0].Memory != 512<<20 ||
		list[0].Bus != "0000:3B:00.0" {
		t.Errorf("%+v, %v", list, err)
	}
	t.Setenv("EMU_INIT", "100")
	if _, err := cuda.GPUs([]string{emu.Dir(t)}); err == nil ||
		!strings.Contains(err.Error(), "CUDA_ERROR_NO_DEVICE") {
		t.Errorf("a driver without a GPU: %v", err)
	}
}
