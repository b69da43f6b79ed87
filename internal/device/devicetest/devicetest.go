// Package devicetest has the tests that every device must pass.
package devicetest

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/plan/space"
)

// Options say what a device can do.
type Options struct {
	// Computes is false for a device that runs nothing: contents are not
	// checked then.
	Computes bool
	// Engines are all that the device has; nil stands for those of two memories.
	// What reaches no engine does, it has no memory of.
	Engines []space.Engine
	// Any is true of a device that has whatever spaces and engines one asks for.
	Any bool
	// Functions is an engine whose kernels are Go functions; the zero engine is
	// space.Compute.
	Functions space.Engine
}

// engines are those that the device has, if it has not all.
func (o Options) engines() []space.Engine {
	if o.Engines != nil {
		return o.Engines
	}
	return []space.Engine{space.Compute, space.CopyIn, space.CopyOut, space.HostCompute}
}

// spaces is how many spaces the engines reach.
func (o Options) spaces() space.ID {
	most := space.Device
	for _, e := range o.engines() {
		most = max(most, e.Reads(), e.Writes())
	}
	return most + 1
}

// has reports whether the device has an engine.
func (o Options) has(e space.Engine) bool { return o.Any || slices.Contains(o.engines(), e) }

// probe is an operation whose kernel is a function of the test's. On a GPU it does
// nothing.
type probe struct{ fn *func(*kernel.Call) error }

var register = sync.OnceFunc(func() {
	kernel.Register(kernel.CPU, func(p probe, c *kernel.Call) error { return (*p.fn)(c) })
	cuda.Register(func(probe, *cuda.Call) ([]cuda.Command, error) { return nil, nil }, nil)
	registerLinear()
})

// functions is an engine whose kernels are the test's functions.
type functions struct{ engine space.Engine }

// at is the space that the engine works in.
func (f functions) at() space.ID { return f.engine.Reads() }

// launch makes a task of a function.
func (f functions) launch(t *testing.T, d device.Device, fn func(*kernel.Call) error, in,
	out []device.Operand) device.Task {
	t.Helper()
	task, err := d.Launch(device.Launch{Engine: f.engine, Step: 7, Name: "node", What: "probe",
		Op: probe{&fn}, In: in, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// opener makes another device of the kind under test.
type opener func() device.Device

// Run runs the tests on devices that open makes.
func Run(t *testing.T, open func(t *testing.T) device.Device, o Options) {
	register()
	f := functions{o.Functions}
	for _, test := range []struct {
		name     string
		computes bool
		run      func(t *testing.T, d device.Device, another opener)
	}{
		{"copies", true, testCopies},
		{"stream order", true, f.testStreamOrder},
		{"events order streams", true, f.testEvents},
		{"operations in order", true, testOperations},
		{"engines in order", true, testEngines},
		{"nothing to compute", true, testEmpty},
		{"updates are written back", true, testWriteBack},
		{"call", true, testCall},
		{"call copies", true, testCallCopies},
		{"call stops", true, testCallStops},
		{"calls reach the host", false, testCallReach},
		{"high water", false, testHighWater},
		{"no kernel", false, testNoKernel},
		{"out of range", false, testOutOfRange},
		{"engines reach their spaces", false, o.testReach},
		{"no such thing", false, o.testNoSuchThing},
		{"another device's", false, testForeign},
		{"task on another engine's stream", false, testMisplaced},
		{"first error wins", true, f.testError},
		{"panic is an error", true, f.testPanic},
		{"stop", false, testStop},
		{"stop in the middle", true, f.testStopInTheMiddle},
		{"reset waits", true, f.testResetWaits},
		{"begun", false, testBegun},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.computes && !o.Computes {
				t.Skip("the device runs nothing")
			}
			d := open(t)
			test.run(t, d, func() device.Device {
				other := open(t)
				t.Cleanup(func() { other.Close() })
				return other
			})
			if err := errors.Join(d.Close(), d.Close()); err != nil {
				t.Fatal("close:", err)
			}
		})
	}
}

func memory(t *testing.T, d device.Device, s space.ID, bytes int64) device.Memory {
	t.Helper()
	m, err := d.Alloc(s, bytes)
	if err != nil {
		t.Fatal(err)
	}
	if m.Bytes() != bytes || m.Space() != s {
		t.Fatalf("%d bytes of %s memory are %d of %s", bytes, s, m.Bytes(), m.Space())
	}
	return m
}

func stream(t *testing.T, d device.Device, e space.Engine) device.Stream {
	t.Helper()
	s, err := d.Stream("test", e)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// idle makes a task for the compute engine that does nothing.
func idle(t *testing.T, d device.Device, in, out []device.Operand) device.Task {
	t.Helper()
	return functions{space.Compute}.launch(t, d, nothing, in, out)
}

func nothing(*kernel.Call) error { return nil }

func operand(m device.Memory, off int64, elems int) device.Operand {
	ty := tensor.Of(tensor.I32, elems)
	return device.Operand{Region: device.Region{Mem: m, Off: off, Bytes: ty.Bytes()}, Type: ty}
}

func sync1(t *testing.T, s device.Stream) {
	t.Helper()
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
}

func testCopies(t *testing.T, d device.Device, _ opener) {
	a, b := memory(t, d, space.Host, 100), memory(t, d, space.Device, 50)
	want := []byte("sixteen byte txt")
	if err := a.Write(64, want); err != nil {
		t.Fatal(err)
	}
	c, err := d.Copy(device.Copy{Engine: space.CopyIn,
		Dst: device.Region{Mem: b, Off: 8, Bytes: 16},
		Src: device.Region{Mem: a, Off: 64, Bytes: 16}})
	if err != nil {
		t.Fatal(err)
	}
	s := stream(t, d, space.CopyIn)
	s.Run(c)
	sync1(t, s)
	got := make([]byte, 16)
	if err := b.Read(8, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %q, %v", got, err)
	}
}

func (f functions) testStreamOrder(t *testing.T, d device.Device, _ opener) {
	m := memory(t, d, f.at(), 64)
	s := stream(t, d, f.engine)
	var got []int
	for i := range 5000 { // longer than any queue
		s.Run(f.launch(t, d, func(*kernel.Call) error { got = append(got, i); return nil }, nil,
			[]device.Operand{operand(m, 0, 1)}))
	}
	sync1(t, s)
	for i, v := range got {
		if i != v {
			t.Fatalf("task %d ran as number %d", v, i)
		}
	}
	if len(got) != 5000 {
		t.Fatalf("%d tasks ran", len(got))
	}
}

// testEvents: what waits for an event sees what was done before it, though the
// other stream is slow.
func (f functions) testEvents(t *testing.T, d device.Device, _ opener) {
	m := memory(t, d, f.at(), 64)
	a, b := stream(t, d, f.engine), stream(t, d, f.engine)
	x := operand(m, 0, 1)
	for round := range int32(50) {
		a.Run(f.launch(t, d, func(c *kernel.Call) error {
			if round%10 == 0 {
				time.Sleep(time.Millisecond)
			}
			c.Out[0].I32()[0] = round
			return nil
		}, nil, []device.Operand{x}))
		b.Wait(a.Record())
		b.Run(f.launch(t, d, func(c *kernel.Call) error {
			if got := c.In[0].I32()[0]; got != round {
				t.Errorf("round %d sees %d", round, got)
			}
			return nil
		}, []device.Operand{x}, nil))
		a.Wait(b.Record())
	}
	sync1(t, a)
	sync1(t, b)
}

// testWriteBack: what a kernel makes of an operand that it updates is there for the
// copy that comes after it.
func testWriteBack(t *testing.T, d device.Device, _ opener) {
	m, host := memory(t, d, space.Device, 64), memory(t, d, space.Host, 64)
	compute, out := stream(t, d, space.Compute), stream(t, d, space.CopyOut)
	back, err := d.Copy(device.Copy{Engine: space.CopyOut,
		Dst: device.Region{Mem: host, Off: 8, Bytes: 4}, Src: device.Region{Mem: m, Bytes: 4}})
	if err != nil {
		t.Fatal(err)
	}
	x := operand(m, 0, 1)
	update := linear{1, 1}.launch(t, d, space.Compute, x, x)
	for round := range byte(100) {
		compute.Run(update)
		out.Wait(compute.Record())
		out.Run(back)
		compute.Wait(out.Record())
		sync1(t, out)
		got := make([]byte, 4)
		if err := host.Read(8, got); err != nil || got[0] != round+1 {
			t.Fatalf("round %d leaves %v, %v", round, got, err)
		}
	}
}

func testHighWater(t *testing.T, d device.Device, _ opener) {
	a, b := memory(t, d, space.Device, 1000), memory(t, d, space.Host, 1000)
	s, compute := stream(t, d, space.CopyOut), stream(t, d, space.Compute)
	c, err := d.Copy(device.Copy{Engine: space.CopyOut,
		Dst: device.Region{Mem: b, Off: 128, Bytes: 20},
		Src: device.Region{Mem: a, Off: 256, Bytes: 20}})
	if err != nil {
		t.Fatal(err)
	}
	fn := nothing
	l, err := d.Launch(device.Launch{Op: probe{&fn}, In: []device.Operand{operand(a, 64, 1)},
		Out:     []device.Operand{operand(a, 128, 2)},
		Scratch: device.Region{Mem: a, Off: 500, Bytes: 9}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Used() != 0 {
		t.Fatal("making a task touches memory")
	}
	s.Run(c)
	sync1(t, s)
	if a.Used() != 276 || b.Used() != 148 {
		t.Fatalf("used %d and %d, want 276 and 148", a.Used(), b.Used())
	}
	a.ResetUsed()
	if err := a.Write(0, make([]byte, 10)); err != nil || a.Used() != 10 {
		t.Fatalf("used %d after a write of 10 bytes, %v", a.Used(), err)
	}
	if err := a.Read(20, make([]byte, 10)); err != nil || a.Used() != 30 {
		t.Fatalf("used %d after a read up to 30 bytes, %v", a.Used(), err)
	}
	compute.Run(l)
	sync1(t, compute)
	if a.Used() != 509 {
		t.Fatalf("used %d after a launch with scratch up to 509", a.Used())
	}
}

func testNoKernel(t *testing.T, d device.Device, _ opener) {
	type unheardOf struct{}
	if _, err := d.Launch(device.Launch{Op: unheardOf{}}); err == nil {
		t.Error("an operation without a kernel is accepted")
	}
}
