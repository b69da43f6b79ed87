package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
)

// profileCmd is gomem profile.
type profileCmd struct {
	modelFlags

	StepsToRun whole `group:"run" default:"3" placeholder:"N"`

	planFlags
	deviceFlags

	JSON  bool     `name:"json" group:"output"`
	PNG   location `name:"png" group:"output" placeholder:"FILE"`
	SVG   location `name:"svg" group:"output" placeholder:"FILE"`
	Trace location `group:"output" placeholder:"FILE"`
	HTML  location `name:"html" group:"output" placeholder:"FILE"`
}

// Help is the long help.
func (profileCmd) Help() string {
	return `Plans a training step as train would, runs it a few times on made-up data, and
says where memory and time go: what is in each memory at what time and who holds
the peak, what copies cost and how much of that was hidden behind computing,
which operations are slow, and what would help. Predicted times are those of a
simulation by what this machine was measured to take; with --steps-to-run 0
nothing is run, so any size can be profiled on any machine.`
}

func (profileCmd) examples() string {
	return `
  gomem profile                                  the small model
  gomem profile --device-memory 64MiB            what does a tight budget cost?
  gomem profile --model resnet --html prof.html  a page to look around in
  gomem profile --png prof.png --trace prof.json a figure, and for Perfetto
  gomem profile --size base --steps-to-run 0     without running anything
  gomem profile --device sim:titanx              another machine
  gomem profile --json                           for a script
`
}

// Run profiles.
func (c *profileCmd) Run(ctx context.Context, e *env) error {
	if err := c.trainable(); err != nil {
		return err
	}
	c.Device = e.onto(c.Device)
	if err := c.keeping(e, c.Device, c.InterpretChains); err != nil {
		return err
	}
	b, o, err := c.begin(e.stderr, c.planFlags, c.Device)
	if err != nil {
		return err
	}
	session, err := c.runsOn(o)
	if err != nil {
		return err
	}
	session.Logger = e.log
	files := c.files()
	if err := files.outputs().ready(); err != nil {
		return err
	}
	p, session, err := c.planWithin(ctx, e, b, o, session)
	if err != nil {
		return err
	}
	o.Machine = session.Machine
	x, err := c.explain(ctx, e, b, p, o, session)
	if err != nil {
		return err
	}
	if err := files.write(x); err != nil {
		return err
	}
	if c.JSON {
		return x.Report.WriteJSON(e.stdout)
	}
	return x.Report.WriteText(e.stdout)
}

// runsOn are the options of the session that runs. A machine that is known by its
// prices runs nothing.
func (c *profileCmd) runsOn(o gomem.Options) (gomem.Options, error) {
	device := c.deviceFlags
	prices, err := profileOf(gomem.Options{Device: device.Device})
	if err != nil {
		return o, err
	}
	if prices != nil {
		device.Device = gomem.Null
	}
	return device.session(o)
}

// explain runs the steps and gathers all that the profile is made of.
func (c *profileCmd) explain(ctx context.Context, e *env, b *built, p planned,
	o, session gomem.Options) (*profile.Profile, error) {
	in := knownInput(b, p)
	err := foresee(ctx, e.stderr, &in, c.Device, b, p, o, session)
	if err != nil {
		return nil, err
	}
	if c.StepsToRun > 0 && gomem.Computes(session.Device) {
		if err := enoughMemory(c.Device, p, account{}, 1); err != nil {
			return nil, fmt.Errorf("%w, or --steps-to-run 0", err)
		}
		if err := keptWithin(e.log, o, p.Planned); err != nil {
			return nil, fmt.Errorf("%w, or --steps-to-run 0", err)
		}
		defer notice(e.stderr, fmt.Sprintf("gomem: running %s",
			counted(1+int(c.StepsToRun), "step")))()
		in.Measured, in.Used, err = measure(ctx, b, p, session, int(c.StepsToRun))
		if err != nil {
			return nil, err
		}
		if err := c.compare(ctx, e.stderr, p, session, in); err != nil {
			return nil, err
		}
	}
	return profile.New(in)
}

// compare compares the steps that were run with the prediction, if that is this machine's.
func (c *profileCmd) compare(ctx context.Context, w io.Writer, p planned, o gomem.Options,
	in profile.Input) error {
	if len(in.Predicted) == 0 || len(in.Measured) == 0 {
		return nil
	}
	least := length(in.Measured[0])
	for _, r := range in.Measured {
		least = min(least, length(r))
	}
	return compare(ctx, w, p, o, length(in.Predicted), least)
}

// measure runs the first objective after a warm-up, and returns when its steps were
// done and the peaks of the memories.
func measure(ctx context.Context, b *built, p planned, o gomem.Options, steps int) ([]profile.Run,
	[]int64, error) {
	var recorder gomem.TraceRecorder
	o.Trace = &recorder
	s, err := gomem.Open(p.Planned, o)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	feeds := thesis.Feeds(b.model)
	warm := 0
	for i := range 1 + steps {
		if _, err := s.Step(ctx, p.Targets[0].Name, feeds); err != nil {
			return nil, nil, err
		}
		if i == 0 {
			warm = len(recorder.Events())
		}
	}
	var used []int64
	for _, u := range s.Usage() {
		used = append(used, u.Actual)
	}
	return profile.Runs(p.training(), recorder.Events()[warm:]), used, nil
}

// factsOf is what other plans of the model would need, on a machine.
func factsOf(ctx context.Context, w io.Writer, b *built, o gomem.Options, p planned,
	m machine.Machine) (profile.Facts, error) {
	vanilla, err := comparison(ctx, w, b, o, p)
	if err != nil {
		return profile.Facts{}, err
	}
	least, err := gomem.MinDeviceOf(ctx, p.Planned, o)
	if err != nil {
		return profile.Facts{}, err
	}
	f := profile.Facts{VanillaDevice: vanilla.Peak(space.Device), MinDevice: least}
	o.Machine, o.Model = m, b.model.Name
	for _, c := range changes(p, o) {
		other, err := gomem.Plan(ctx, b.model.Graph, c.options, b.targets...)
		switch {
		case ctx.Err() != nil:
			return f, err
		case err == nil:
			f.Changes = append(f.Changes, profile.Change{Flag: c.flag, Fits: true,
				DeviceBytes: other.Peak(space.Device),
				CopiedBytes: profile.Copied(other.Results[0].Plan),
				StepMS:      milliseconds(length(simulated(b, planned{other}, m)))})
		}
	}
	return f, nil
}

// length is how long a run takes.
func length(r profile.Run) time.Duration {
	var end time.Duration
	for _, s := range r {
		end = max(end, s.End)
	}
	return end
}

// changed is a change of one flag.
type changed struct {
	flag    string
	options gomem.Options
}

// fewSteps is up to how many steps of a plan others are made beside it, only to say
// what they would need.
const fewSteps = 20_000

// changes are what is tried, so that advice can name it: other sizes of partitions,
// and what the policy leaves to the user.
func changes(p planned, o gomem.Options) []changed {
	var out []changed
	partition := p.Results[0].Options.Partition
	if o.Policy == planner.Auto || len(p.training().Steps) > fewSteps {
		partition = 0
	}
	try := func(flag string, change func(*gomem.Options)) {
		other := o
		change(&other)
		out = append(out, changed{flag, other})
	}
	if partition > 0 {
		for _, n := range []int{max(1, partition/2), 2 * partition, 10 * partition} {
			try(fmt.Sprintf("--partition %d", n), func(o *gomem.Options) { o.Partition = n })
		}
		if !o.NoPlacement {
			try("--no-placement", func(o *gomem.Options) { o.NoPlacement = true })
		}
		if !o.NoSwap {
			try("--no-swap", func(o *gomem.Options) { o.NoSwap = true })
		}
	}
	if o.NoFusion {
		try("--fuse", func(o *gomem.Options) { o.NoFusion = false })
	}
	return out
}

// profileFiles are what a profile is written to; those without a path are not.
type profileFiles []profileFile

type profileFile struct {
	flag, path string
	write      func(*profile.Profile, io.Writer) error
}

// files are those that the flags name.
func (c *profileCmd) files() profileFiles {
	return profileFiles{
		{"--png", string(c.PNG), (*profile.Profile).WritePNG},
		{"--svg", string(c.SVG), (*profile.Profile).WriteSVG},
		{"--trace", string(c.Trace), (*profile.Profile).WriteTrace},
		{"--html", string(c.HTML), (*profile.Profile).WriteHTML},
	}
}

// directory are all files of a profile, in a directory; no figures if there are no
// times to draw.
func directory(dir string, in profile.Input) profileFiles {
	at := func(name string, write func(*profile.Profile, io.Writer) error) profileFile {
		return profileFile{"--profile", filepath.Join(dir, name), write}
	}
	files := profileFiles{
		at("profile.txt", func(p *profile.Profile, w io.Writer) error {
			return p.Report.WriteText(w)
		}),
		at("profile.json", func(p *profile.Profile, w io.Writer) error {
			return p.Report.WriteJSON(w)
		}),
		at("trace.json", (*profile.Profile).WriteTrace),
		at("profile.html", (*profile.Profile).WriteHTML),
	}
	if in.Predicted == nil && in.Measured == nil {
		return files
	}
	return append(files, at("profile.png", (*profile.Profile).WritePNG),
		at("profile.svg", (*profile.Profile).WriteSVG))
}

// outputs are the paths, by the flags that name them.
func (files profileFiles) outputs() outputs {
	var out outputs
	for _, f := range files {
		out = append(out, asked{f.flag, f.path})
	}
	return out
}

func (files profileFiles) write(p *profile.Profile) error {
	for _, f := range files {
		if f.path == "" {
			continue
		}
		err := writeFile(f.path, func(w io.Writer) error { return f.write(p, w) })
		if err != nil {
			return err
		}
	}
	return nil
}
