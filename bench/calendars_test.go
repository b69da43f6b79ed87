package main

import (
	"strings"
	"testing"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// TestCalendars: what packing loses is the arena over the most bytes at once, of the device.
func TestCalendars(t *testing.T) {
	p := &plan.Plan{Steps: make([]plan.Step, 4), Spaces: make([]plan.Space, 2),
		Slots: []plan.Slot{
			{Space: space.Device, Bytes: 100, From: 0, To: 3, Fixed: true}, // 128
			{Space: space.Device, Bytes: 64, From: 0, To: 1},
			{Space: space.Device, Bytes: 320, From: 2, To: 3},
			{Space: space.Host, Bytes: 9999, From: 0, To: 3},
		}}
	p.Spaces[space.Device].Align = 64
	var c calendars
	for _, x := range []struct {
		bytes int64
		of    string
	}{{448, "tight"}, {456, "dense"}, {560, "loose"}, {500, "less"}} {
		p.Spaces[space.Device].Bytes = x.bytes
		c.add(&planner.Result{Plan: p, Order: "creation"}, x.of)
	}
	p.Spaces[space.Device].Bytes = 999
	c.add(&planner.Result{Plan: p}, "a rival's")
	got := c.String()
	for _, want := range []string{"Of 4 plans ", ", 2 take", "1.250 (loose)", "of 1 more"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
