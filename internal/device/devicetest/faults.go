package devicetest

import (
	"errors"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/plan/space"
)

var errBoom = errors.New("boom")

// testError: after an error no task begins; after Reset they do again.
func (f functions) testError(t *testing.T, d device.Device, _ opener) {
	ran := 0
	a, b := stream(t, d, f.engine), stream(t, d, f.engine)
	second := f.launch(t, d, func(*kernel.Call) error {
		ran++
		return errors.New("second")
	}, nil, nil)
	a.Run(f.launch(t, d, func(*kernel.Call) error { return errBoom }, nil, nil))
	b.Wait(a.Record())
	b.Run(second, second)
	a.Run(second)
	err := errors.Join(a.Sync(), b.Sync())
	var e *device.Error
	if !errors.Is(err, errBoom) || !errors.As(err, &e) || e.Step != 7 || e.Name != "node" ||
		e.What != "probe" || e.Error() != "node (probe): boom" {
		t.Fatalf("error is %v", err)
	}
	d.Stop(errors.New("too late"))
	if !errors.Is(d.Err(), errBoom) {
		t.Errorf("the first error is forgotten: %v", d.Err())
	}
	if ran != 0 || a.Begun() != 1 || b.Begun() != 0 {
		t.Errorf("%d tasks ran after an error; begun: %d, %d", ran, a.Begun(), b.Begun())
	}
	d.Reset()
	if d.Err() != nil {
		t.Fatalf("after Reset the error is %v", d.Err())
	}
	b.Run(f.launch(t, d, func(*kernel.Call) error { ran++; return nil }, nil, nil))
	sync1(t, b)
	if ran != 1 || b.Begun() != 1 {
		t.Errorf("after Reset %d tasks ran, %d begun", ran, b.Begun())
	}
}

func (f functions) testPanic(t *testing.T, d device.Device, _ opener) {
	s := stream(t, d, f.engine)
	s.Run(f.launch(t, d, func(*kernel.Call) error { panic("kernel fell over") }, nil, nil))
	if err := s.Sync(); err == nil {
		t.Fatal("a panic is lost")
	}
}

// testStop: a device that was stopped skips all it is given, until it is reset.
func testStop(t *testing.T, d device.Device, _ opener) {
	m := memory(t, d, space.Device, 64)
	s := stream(t, d, space.Compute)
	task := idle(t, d, nil, []device.Operand{operand(m, 0, 4)})
	for range 3 {
		d.Stop(errBoom)
		before := s.Begun()
		s.Run(task, task)
		s.Wait(s.Record())
		if err := s.Sync(); !errors.Is(err, errBoom) || !errors.Is(d.Err(), errBoom) {
			t.Fatalf("the cause is lost: %v, %v", err, d.Err())
		}
		if s.Begun() != before || m.Used() != 0 {
			t.Fatalf("%d tasks ran on a device that was stopped, up to byte %d", s.Begun()-before,
				m.Used())
		}
		d.Reset()
		s.Run(task)
		sync1(t, s)
		if s.Begun() != before+1 || m.Used() != 16 {
			t.Fatalf("after Reset nothing runs: begun %d, used %d", s.Begun(), m.Used())
		}
		m.ResetUsed()
	}
}

// testStopInTheMiddle: the task under way ends, no other begins, on any stream,
// though more is queued than queues hold.
func (f functions) testStopInTheMiddle(t *testing.T, d device.Device, _ opener) {
	a, b := stream(t, d, f.engine), stream(t, d, space.HostCompute)
	began, stopped := make(chan bool), make(chan bool)
	ended := false
	a.Run(f.launch(t, d, func(*kernel.Call) error {
		began <- true
		<-stopped
		ended = true
		return nil
	}, nil, nil))
	go func() {
		<-began
		d.Stop(errBoom)
		close(stopped)
	}()
	b.Wait(a.Record())
	fn := func(*kernel.Call) error { t.Error("a task began after Stop"); return nil }
	onHost, err := d.Launch(device.Launch{Engine: space.HostCompute, Op: probe{&fn}})
	if err != nil {
		t.Fatal(err)
	}
	onDevice := f.launch(t, d, fn, nil, nil)
	for range 5000 {
		a.Run(onDevice)
		b.Run(onHost)
	}
	if err := errors.Join(a.Sync(), b.Sync()); !errors.Is(err, errBoom) {
		t.Errorf("error is %v", err)
	}
	if !ended || a.Begun() != 1 || b.Begun() != 0 {
		t.Errorf("the task under way ended: %v; begun: %d and %d", ended, a.Begun(), b.Begun())
	}
}

// testResetWaits: what was queued before Reset is skipped, not run by mistake.
func (f functions) testResetWaits(t *testing.T, d device.Device, _ opener) {
	s := stream(t, d, f.engine)
	ran := 0
	s.Run(f.launch(t, d, func(*kernel.Call) error {
		time.Sleep(time.Millisecond)
		return errBoom
	}, nil, nil))
	after := f.launch(t, d, func(*kernel.Call) error { ran++; return nil }, nil, nil)
	for range 100 {
		s.Run(after)
	}
	d.Reset()
	sync1(t, s)
	if ran != 0 {
		t.Errorf("%d tasks queued behind an error ran", ran)
	}
}

// testBegun counts tasks, however they were queued.
func testBegun(t *testing.T, d device.Device, _ opener) {
	a, b := stream(t, d, space.Compute), stream(t, d, space.Compute)
	task := idle(t, d, nil, nil)
	for i := range uint64(40) {
		a.Run(task)
		a.Run(task, task)
		b.Wait(a.Record())
		b.Run(task)
		sync1(t, a)
		sync1(t, b)
		if a.Begun() != 3*(i+1) || b.Begun() != i+1 {
			t.Fatalf("after %d rounds %d and %d tasks began", i+1, a.Begun(), b.Begun())
		}
	}
}
