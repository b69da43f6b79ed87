package space_test

import (
	"testing"

	"github.com/gomem/gomem/plan/space"
)

// TestReach: kernels see the device's memory and nothing else; copy engines
// cross from one space to the other; the host's processor stays in its own.
func TestReach(t *testing.T) {
	for _, c := range []struct {
		e             space.Engine
		does          string
		reads, writes space.ID
		copies        bool
	}{
		{space.Compute, "runs in device", space.Device, space.Device, false},
		{space.CopyIn, "copies host to device", space.Host, space.Device, true},
		{space.CopyOut, "copies device to host", space.Device, space.Host, true},
		{space.HostCompute, "runs in host", space.Host, space.Host, false},
		{space.Copier(space.Disk, space.Host), "copies disk to host", space.Disk, space.Host, true},
		{space.Copier(254, 253), "copies space 254 to space 253", 254, 253, true},
		{space.Send, "copies host to network", space.Host, space.Network, true},
		{space.Peer, "copies network to device", space.Network, space.Device, true},
		{space.Await, "copies network to host", space.Network, space.Host, true},
		{space.Copier(7, 7), "runs in space 7", 7, 7, false},
	} {
		if c.e.String() != c.does || c.e.Reads() != c.reads || c.e.Writes() != c.writes ||
			c.e.Copies() != c.copies {
			t.Errorf("%s: reads %s, writes %s, copies %v", c.e, c.e.Reads(), c.e.Writes(),
				c.e.Copies())
		}
	}
	if space.Copier(space.Host, space.Device) != space.CopyIn ||
		space.Copier(space.Device, space.Host) != space.CopyOut {
		t.Error("the engines of two memories have other names when they are made")
	}
}

// TestNames: an engine speaks of spaces as its plan does.
func TestNames(t *testing.T) {
	names := []string{"hbm", "ram", "disk"}
	of := func(s space.ID) string { return names[s] }
	if got := space.Copier(2, 1).Name(of) + ", " + space.Compute.Name(of); got !=
		"copies disk to ram, runs in hbm" {
		t.Error(got)
	}
}
