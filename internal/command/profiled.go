package command

import (
	"context"
	"io"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/train"
)

// profiled writes the profile of a run's first steps, if it is wanted. Of a run that
// was stopped it has what is known already, since the wish is to end.
func (c *trainCmd) profiled(ctx context.Context, e *env, b *built, p planned,
	o, session gomem.Options, s train.Summary) error {
	if c.Profile == "" {
		return nil
	}
	in := knownInput(b, p)
	if !s.Interrupted {
		if err := foresee(ctx, e.stderr, &in, c.Device, b, p, o, session); err != nil {
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
	return directory(string(c.Profile), in).write(x)
}

// outputs are the files that a run writes beside its checkpoints, those of a profile with figures.
func (c *trainCmd) outputs() outputs {
	files := outputs{{"--trace", string(c.Trace)}}
	if c.Profile == "" {
		return files
	}
	in := profile.Input{Predicted: profile.Run{}}
	return append(files, directory(string(c.Profile), in).outputs()...)
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
