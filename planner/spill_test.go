package planner

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
)

// TestDiskMinimumIsExact: with a disk, of any size, the minimum of the host works
// and a byte less is refused with that number; it is no more than without, and a
// larger disk never asks for more of the host.
func TestDiskMinimumIsExact(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		without, err := Minimum(ctx, g, o, space.Host, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.DiskBytes = 1 << 60
		least, err := Minimum(ctx, g, o, space.Host, targets...)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "small") {
			o.DiskBytes = rapid.Int64Range(1, 1<<20).Draw(t, "disk")
		}
		smaller, err := Minimum(ctx, g, o, space.Host, targets...)
		if err != nil {
			t.Fatal(err)
		}
		if smaller < least || without < smaller {
			t.Fatalf("%s: %d bytes without a disk, %d with %d bytes of it, %d with plenty", o,
				without, smaller, o.DiskBytes, least)
		}
		o.HostBytes = smaller
		if e := refused(t, g, o, targets); e != nil {
			t.Fatalf("%s: the minimum is refused: %v", o, e)
		}
		if smaller == 1 {
			return
		}
		o.HostBytes = smaller - 1
		e := refused(t, g, o, targets)
		switch {
		case e == nil:
			t.Fatalf("%s: a byte under the minimum %d fits", o, smaller)
		case e.Space == space.Disk:
			checkDisk(t, g, o, targets, e.Need)
		case e.Need != smaller || e.Space != space.Host:
			t.Fatalf("%s: a byte under the minimum %d: %v", o, smaller, e)
		}
	})
}

// checkDisk demands that so much of a disk, more than there is, is what works, and a byte
// less is not.
func checkDisk(t *rapid.T, g *graph.Graph, o Options, targets []Target, need int64) {
	if need <= o.DiskBytes {
		t.Fatalf("%s: the disk is short, and %d bytes are enough", o, need)
	}
	o.DiskBytes = need
	if e := refused(t, g, o, targets); e != nil {
		t.Fatalf("%s: with %d bytes of disk: %v", o, need, e)
	}
	o.DiskBytes = need - 1
	if e := refused(t, g, o, targets); need > 1 && (e == nil || e.Space != space.Disk ||
		e.Need != need) {
		t.Fatalf("%s: with a byte of disk less than %d: %v", o, need, e)
	}
}

// TestDiskAsRemedy: where the host is short and there is no disk, one of the size that is
// named would do; a disk that is too small is named.
func TestDiskAsRemedy(t *testing.T) {
	longtest.Skip(t)
	disks := 0
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		if !o.Policy.Partitioned() || o.NoPlacement || o.NoSwap {
			t.Skip("something gentler may help")
		}
		device, err := Minimum(ctx, g, o, space.Device, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.DeviceBytes = device * rapid.Int64Range(100, 200).Draw(t, "percent of the device") / 100
		host, err := Minimum(ctx, g, o, space.Host, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.HostBytes = max(1, host*rapid.Int64Range(50, 99).Draw(t, "percent")/100)
		e := refused(t, g, o, targets)
		if e == nil || e.Remedy.Change != UseDisk {
			return
		}
		disks++
		if r := e.Remedy; e.Space == space.Disk || r.Space != space.Disk || r.Bytes <= 0 {
			t.Fatalf("%s: %v", o, e)
		}
		o.DiskBytes = e.Remedy.Bytes
		if e := refused(t, g, o, targets); e != nil {
			t.Fatalf("%s: with the disk: %v", o, e)
		}
	})
	if disks == 0 {
		t.Error("no disk ever helped")
	}
}

// needOf is what a plan takes.
func needOf(p *plan.Plan) lower.Need {
	var n lower.Need
	for i, s := range p.Spaces {
		n[i] = s.Bytes
	}
	return n
}

// TestDiskIsForWhatDoesNotFit: where the host's memory is enough, nothing goes to the
// disk, and plans are those that there are without.
func TestDiskIsForWhatDoesNotFit(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		least, err := Minimum(ctx, g, o, space.Host, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.HostBytes = least
		without, err := All(ctx, g, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		o.DiskBytes = 1 << 40
		with, err := All(ctx, g, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range with {
			if got, want := needOf(r.Plan), needOf(without[i].Plan); got != want {
				t.Fatalf("%s: with a disk a plan takes %d bytes, without %d", o, got, want)
			}
		}
	})
}

// TestLeastDiskIsExact: the smallest disk is a number, within budgets of device and host; it
// works, and a byte less is refused. Where the host has room for all, it is nothing.
func TestLeastDiskIsExact(t *testing.T) {
	draws(t, 1, 20, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o, ctx := anyOptions(t), context.Background()
		if o.Effort = 20; !o.Policy.Partitioned() {
			o = Options{Policy: o.Policy}
		}
		least := func(of space.ID) int64 {
			n, err := LeastOf(ctx, g, o, of, targets...)
			if err != nil {
				t.Fatalf("%s: %s: %v", o, of, err)
			}
			return n
		}
		without := least(space.Host)
		if disk := least(space.Disk); disk != 0 {
			t.Fatalf("%s: %d bytes of disk are needed where there is room for all", o, disk)
		}
		o.DiskBytes = 1 << 40
		o.HostBytes, o.DiskBytes = least(space.Host), 0
		disk := least(space.Disk)
		if o.HostBytes < without != (disk > 0) {
			t.Fatalf("%s: with %d of %d bytes of the host the least disk is %d", o, o.HostBytes,
				without, disk)
		}
		if disk == 0 {
			return
		}
		if o.DiskBytes = disk; Fits(ctx, g, o, targets...) != nil {
			t.Fatalf("%s: the least disk, of %d bytes, is refused", o, disk)
		}
		if o.DiskBytes = disk - 1; disk > 1 && Fits(ctx, g, o, targets...) == nil {
			t.Fatalf("%s: a byte less than the least disk, of %d, works", o, disk)
		}
	})
}

// TestDiskIsForTheRest: of weights that neither device nor host have room for together, a step
// reads from the disk hardly more than these, though the disk has nothing but variables, and plans
// for two batches share them.
func TestDiskIsForTheRest(t *testing.T) {
	const weights, onDevice, onHost, slack = 24, 6, 12, 5
	g := graph.New()
	var w []graph.Value
	for i := range weights {
		w = append(w, g.Variable(fmt.Sprint("w", i), graph.Of(graph.F32, 256, 256), graph.Init{}))
	}
	var targets []Target
	for _, rows := range []int{1, 8} {
		x := g.Input(fmt.Sprint("x", rows), graph.Of(graph.F32, rows, 256))
		for _, v := range w {
			x = ops.MatMul(x, v)
		}
		targets = append(targets, Target{Name: fmt.Sprint("rows", rows), Fetches: []graph.Value{x}})
	}
	size := w[0].Type().Bytes()
	o := Options{Policy: Auto, DeviceBytes: onDevice * size, HostBytes: onHost * size,
		DiskBytes: 2 * weights * size}
	p, err := Plan(context.Background(), g, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Results {
		read := r.Plan.Copied(space.Copier(space.Disk, space.Host))
		if most := (weights - onDevice - onHost + slack) * size; read > most {
			t.Errorf("%s: a step reads %d weights from the disk, want %d at the most",
				r.Plan.Title, read/size, most/size)
		}
	}
	checkGranted(t, g, o, targets)
}
