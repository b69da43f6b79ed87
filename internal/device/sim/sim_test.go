package sim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/devicetest"
	"github.com/gomem/gomem/internal/device/sim"
	"github.com/gomem/gomem/plan/space"
)

func TestDevice(t *testing.T) {
	devicetest.Run(t, func(*testing.T) device.Device { return sim.Open(sim.Options{}) },
		devicetest.Options{Any: true})
}

// TestLimit: memories add up to no more than the limit of their space; the refusal
// says what there is.
func TestLimit(t *testing.T) {
	d := sim.Open(sim.Options{Limits: map[space.ID]int64{space.Device: 100}})
	_, err1 := d.Alloc(space.Device, 60)
	_, err2 := d.Alloc(space.Host, 1<<40)
	_, err3 := d.Alloc(space.Device, 41)
	_, err4 := d.Alloc(space.Device, 40)
	if err := errors.Join(err1, err2, err4); err != nil {
		t.Error(err)
	}
	want := "41 bytes of device memory: the limit is 100, of which 40 are free"
	if err3 == nil || !strings.Contains(err3.Error(), want) {
		t.Errorf("error is %v, want one with %q", err3, want)
	}
}

// clock is a device whose copies take a microsecond a byte, and a stream each way.
type clock struct {
	*sim.Device
	in, out   device.Stream
	dev, host device.Memory
	events    trace.Recorder
}

func newClock(t *testing.T) *clock {
	t.Helper()
	c := &clock{}
	c.Device = sim.Open(sim.Options{Listener: c.events.Listen,
		Copy: func(_, _ space.ID, bytes int64) time.Duration {
			return time.Duration(bytes) * time.Microsecond
		}})
	var errs [4]error
	c.in, errs[0] = c.Stream("in", space.CopyIn)
	c.out, errs[1] = c.Stream("out", space.CopyOut)
	c.dev, errs[2] = c.Alloc(space.Device, 64)
	c.host, errs[3] = c.Alloc(space.Host, 64)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *clock) task(t *testing.T, e space.Engine, bytes int64) device.Task {
	t.Helper()
	dst, src := c.dev, c.host
	if e == space.CopyOut {
		dst, src = src, dst
	}
	task, err := c.Copy(device.Copy{Engine: e, Step: int(bytes), Name: "x", What: "stage",
		Dst: device.Region{Mem: dst, Bytes: bytes}, Src: device.Region{Mem: src, Bytes: bytes}})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// TestClock: streams run side by side, hold each other back by events, and begin
// after what the driver waited for.
func TestClock(t *testing.T) {
	c := newClock(t)
	c.in.Run(c.task(t, space.CopyIn, 10), c.task(t, space.CopyIn, 5)) // 0-10, 10-15
	c.out.Run(c.task(t, space.CopyOut, 8))                            // 0-8
	c.out.Wait(c.in.Record())
	c.out.Run(c.task(t, space.CopyOut, 4)) // 15-19
	if err := c.out.Sync(); err != nil || c.Now() != 19*time.Microsecond {
		t.Errorf("the clock shows %s, %v", c.Now(), err)
	}
	c.in.Run(c.task(t, space.CopyIn, 2)) // 19-21
	var got []int64
	for _, e := range c.events.Events() {
		if e.Bytes != int64(e.Step) || e.Name != "x" || e.What != "stage" {
			t.Errorf("event %+v", e)
		}
		got = append(got, e.Start.Microseconds(), e.End.Microseconds())
	}
	want := []int64{0, 10, 10, 15, 0, 8, 15, 19, 19, 21}
	if len(got) != len(want) {
		t.Fatalf("%d events", len(got)/2)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("tasks run at %v, want %v", got, want)
		}
	}
}

// TestSkipped: what does not run takes no time and is not told of.
func TestSkipped(t *testing.T) {
	c := newClock(t)
	c.Stop(errors.New("stopped"))
	c.in.Run(c.task(t, space.CopyIn, 10))
	if c.in.Sync() == nil || c.Now() != 0 || len(c.events.Events()) != 0 {
		t.Errorf("a device that was stopped worked until %s", c.Now())
	}
	c.Reset()
	c.in.Run(c.task(t, space.CopyOut, 10))
	if c.in.Sync() == nil || c.Now() != 0 {
		t.Errorf("a task of another engine took until %s", c.Now())
	}
}
