package gomem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// Planned is a graph with the plans of its targets.
type Planned = planner.Planned

// Plan decides how to run the targets of a graph, as Compile does, and takes no
// memory for it: see planner.Plan. If some targets do not fit, the error wraps the
// *[ErrOutOfMemory] of the one that needs the most.
func Plan(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (*Planned, error) {
	ctx, logged := o.logged(ctx)
	p, err := planner.Plan(ctx, g, o.Planning(), targets...)
	logged()
	if err != nil {
		return nil, fmt.Errorf("gomem: %w", o.beside(err))
	}
	return p, nil
}

// logged has planning log what became of candidates, if the logger is for that, when it is done.
func (o Options) logged(ctx context.Context) (context.Context, func()) {
	if ctx == nil || o.Logger == nil || !o.Logger.Enabled(ctx, slog.LevelDebug) {
		return ctx, func() {}
	}
	log := planner.LogOf(ctx)
	return planner.WithLog(ctx, log), func() {
		for _, e := range log.Entries() {
			o.Logger.Debug(e.String())
		}
	}
}

// beside says of an error that there is less of a memory than its budget.
func (o Options) beside(err error) error {
	e, ok := errors.AsType[*ErrOutOfMemory](err)
	if !ok {
		return err
	}
	b := o.Beside()
	if e.Remedy.Space == space.Device && e.Remedy.Bytes > 0 {
		e.Remedy.Bytes += b
	}
	if e.Space == space.Device {
		e.Need, e.Budget, e.Beside = e.Need+b, e.Budget+b, b
		return err
	}
	if o.reserved() == 0 || e.Space != space.Host {
		return err
	}
	if o.ProcessBytes == 0 {
		return fmt.Errorf("beside %d bytes of the host's for the network: %w", o.NetworkBytes, err)
	}
	return fmt.Errorf("beside %d bytes of the host's for the network and the process: %w",
		o.reserved(), err)
}

// MinDevice is the smallest device budget, in bytes, with which Plan succeeds
// within the host's budget: a byte less is refused. The device's budget in the
// options does not count.
func MinDevice(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (int64, error) {
	return minimum(ctx, g, o, space.Device, targets)
}

// MinHost is MinDevice for the host's budget within the device's, with what is reserved
// for the network and the process.
func MinHost(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (int64, error) {
	return minimum(ctx, g, o, space.Host, targets)
}

// MinDisk is MinDevice for the disk's budget within those of device and host: 0 if they
// do without.
func MinDisk(ctx context.Context, g *graph.Graph, o Options, targets ...Target) (int64, error) {
	return minimum(ctx, g, o, space.Disk, targets)
}

func minimum(ctx context.Context, g *graph.Graph, o Options, of space.ID,
	targets []Target) (int64, error) {
	bytes, err := planner.LeastOf(ctx, g, o.Planning(), of, targets...)
	return o.withReserved(bytes, of, err)
}

// withReserved is so many bytes of a space with what no plan has of it.
func (o Options) withReserved(bytes int64, of space.ID, err error) (int64, error) {
	if err != nil {
		return 0, fmt.Errorf("gomem: %w", o.beside(err))
	}
	switch of {
	case space.Host:
		bytes += o.reserved()
	case space.Device:
		bytes += o.Beside()
	}
	return bytes, nil
}

// MinDeviceOf is MinDevice of what has been planned with these options, but for the budgets,
// in less time.
func MinDeviceOf(ctx context.Context, p *Planned, o Options) (int64, error) {
	bytes, err := p.LeastOf(ctx, o.Planning(), space.Device)
	return o.withReserved(bytes, space.Device, err)
}

// SmallerPartition is the partition size below the options' with which what has been
// planned needs less of the device than so many bytes, and how much, as far as it is
// worth trying: see [planner.Planned.Smaller].
func SmallerPartition(ctx context.Context, p *Planned, o Options,
	than int64) (planner.Remedy, error) {
	r, err := p.Smaller(ctx, o.Planning(), than)
	if err != nil {
		return planner.Remedy{}, fmt.Errorf("gomem: %w", err)
	}
	return r, nil
}
