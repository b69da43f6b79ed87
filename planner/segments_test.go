package planner

import (
	"context"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
)

// deep is a step of a network of many layers.
func deep(t *testing.T) (*graph.Graph, Target) {
	t.Helper()
	c, err := models.NewResNetConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	c.Blocks, c.Images = [4]int{1, 2, 24, 1}, 64
	m, err := models.ResNet(c)
	if err != nil {
		t.Fatal(err)
	}
	o := m.Objectives[0]
	target := Target{Name: o.Name, Fetches: []graph.Value{o.Loss}}
	for _, n := range o.Updates {
		target.Updates = append(target.Updates, n.ID)
	}
	return m.Graph, target
}

// TestSegmentsSpareTheHost: within a budget of the device that swapping does with, the
// host needs less where the forward pass may be computed again, and that budget is granted.
func TestSegmentsSpareTheHost(t *testing.T) {
	longtest.Skip(t)
	g, target := deep(t)
	ctx, o := context.Background(), Options{Policy: Auto, NoRecompute: true, Effort: 10}
	vanilla, err := Compile(ctx, g, target, Options{Policy: Vanilla})
	if err != nil {
		t.Fatal(err)
	}
	o.DeviceBytes = vanilla.Plan.Spaces[space.Device].Bytes / 2
	swapped, err := Minimum(ctx, g, o, space.Host, target)
	if err != nil {
		t.Fatal(err)
	}
	o.NoRecompute = false
	least, err := Minimum(ctx, g, o, space.Host, target)
	if err != nil {
		t.Fatal(err)
	}
	var variables int64
	for _, n := range g.Variables() {
		variables += n.Out[0].Bytes()
	}
	if (least-variables)*2 > swapped-variables {
		t.Errorf("beside %d bytes of variables the host needs %d, without computing again %d",
			variables, least-variables, swapped-variables)
	}
	o.HostBytes = least
	r, err := Compile(ctx, g, target, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Plan.Spaces[space.Host].Bytes > least {
		t.Errorf("%s takes %d bytes of the host's %d", r.Plan.Title,
			r.Plan.Spaces[space.Host].Bytes, least)
	}
}
