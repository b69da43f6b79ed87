package devicetest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan/space"
)

func region(m device.Memory, off, bytes int64) device.Region {
	return device.Region{Mem: m, Off: off, Bytes: bytes}
}

// silent is a call that does nothing.
func silent(<-chan struct{}, [][]byte, []byte) error { return nil }

// testCall: a call has the bytes of its regions where they are, its first operand's in
// Data as well; what it writes there stays.
func testCall(t *testing.T, d device.Device, _ opener) {
	m := memory(t, d, space.Host, 100)
	if err := errors.Join(m.Write(0, []byte("four")), m.Write(8, []byte("gate"))); err != nil {
		t.Fatal(err)
	}
	s := stream(t, d, space.Send)
	for _, data := range []int64{0, 64} {
		task, err := d.Call(device.Call{Engine: space.Send, Data: region(m, data, 4),
			In: []device.Region{region(m, 0, 4), region(m, 8, 4)},
			Do: func(_ <-chan struct{}, in [][]byte, data []byte) error {
				if string(in[0]) != "four" || string(in[1]) != "gate" || string(data) != "four" {
					t.Errorf("the call has %q and %q", in, data)
				}
				copy(data, "five")
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		s.Run(task)
		sync1(t, s)
		got := make([]byte, 4)
		if err := m.Read(data, got); err != nil || !bytes.Equal(got, []byte("five")) {
			t.Errorf("the call leaves %q, %v", got, err)
		}
		if err := m.Write(0, []byte("four")); err != nil {
			t.Fatal(err)
		}
	}
}

// testCallCopies: an operand that is shorter than Data is copied to where that begins.
func testCallCopies(t *testing.T, d device.Device, _ opener) {
	m := memory(t, d, space.Host, 100)
	if err := errors.Join(m.Write(0, []byte("four")), m.Write(64, []byte("eightlet"))); err != nil {
		t.Fatal(err)
	}
	s := stream(t, d, space.Send)
	called := false
	task, err := d.Call(device.Call{Engine: space.Send, Data: region(m, 64, 8),
		In: []device.Region{region(m, 0, 4)},
		Do: func(_ <-chan struct{}, in [][]byte, data []byte) error {
			if called = true; string(in[0]) != "four" || string(data) != "fourtlet" {
				t.Errorf("the call has %q and %q", in, data)
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	s.Run(task)
	sync1(t, s)
	if !called {
		t.Error("the call is not made")
	}
}

// testCallStops: a call that waits hears of an error elsewhere; its own is the device's,
// if it is the first.
func testCallStops(t *testing.T, d device.Device, _ opener) {
	m := memory(t, d, space.Host, 8)
	waits := func(stop <-chan struct{}, _ [][]byte, _ []byte) error {
		<-stop
		return errors.New("stopped")
	}
	fails := func(<-chan struct{}, [][]byte, []byte) error { return errBoom }
	for range 3 {
		awaits, sends := stream(t, d, space.Await), stream(t, d, space.Send)
		for s, c := range map[device.Stream]device.Call{
			awaits: {Engine: space.Await, Do: waits, Name: "waits"},
			sends:  {Engine: space.Send, Do: fails, Name: "fails"}} {
			c.Data = region(m, 0, 8)
			task, err := d.Call(c)
			if err != nil {
				t.Fatal(err)
			}
			s.Run(task)
		}
		err := errors.Join(awaits.Sync(), sends.Sync())
		if e, ok := errors.AsType[*device.Error](err); !ok || e.Name != "fails" ||
			!errors.Is(err, errBoom) {
			t.Errorf("error is %v", err)
		}
		d.Reset()
	}
}

// testCallReach: calls are of the network's engines, on whose streams they run, and have
// host memory of the device; what they touch is noted.
func testCallReach(t *testing.T, d device.Device, another opener) {
	host, near := memory(t, d, space.Host, 100), memory(t, d, space.Device, 100)
	far := memory(t, another(), space.Host, 100)
	good := device.Call{Engine: space.Send, Data: region(host, 64, 8),
		In: []device.Region{region(host, 0, 8)}, Do: silent}
	for what, change := range map[string]func(c *device.Call){
		"compute engine":  func(c *device.Call) { c.Engine = space.HostCompute },
		"copy engine":     func(c *device.Call) { c.Engine = space.CopyOut },
		"device memory":   func(c *device.Call) { c.Data = region(near, 0, 8) },
		"device operand":  func(c *device.Call) { c.In = []device.Region{region(near, 0, 8)} },
		"foreign memory":  func(c *device.Call) { c.Data = region(far, 0, 8) },
		"foreign operand": func(c *device.Call) { c.In = []device.Region{region(far, 0, 8)} },
		"outside":         func(c *device.Call) { c.Data = region(host, 96, 8) },
		"no memory":       func(c *device.Call) { c.Data.Mem = nil },
		"too long":        func(c *device.Call) { c.In = []device.Region{region(host, 0, 12)} },
	} {
		c := good
		change(&c)
		if _, err := d.Call(c); err == nil {
			t.Errorf("%s: the call is accepted", what)
		}
	}
	task, err := d.Call(good)
	if err != nil || host.Used() != 0 {
		t.Fatalf("used %d, %v", host.Used(), err)
	}
	s, other := stream(t, d, space.Send), stream(t, d, space.Await)
	other.Run(task)
	if err := other.Sync(); err == nil || other.Begun() != 0 {
		t.Errorf("a call to send runs where values are awaited: %v", err)
	}
	d.Reset()
	s.Run(task)
	sync1(t, s)
	if host.Used() != 72 || s.Begun() != 1 {
		t.Errorf("used %d, want 72; begun %d", host.Used(), s.Begun())
	}
}
