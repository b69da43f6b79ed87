package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/train"
)

// traceFlags say what is written of when the operations of a run were at work.
type traceFlags struct {
	Trace   location `group:"output" placeholder:"FILE"`
	Profile location `group:"output" placeholder:"DIR"`
}

// reachable tries the paths before anything takes long.
func (t traceFlags) reachable() error {
	if t.Profile != "" {
		if err := writable(string(t.Profile)); err != nil {
			return fmt.Errorf("--profile %s: %w", t.Profile, bare(err))
		}
	}
	return t.outputs().ready()
}

// traced runs f, with a recorder and its file around it if --trace is given. A
// run that was stopped has a timeline too.
func (t traceFlags) traced(s *gomem.Options, f func() error) error {
	if t.Profile != "" {
		s.Trace = &gomem.TraceRecorder{}
	}
	if t.Trace == "" {
		return f()
	}
	out, err := createFile(string(t.Trace))
	if err != nil {
		return err
	}
	defer out.abandon()
	s.Trace = &gomem.TraceRecorder{}
	err = f()
	if _, stopped := errors.AsType[*stoppedError](err); err != nil && !stopped {
		return err
	}
	return cmp.Or(out.commit(s.Trace.WriteJSON(out)), err)
}

// outputs are the files that a run writes beside its checkpoints, those of a profile with figures.
func (t traceFlags) outputs() outputs {
	files := outputs{{"--trace", string(t.Trace)}}
	if t.Profile == "" {
		return files
	}
	in := profile.Input{Predicted: profile.Run{}}
	return append(files, directory(string(t.Profile), in).outputs()...)
}

// profiled writes the profile of a run's first steps, if it is wanted. Of a run that
// was stopped it has what is known already, since the wish is to end.
func (t traceFlags) profiled(ctx context.Context, e *env, device string, b *built,
	p planned, o, session gomem.Options, s train.Summary) error {
	if t.Profile == "" {
		return nil
	}
	in := knownInput(b, p)
	if !s.Interrupted {
		if err := foresee(ctx, e.stderr, &in, device, b, p, o, session); err != nil {
			return err
		}
	}
	in.Used = []int64{s.ActualDevicePeak, s.ActualHostPeak, s.ActualDiskPeak}[:len(s.Usage)]
	var others []*plan.Plan
	for _, r := range p.Results[1:] {
		others = append(others, r.Plan)
	}
	in.Measured = profile.Runs(in.Plan, session.Trace.Events(), others...)
	if len(in.Measured) > 1 {
		in.Measured = in.Measured[1:] // the first one warms up
	}
	x, err := profile.New(in)
	if err != nil {
		return err
	}
	return directory(string(t.Profile), in).write(x)
}

// knownInput is what is known of a plan without a machine.
func knownInput(b *built, p planned) profile.Input {
	return profile.Input{Plan: p.training(), Graph: p.Graph, Model: b.model.Name,
		Size: b.model.Size}
}

// foresee adds what a machine is predicted to take, and what other plans would need.
func foresee(ctx context.Context, w io.Writer, in *profile.Input, device string, b *built,
	p planned, o, session gomem.Options) error {
	m, about, err := pricer(ctx, w, device, p, session)
	if err != nil {
		return err
	}
	in.Machine, in.Predicted = about, simulated(b, p, m)
	in.Facts, err = factsOf(ctx, w, b, o, p, m)
	return err
}
