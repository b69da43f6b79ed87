package executor_test

import (
	"testing"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/null"
	"github.com/gomem/gomem/planner"
)

// ledger is a device that adds up what its launches cost.
type ledger struct {
	*null.Device
	sum device.Cost
}

func (d *ledger) Launch(l device.Launch) (device.Task, error) {
	d.sum.FLOPs += l.Cost.FLOPs
	d.sum.Bytes += l.Cost.Bytes
	return d.Device.Launch(l)
}

// TestLaunchesCarryCost: a device is told what every operation takes.
func TestLaunchesCarryCost(t *testing.T) {
	d := &ledger{Device: null.Open()}
	r := newTrainerOn(t, d, planner.Options{Policy: planner.Vanilla})
	if want := int64(r.kernel); d.sum.FLOPs != 4*want || d.sum.Bytes != 32*want {
		t.Errorf("%d operations cost %+v", r.kernel, d.sum)
	}
}
