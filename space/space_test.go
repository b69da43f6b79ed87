package space_test

import (
	"testing"

	"github.com/gomem/gomem/space"
)

// TestReach: kernels see the device's memory and nothing else; copy engines
// cross from one space to the other; the host's processor stays in its own.
func TestReach(t *testing.T) {
	for _, c := range []struct {
		e             space.Engine
		name          string
		reads, writes space.ID
		copies        bool
	}{
		{space.Compute, "compute", space.Device, space.Device, false},
		{space.CopyIn, "copy-in", space.Host, space.Device, true},
		{space.CopyOut, "copy-out", space.Device, space.Host, true},
		{space.HostCompute, "host", space.Host, space.Host, false},
	} {
		if c.e.String() != c.name || c.e.Reads() != c.reads || c.e.Writes() != c.writes ||
			c.e.Copies() != c.copies {
			t.Errorf("%s reads %s, writes %s, copies %v", c.e, c.e.Reads(), c.e.Writes(),
				c.e.Copies())
		}
	}
}

// TestUnknown: a number from a damaged plan prints instead of panicking.
func TestUnknown(t *testing.T) {
	if s := space.ID(7).String(); s != "space 7" {
		t.Error(s)
	}
	if s := space.Engine(9).String(); s != "engine 9" {
		t.Error(s)
	}
}
