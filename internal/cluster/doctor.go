package cluster

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/control"
	"github.com/gomem/gomem/internal/command"
)

// Diagnose has the processes join as for a run. Each answers what the first one asks,
// which says what it has found of all, itself included.
func (c Cluster) Diagnose(ctx context.Context, f command.JobFlags, w command.World) (
	findings []command.Finding, err error) {
	place, err := find(f)
	if err != nil {
		return nil, err
	}
	j := &joiner{flags: f, world: place, say: func(string) {},
		log: slog.New(slog.DiscardHandler)}
	defer func() { err = errors.Join(err, j.leave()) }()
	if place.Size == 1 {
		return local(ctx), nil
	}
	job, err := c.meet(ctx, j.join)
	if err != nil {
		return nil, err
	}
	job.Transport.Serve(deaf{})
	defer func() { err = errors.Join(err, job.Transport.Close()) }()
	answering, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		j.agreed.Answer(answering, facts)
	}()
	defer func() { cancel(); <-ended }()
	if w.Rank == 0 {
		targets, err := j.agreed.Targets(ctx)
		if err != nil {
			return nil, err
		}
		findings = converted(control.Doctor(ctx, targets))
	}
	return findings, j.agreed.Barrier(ctx, "doctor", len(job.View.Nodes))
}

// deaf takes what comes, which is nothing.
type deaf struct{}

func (deaf) Receive(distrib.NodeID, *distrib.Msg) {}
func (deaf) Down(distrib.NodeID, error)           {}

// local is what there is to say of a job of one process.
func local(ctx context.Context) []command.Finding {
	return converted(control.Doctor(ctx, []control.Target{{Ask: func(context.Context) (
		control.Facts, error) {
		return facts().Observe(), nil
	}}}))
}

// facts are what the program says of itself.
func facts() control.Facts {
	f := control.Facts{Dir: "."}
	if info, ok := debug.ReadBuildInfo(); ok {
		f.Gomem = info.Main.Version
	}
	return f
}

func converted(rows []control.Row) (out []command.Finding) {
	for _, r := range rows {
		out = append(out, command.Finding{Node: r.Node, Check: r.Check, OK: r.OK, Detail: r.Detail,
			Remedy: r.Remedy})
	}
	return out
}
