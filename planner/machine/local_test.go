package machine_test

import (
	"testing"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// TestSignature: nodes have one signature if their operations, with attributes, and
// types are the same, whatever they and their axes are called.
func TestSignature(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 2, 3))
	named := g.Input("named", tensor.Named(graph.F32, graph.Dim{Name: "a", Size: 2},
		graph.Dim{Name: "b", Size: 3}))
	other := g.Input("other", tensor.Of(graph.F32, 23))
	ints := g.Input("ints", tensor.Of(graph.I32, 2, 3))
	a := machine.Signature(g.Apply(worked{1, 2}, x))
	if b := machine.Signature(g.Apply(worked{1, 2}, named)); a != b {
		t.Errorf("%q and %q", a, b)
	}
	seen := map[string]string{a: "x"}
	for name, n := range map[string]*graph.Node{
		"another attribute": g.Apply(worked{1, 3}, x),
		"another shape":     g.Apply(worked{1, 2}, other),
		"another type":      g.Apply(worked{1, 2}, ints),
		"two operands":      g.Apply(worked{1, 2}, x, x),
	} {
		s := machine.Signature(n)
		if like, ok := seen[s]; ok {
			t.Errorf("%s has the signature of %s: %q", name, like, s)
		}
		seen[s] = name
	}
}

// TestLocalHost: where the host is another processor, what it does has its prices: those that
// were measured there, and its rates.
func TestLocalHost(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32))
	known, unknown := g.Apply(worked{1, 2}, x), g.Apply(worked{3, 4e6}, x)
	host := &machine.Local{Profile: builtin(t, machine.TitanX),
		Measured: map[string]time.Duration{machine.Signature(known): 9}}
	l := &machine.Local{Profile: builtin(t, machine.H200), Host: host,
		Measured: map[string]time.Duration{machine.Signature(known): 7}}
	m, alone := l.For("", g.Nodes()), host.For("", g.Nodes())
	if a, b := m.Time(known, space.Device), m.Time(known, space.Host); a != 7 || b != 9 {
		t.Errorf("7 ns are %s on the device, and 9 ns %s on the host", a, b)
	}
	if a, b := m.Time(unknown, space.Host), alone.Time(unknown, space.Device); a != b || a == 0 {
		t.Errorf("by the host's rates it is %s, not %s", b, a)
	}
	if a, b := m.Copy(space.Host, space.Host, 1<<30), alone.Copy(space.Host, space.Host,
		1<<30); a != b {
		t.Errorf("a copy in the host's memory takes %s, not %s", b, a)
	}
	if a, b := m.Copy(space.Host, space.Device, 1<<30), l.Profile.For("", nil).Copy(space.Host,
		space.Device, 1<<30); a != b {
		t.Errorf("a copy to the device takes %s, not %s", b, a)
	}
}

// TestShared: where copies take from operations, a step takes no less than all that shares the
// processor; a profile is of engines that share nothing.
func TestShared(t *testing.T) {
	var w machine.Work
	for i, e := range []space.Engine{space.Compute, space.HostCompute, space.CopyIn, space.CopyOut,
		space.Send, space.Await, space.Copier(space.Host, space.Disk)} {
		w.Add(e, time.Duration(1)<<(4*i))
	}
	profile := builtin(t, machine.TitanX)
	l := &machine.Local{Profile: profile, Shared: 0.5}
	if least := w.Least(l.For("", nil)); least != 0x11+0x1100/2 {
		t.Errorf("%+v takes %d", w, least)
	}
	if l.Slow(profile.In / 4); l.Shared != 0.125 || l.Profile.In != profile.In/4 ||
		l.Profile.Out != profile.In/4 || profile.Out != profile.In {
		t.Errorf("a quarter as fast, copies go at %g and %g, and %g of them is shared",
			l.Profile.In, l.Profile.Out, l.Shared)
	}
	if l.Slow(profile.In); l.Shared != 0.125 {
		t.Errorf("copies that may be faster cost %g", l.Shared)
	}
	if least := w.Least(profile.For("", nil)); least != 0 {
		t.Errorf("on engines of their own %+v takes %d", w, least)
	}
}

// TestLocal: what was measured has its time, on either side; the rest is the
// profile's; what is measured later changes nothing.
func TestLocal(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32))
	known, unknown := g.Apply(worked{1, 2}, x), g.Apply(worked{3, 4}, x)
	l := &machine.Local{Profile: builtin(t, machine.TitanX),
		Measured: map[string]time.Duration{machine.Signature(known): 7}}
	m := l.For("", g.Nodes())
	l.Measured[machine.Signature(unknown)] = 8
	if a, b := m.Time(known, space.Device), m.Time(known, space.Host); a != 7 || b != 7 {
		t.Errorf("7 ns are %s on the device and %s on the host", a, b)
	}
	rate := l.Profile.For("", nil).Time(unknown, space.Device)
	if a, b := m.Time(unknown, space.Device), m.Time(unknown, space.Host); a != rate || b != rate {
		t.Errorf("by rates it is %s, not %s on the device and %s on the host", rate, a, b)
	}
	if m.Time(x.Node, space.Device) != 0 || m.Name() != "titanx" || m.Kappa() != 730 {
		t.Errorf("%s has κ %v, a leaf takes %s", m.Name(), m.Kappa(), m.Time(x.Node, space.Device))
	}
}
