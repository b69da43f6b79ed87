package devicetest

import (
	"math"
	"testing"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan/space"
)

func testOutOfRange(t *testing.T, d device.Device, _ opener) {
	host, m := memory(t, d, space.Host, 100), memory(t, d, space.Device, 100)
	none := memory(t, d, space.Host, 0)
	if none.Write(0, nil) != nil || none.Write(0, []byte{1}) == nil {
		t.Error("a memory without bytes is written")
	}
	in := device.Copy{Engine: space.CopyIn, Src: device.Region{Mem: host, Bytes: 8},
		Dst: device.Region{Mem: m, Bytes: 8}}
	for _, r := range []device.Region{{Off: 90, Bytes: 11}, {Off: -1, Bytes: 4}, {Bytes: -1},
		{Off: math.MaxInt64, Bytes: 8}, {Off: 8, Bytes: math.MaxInt64},
		{Off: math.MinInt64, Bytes: 8}, {Off: 101}} {
		src, dst := in, in
		src.Src.Off, src.Src.Bytes, src.Dst.Bytes = r.Off, r.Bytes, r.Bytes
		dst.Dst.Off, dst.Dst.Bytes, dst.Src.Bytes = r.Off, r.Bytes, r.Bytes
		for _, c := range []device.Copy{src, dst} {
			if _, err := d.Copy(c); err == nil {
				t.Errorf("copy of %d bytes at %d of 100 is accepted", r.Bytes, r.Off)
			}
		}
		r.Mem = m
		fn := nothing
		_, err := d.Launch(device.Launch{Op: probe{&fn}, Scratch: r})
		if err == nil && r.Bytes != 0 {
			t.Errorf("scratch of %d bytes at %d of 100 is accepted", r.Bytes, r.Off)
		}
		if r.Bytes > 0 && r.Bytes < 100 {
			if m.Write(r.Off, make([]byte, r.Bytes)) == nil ||
				m.Read(r.Off, make([]byte, r.Bytes)) == nil {
				t.Errorf("%d bytes at %d of 100 are written or read", r.Bytes, r.Off)
			}
		}
	}
	in.Dst.Bytes = 4
	if _, err := d.Copy(in); err == nil {
		t.Error("a copy to half as many bytes is accepted")
	}
	o := operand(m, 0, 2)
	o.Bytes = 4
	fn := nothing
	for _, l := range []device.Launch{{In: []device.Operand{o}}, {Out: []device.Operand{o}},
		{In: []device.Operand{operand(m, 96, 2)}}, {Out: []device.Operand{operand(m, -4, 2)}}} {
		l.Op = probe{&fn}
		if _, err := d.Launch(l); err == nil {
			t.Errorf("an operand outside its region or memory is accepted: %+v", l)
		}
	}
}

// testReach: an engine works in the spaces that it says, and a task that reaches
// elsewhere is refused when it is made; and so is one of an engine that there is not.
func (o Options) testReach(t *testing.T, d device.Device, _ opener) {
	at := map[space.ID]device.Memory{}
	var all []space.Engine
	for s := range o.spaces() {
		at[s] = memory(t, d, s, 64)
		for to := range o.spaces() {
			all = append(all, space.Copier(s, to))
		}
	}
	for _, e := range all {
		if _, err := d.Stream("test", e); (err == nil) != o.has(e) {
			t.Errorf("a stream that %s: %v", e, err)
		}
		for src := range o.spaces() {
			for dst := range o.spaces() {
				fits := e.Reads() == src && e.Writes() == dst && o.has(e)
				_, err := d.Copy(device.Copy{Engine: e, Src: device.Region{Mem: at[src], Bytes: 8},
					Dst: device.Region{Mem: at[dst], Bytes: 8}})
				if (err == nil) != (fits && e.Copies()) {
					t.Errorf("copy on %s from %s to %s: %v", e, src, dst, err)
				}
				fn := nothing
				l := device.Launch{Engine: e, Op: probe{&fn},
					In:  []device.Operand{operand(at[src], 0, 2)},
					Out: []device.Operand{operand(at[dst], 8, 2)}}
				if _, err := d.Launch(l); (err == nil) != (fits && !e.Copies()) {
					t.Errorf("launch on %s from %s to %s: %v", e, src, dst, err)
				}
				l.Out, l.Scratch = nil, device.Region{Mem: at[dst], Bytes: 8}
				if _, err := d.Launch(l); (err == nil) != (fits && !e.Copies()) {
					t.Errorf("launch on %s from %s with scratch in %s: %v", e, src, dst, err)
				}
			}
		}
	}
}

// testNoSuchThing: numbers that name nothing are errors.
func (o Options) testNoSuchThing(t *testing.T, d device.Device, _ opener) {
	none := space.Copier(o.spaces(), o.spaces())
	if _, err := d.Alloc(o.spaces(), 8); err == nil && !o.Any {
		t.Error("memory of no space is made")
	}
	if _, err := d.Alloc(space.Device, -1); err == nil {
		t.Error("memory of -1 bytes is made")
	}
	if _, err := d.Stream("test", none); err == nil && !o.Any {
		t.Error("a stream of no engine is made")
	}
	fn := nothing
	if _, err := d.Launch(device.Launch{Engine: none, Op: probe{&fn}}); err == nil && !o.Any {
		t.Error("a launch on no engine is accepted")
	}
	x := operand(nil, 0, 1)
	if _, err := d.Launch(device.Launch{Op: probe{&fn}, In: []device.Operand{x}}); err == nil {
		t.Error("an operand in no memory is accepted")
	}
	c := device.Copy{Engine: space.CopyIn, Src: x.Region, Dst: x.Region}
	if _, err := d.Copy(c); err == nil {
		t.Error("a copy in no memory is accepted")
	}
}

// testForeign: memories and tasks of another device are refused.
func testForeign(t *testing.T, d device.Device, another opener) {
	other := another()
	far, near := memory(t, other, space.Device, 64), memory(t, d, space.Device, 64)
	farHost, nearHost := memory(t, other, space.Host, 64), memory(t, d, space.Host, 64)
	fn := nothing
	for _, l := range []device.Launch{{In: []device.Operand{operand(far, 0, 1)}},
		{Out: []device.Operand{operand(far, 0, 1)}}, {Scratch: device.Region{Mem: far, Bytes: 8}}} {
		l.Op = probe{&fn}
		if _, err := d.Launch(l); err == nil {
			t.Errorf("a launch with another device's memory is accepted: %+v", l)
		}
	}
	for _, ends := range [][2]device.Memory{{near, farHost}, {far, nearHost}} {
		if _, err := d.Copy(device.Copy{Engine: space.CopyIn,
			Dst: device.Region{Mem: ends[0], Bytes: 8},
			Src: device.Region{Mem: ends[1], Bytes: 8}}); err == nil {
			t.Error("a copy with another device's memory is accepted")
		}
	}
	s := stream(t, d, space.Compute)
	for _, task := range []device.Task{nil, "task", idle(t, other, nil, nil)} {
		s.Run(task)
		if err := s.Sync(); err == nil {
			t.Errorf("task %T, which is not the device's, runs", task)
		}
		d.Reset()
	}
	if s.Begun() != 0 {
		t.Errorf("%d tasks began", s.Begun())
	}
}

// testMisplaced: a task does not run on a stream of another engine, for which its
// operands were not checked.
func testMisplaced(t *testing.T, d device.Device, _ opener) {
	task := idle(t, d, nil, nil)
	for _, e := range []space.Engine{space.HostCompute, space.CopyIn, space.CopyOut} {
		s := stream(t, d, e)
		s.Run(task)
		if err := s.Sync(); err == nil || s.Begun() != 0 {
			t.Errorf("a launch for the compute engine runs on %s: %v", e, err)
		}
		d.Reset()
	}
}
