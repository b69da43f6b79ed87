package command

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// priced is options that plan a model by the prices of the machine that a device
// stands for. All but simulated ones stand for the machine at hand.
func (b *built) priced(o gomem.Options, device string) (gomem.Options, error) {
	o.Device, o.Model = device, b.model.Name
	profile, err := profileOf(o)
	if err != nil {
		return o, err
	}
	if profile != nil {
		o.Machine = profile
	}
	if err := o.Validate(); err != nil {
		return o, usagef("--device %s: %w", device, err)
	}
	return o, nil
}

// weighs reports whether plans are found by what this machine takes for them.
func weighs(o gomem.Options) bool {
	return o.Machine == nil && o.Policy.Searches() && gomem.Computes(o.Device)
}

// resident is the plan of a policy that weighs plans where nothing has to be weighed: that
// is vanilla's, which is taken where it fits the budgets. There is none where it does not.
func (b *built) resident(ctx context.Context, o gomem.Options) (planned, error) {
	if !weighs(o) {
		return planned{}, nil
	}
	o.Policy = baseline
	p, err := planAll(ctx, io.Discard, b, o)
	if _, large := errors.AsType[*gomem.ErrOutOfMemory](err); large {
		return planned{}, nil
	}
	if err != nil || p.Plain() && !o.NoFusion { // a larger graph
		return planned{}, err
	}
	return p, nil
}

// measured is options that plan by what this machine was measured to take, if that
// matters: for the machine at hand, and for a policy that weighs times in a budget that
// vanilla does not fit. Before the machine is measured, calm is called.
func (b *built) measured(ctx context.Context, w io.Writer, o gomem.Options, calm func()) (
	gomem.Options, error) {
	if !weighs(o) {
		return o, nil
	}
	free := o
	free.Policy, free.DeviceBytes, free.HostBytes, free.DiskBytes = baseline, 0, 0, 0
	vanilla, err := planAll(ctx, io.Discard, b, free)
	if err != nil {
		return o, err
	}
	near := vanilla.Peak(space.Device) + o.Beside()
	if near <= o.DeviceBytes && vanilla.Peak(space.Host) <= o.Planning().HostBytes {
		return o, nil
	}
	calm()
	local, err := thisMachine(ctx, w, executed(vanilla), o)
	if err == nil {
		o.Machine = local
	}
	return o, err
}

// profileOf is the profile of the options' device if it is known by one, or nil.
func profileOf(o gomem.Options) (*machine.Profile, error) {
	p, err := o.Profile()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("--%w", err)
	}
	return p, err
}

// stepTime is how long a training step takes by the prices that plans were made by:
// every objective as often as it is executed. Without objectives it is that of the
// target that is executed the most, the first.
func stepTime(b *built, p planned) time.Duration {
	var total time.Duration
	if len(b.model.Objectives) == 0 {
		return p.Results[0].Step
	}
	for i, o := range b.model.Objectives {
		total += time.Duration(o.Times) * p.Results[i].Step
	}
	return total
}
