package cpu_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/device/devicetest"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/plan/space"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDevice(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device {
		d, err := cpu.Open(cpu.Options{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}, devicetest.Options{Computes: true})
}

func TestBadOptions(t *testing.T) {
	for _, o := range []cpu.Options{{Threads: -1}, {CopyBytesPerSecond: -1}} {
		if _, err := cpu.Open(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestImpossibleMemory: a request that no machine can meet is an error.
func TestImpossibleMemory(t *testing.T) {
	d, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Alloc(space.Device, 1<<56); err == nil {
		t.Error("64 PiB are given")
	}
}

// throttled is a device whose copy engines copy so many bytes a second, a stream
// into it, and a task of copying 1 MiB.
func throttled(t *testing.T, rate int64, l trace.Listener) (*cpu.Device, device.Stream,
	device.Task) {
	t.Helper()
	d, err := cpu.Open(cpu.Options{CopyBytesPerSecond: rate, Listener: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	dst, err1 := d.Alloc(space.Device, 1<<20)
	src, err2 := d.Alloc(space.Host, 1<<20)
	s, err3 := d.Stream("in", space.CopyIn)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	c, err := d.Copy(device.Copy{Engine: space.CopyIn, Name: "x", What: "stage",
		Dst: device.Region{Mem: dst, Bytes: 1 << 20}, Src: device.Region{Mem: src, Bytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	return d, s, c
}

// TestThrottle: a throttled engine takes at least as long as its rate says.
func TestThrottle(t *testing.T) {
	rec := &trace.Recorder{}
	_, s, c := throttled(t, 100<<20, rec.Listen)
	start := time.Now()
	s.Run(c)
	s.Run(c)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 19*time.Millisecond {
		t.Errorf("2 MiB at 100 MiB/s took %s", took)
	}
	if ev := rec.Events(); len(ev) != 2 || ev[0].Stream != "in" || ev[0].Bytes != 1<<20 ||
		ev[1].Start < ev[0].End {
		t.Errorf("events: %+v", ev)
	}
}

// TestStopEndsThrottledCopies: a copy that takes decades, by its rate, ends when
// the device is stopped; and what it still had to wait is owed by nobody.
func TestStopEndsThrottledCopies(t *testing.T) {
	d, s, c := throttled(t, 1, nil)
	stopped := uint64(0)
	for wait := time.Millisecond; stopped < 6; wait += time.Millisecond {
		s.Run(c, c, c)
		time.AfterFunc(wait, func() { d.Stop(errStopped) })
		if err := s.Sync(); !errors.Is(err, errStopped) {
			t.Fatalf("error is %v", err)
		}
		if now := s.Begun(); now > stopped+1 {
			t.Fatalf("%d copies began", now-stopped)
		} else {
			stopped = now // none began where the machine was slower than the wait
		}
		d.Reset()
	}
}

// TestCloseEndsQueues: Close lets what is queued end, and frees what there is,
// also of a device that was stopped.
func TestCloseEndsQueues(t *testing.T) {
	for _, stop := range []bool{false, true} {
		d, s, c := throttled(t, 1<<30, nil)
		for range 100 {
			s.Run(c)
		}
		if stop {
			d.Stop(errStopped)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if s.Begun() != 100 && !stop {
			t.Errorf("%d of 100 copies began", s.Begun())
		}
	}
}

var errStopped = errors.New("stopped")

// TestKernelsSeeTheirOperandsOnly: a kernel's windows are the regions that the
// launch gives, with their types, no byte more; it has the device's threads.
func TestKernelsSeeTheirOperandsOnly(t *testing.T) {
	rec := &trace.Recorder{}
	d, err := cpu.Open(cpu.Options{Threads: 2, Listener: rec.Listen})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m, err := d.Alloc(space.Device, 256)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 256)
	for i := range data {
		data[i] = byte(i)
	}
	if err := m.Write(0, data); err != nil {
		t.Fatal(err)
	}
	operand := func(off int64, ty tensor.Type) device.Operand {
		return device.Operand{Region: device.Region{Mem: m, Off: off, Bytes: ty.Bytes()}, Type: ty}
	}
	in, out := tensor.Of(tensor.U8, 5), tensor.Of(tensor.I32, 2, 2)
	inspect := func(c *kernel.Call) error {
		for _, b := range [][]byte{c.In[0].Data, c.Out[0].Data, c.Scratch} {
			if len(b) != cap(b) {
				t.Errorf("a window of %d bytes can grow to %d", len(b), cap(b))
			}
		}
		if !c.In[0].Type.Equal(in) || c.In[0].Data[0] != 64 || !c.Out[0].Type.Equal(out) ||
			len(c.Out[0].Data) != 16 || len(c.Scratch) != 7 || c.Pool == nil {
			t.Errorf("the kernel is called with %+v", c)
		}
		c.Out[0].Data[0] = 99
		return nil
	}
	task, err := d.Launch(device.Launch{Engine: space.Compute, Step: 4, Name: "node",
		What: "inspect", Op: look{&inspect}, In: []device.Operand{operand(64, in)},
		Out:     []device.Operand{operand(128, out)},
		Scratch: device.Region{Mem: m, Off: 192, Bytes: 7}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Stream("compute", space.Compute)
	if err != nil {
		t.Fatal(err)
	}
	s.Run(task)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1)
	if err := m.Read(128, got); err != nil || got[0] != 99 {
		t.Errorf("the result is %d, %v", got[0], err)
	}
	if ev := rec.Events(); len(ev) != 1 || ev[0].Step != 4 || ev[0].Name != "node" ||
		ev[0].What != "inspect" || ev[0].Stream != "compute" || ev[0].Bytes != 0 {
		t.Errorf("events: %+v", ev)
	}
}

// look is an operation whose kernel is a function of the test's.
type look struct{ fn *func(*kernel.Call) error }

func init() {
	kernel.Register(kernel.CPU, func(l look, c *kernel.Call) error { return (*l.fn)(c) })
}
