package cpu_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/internal/device/devicetest"
	"github.com/gomem/gomem/internal/trace"
	"github.com/gomem/gomem/space"
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
	if _, err := d.Alloc("device", 1<<56); err == nil {
		t.Error("64 PiB are given")
	}
}

// TestThrottle: a throttled engine takes at least as long as its rate says.
func TestThrottle(t *testing.T) {
	rec := &trace.Recorder{}
	d, err := cpu.Open(cpu.Options{CopyBytesPerSecond: 100 << 20, Listener: rec.Listen})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a, _ := d.Alloc("a", 1<<20)
	b, _ := d.Alloc("b", 1<<20)
	s, _ := d.Stream("in", space.CopyIn)
	c, err := d.Copy(device.Copy{Name: "x", What: "stage",
		Dst: device.Region{Mem: a, Bytes: 1 << 20}, Src: device.Region{Mem: b, Bytes: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	s.Run(c)
	s.Run(c)
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 19*time.Millisecond {
		t.Errorf("2 MiB at 100 MiB/s took %s", took)
	}
	if ev := rec.Events(); len(ev) != 2 || ev[0].Stream != "in" || ev[0].Bytes != 1<<20 ||
		ev[1].Start.Before(ev[0].End) {
		t.Errorf("events: %+v", ev)
	}
}
