package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/train"
)

// trainCmd is gomem train.
type trainCmd struct {
	modelFlags

	Config configFile `group:"training" placeholder:"FILE"`

	Data   location `group:"data" placeholder:"SPEC"`
	Seed   uint64   `group:"training" default:"0" placeholder:"N"`
	Steps  count    `group:"training" xor:"duration" placeholder:"N"`
	Epochs passes   `group:"training" xor:"duration" placeholder:"X"`

	heldOutFlags

	Factors count `group:"model" placeholder:"N"`
	ldaFlags
	sparseFlags
	treeFlags
	Strict    bool     `group:"data"`
	Samples   location `group:"output" placeholder:"DIR"`
	Tokenizer location `group:"data" placeholder:"FILE"`

	saveFlags
	rateFlags
	watchFlags
	meetFlags
	keepFlags
	planFlags
	deviceFlags

	given   given            // what was read before the model was built
	past    past             // what is resumed
	worker  worker           // of a job of several
	fleet   *fleet           // of several devices of this process; nil: there is one
	reading *soon[*trainCmd] // of a first worker that began to before it joined
	config  keptConfig       // of the run

	JSON bool `name:"json" group:"output"`

	traceFlags
}

// Help is the long help.
func (trainCmd) Help() string {
	return `Trains a model within the device memory it is given.
The plan of a step is made and verified first; a budget that cannot be met is
refused with the smallest that can. On a terminal a bar shows the progress; in a
pipe, lines do. Plan flags change memory and time, never the losses or the
weights.

Ctrl-C finishes the step, saves if --save or --resume is given, and says how to
continue; so does a request to terminate, a terminal that is closed, and standard
output that nobody reads any longer. A second signal kills. The exit status is 0
for a run that ended or was saved, 1 for a failure, standard output that cannot
be written included, 2 for a command line that makes no sense, and 128 and the
signal's number where a signal cut a run short that was not saved, or nobody
read what it said.`
}

func (trainCmd) examples() string {
	return `
  gomem train --model moe --partition 200        s64 on Go's documentation, 192MiB
  gomem train --size s512 --steps 50             a minute's try
  gomem train --save run1 --save-every 100       keep checkpoints
  gomem train --resume run1                      continue, and save there again
  gomem train --data tsv:pairs.tsv --epochs 2    other data
  gomem train --model gpt --network DIR --init DIR --lora rank=16
  gomem train --policy vanilla                   the baseline: same losses, more memory
  gomem train --device-memory 64MiB --json       a tighter budget, JSON lines
`
}

const defaultSteps = 300

// tracedSteps is how many steps --trace records.
const tracedSteps = 3

// Run trains.
func (c *trainCmd) Run(ctx context.Context, e *env) error {
	err := c.run(ctx, e)
	if errors.Is(err, context.Canceled) { // before the first step
		return &unsavedError{err}
	}
	return err
}

func (c *trainCmd) run(ctx context.Context, e *env) error {
	e = e.orderly()
	if err := c.restartable(e, c.Save != ""); err != nil {
		return err
	}
	c.treeFlags.loss = c.Loss
	if err := c.adoptTables(e.given); err != nil {
		return err
	}
	devices, err := several(c.Device)
	if err != nil {
		return err
	}
	if isShallow(c.Model) {
		if len(devices) > 1 {
			return usagef("--device %s does nothing for --model %s, which has no layers: want "+
				"gomem-cluster train --local %d", c.Device, c.Model, len(devices))
		}
		return c.learn(ctx, e)
	}
	if err := c.adopt(e.given); err != nil {
		return err
	}
	if err := c.fitting(); err != nil {
		return err
	}
	if _, err := c.scheme(c.Model, c.meetFlags); e.extras.Cluster != nil && err != nil {
		return err
	}
	if len(devices) > 1 {
		return c.abreast(ctx, e, devices)
	}
	if c.Local > 1 && e.extras.Cluster != nil {
		if _, err := c.meshed(int(c.Local), c.unmeshed()...); err != nil {
			return err
		}
	}
	if err := c.before(e, c.meetFlags, c.Resume != ""); err != nil {
		return err
	}
	w, err := c.world(ctx, e, append(c.keepFlags.given(), option{"metrics", c.counters() != ""}),
		savedRun{c.Save, false}.again)
	if err != nil {
		return err
	}
	c.settle(e, w, c.Resume)
	if w.Size > 1 {
		meet := func(ctx context.Context, say func(string), log *slog.Logger) (*Job, error) {
			return e.extras.Cluster.Join(ctx, c.flags(), w, say, log)
		}
		return c.together(ctx, e, w, meet)
	}
	return c.alone(ctx, e)
}

// alone trains as the only worker, or as the one that c.worker.member is.
func (c *trainCmd) alone(ctx context.Context, e *env) error {
	if c.reading == nil { // else that is done
		if err := c.check(); err != nil {
			return err
		}
	}
	m, err := c.ready(ctx, e)
	if err != nil {
		return err
	}
	session := m.session
	session.Logger = e.log
	if m := c.worker.member; m != nil {
		session.Network, session.Meter = m.Network(), m
	}
	return c.traced(&session, func() error { return c.prepare(ctx, e, m, session) })
}

// check refuses what can be refused before anything is read.
func (c *trainCmd) check() error {
	k, err := kindOf(c.Model)
	if err != nil {
		return err
	}
	if err := k.takes(c.particular()...); err != nil {
		return err
	}
	if c.Store != "" && c.LoRA != "" && c.Init == "" && c.Resume == "" {
		return usagef("--store %s keeps matrices as they are: give --init, which has them", c.Store)
	}
	o, err := c.options(0, 0)
	if err == nil {
		_, err = c.session(o)
	}
	if err != nil {
		return err
	}
	return c.reachable()
}

// prepare reads the rest of the data, and then trains.
func (c *trainCmd) prepare(ctx context.Context, e *env, m *draft, session gomem.Options) error {
	b := m.built
	d, err := b.kind.load(ctx, e.stderr, c, b.model)
	if err != nil {
		return err
	}
	if c.EvalShare > 0 && d.batches.HeldOutBatches() == 0 {
		return fmt.Errorf("--eval-share %v holds nothing out of %s: give a larger one",
			float64(c.EvalShare), d.about)
	}
	if c.EvalData != "" {
		if d, err = c.evaluatedOn(ctx, e.stderr, b, d, c.Seed, c.Strict); err != nil {
			return err
		}
	}
	if err := c.Epochs.countable(d.batches, b.model); err != nil {
		return err
	}
	if err := c.refit(ctx, e, m); err != nil {
		return err
	}
	o, p, h := m.options, m.planned, m.header
	if session.Trace != nil {
		session.Trace.Limit = tracedSteps * len(p.training().Steps)
	}
	h.Data, h.facts = d.about, d.facts
	if d.batches.HeldOutBatches() == 0 {
		h.warning = fmt.Sprintf("nothing is held out of %s, so that nothing says what is learnt: "+
			"give --eval-share for a larger share, or --eval-data", c.spec())
	}
	run, err := c.runOptions(b, d, session)
	if err != nil {
		return err
	}
	run.Planned = p.Planned
	if c.worker.member != nil {
		if run.Parallel, err = c.worker.member.Parallel(m.exchanges); err != nil {
			return err
		}
		run.Parallel.Mesh = processes(o) > 1
	}
	return c.train(ctx, e, h, run, func(s train.Summary) error {
		if err := c.profiled(ctx, e, c.Device, b, p, o, session, s); err != nil {
			return err
		}
		_, local := o.Machine.(*machine.Local)
		if !local || c.worker.member != nil || s.Interrupted {
			return nil
		}
		return compare(ctx, e.stderr, p, session, stepTime(b, p), s.StepMedian)
	})
}

// reachable tries the paths of a run before anything takes long. A run that is
// resumed goes on saving where it was, unless it is told otherwise.
func (c *trainCmd) reachable() error {
	if x := c.past.from; x != nil && c.Save == "" && c.worker.leads() {
		c.Save = location(filepath.Dir(x.Path))
	}
	if err := c.saveFlags.reachable(c.worker.leads()); err != nil {
		return err
	}
	if c.Samples != "" {
		if _, err := train.SampleWriter(string(c.Samples)); err != nil {
			return err
		}
	}
	return c.traceFlags.reachable()
}

// fitting refuses flags of a run that the model has no use for.
func (c *trainCmd) fitting() error {
	if err := c.saveFlags.check(); err != nil {
		return err
	}
	if err := c.heldOutFlags.check(string(c.Data)); err != nil {
		return err
	}
	if err := c.saveFlags.on(c.Device); err != nil {
		return err
	}
	if err := c.watchFlags.check(c.Save != "" || c.Resume != ""); err != nil {
		return err
	}
	k, err := kindOf(c.Model)
	if err == nil {
		err = c.trainable()
	}
	if err != nil {
		return err
	}
	err = k.takes(append(append(c.ldaFlags.given(), c.treeFlags.given()...),
		option{"samples", c.Samples != ""},
		option{"bleu", c.BLEU != nil}, option{"tokenizer", c.Tokenizer != ""},
		option{"strict", c.Strict}, option{"factors", c.Factors > 0},
		option{"lambda", c.Lambda > 0}, option{"gap", c.Gap > 0})...)
	if err != nil {
		return err
	}
	if err := k.learnsFrom(string(c.EvalData)); err != nil {
		return err
	}
	return k.learnsFrom(string(c.Data))
}

// enoughMemory refuses a plan that this machine cannot hold, for each of some workers, and what is
// known of what the process has beside it.
func enoughMemory(device string, p planned, b account, workers int) error {
	return enoughOf(machineMemory(), device, p, b, workers)
}

// enoughOf is enoughMemory of a machine that has so much, 0 if that is unknown.
func enoughOf(have int64, device string, p planned, b account, workers int) error {
	need := ofMachine(device, p.Planned) + b.total()
	of := fmt.Sprintf("device %s and host %s together", size(p.Peak(space.Device)),
		size(p.Peak(space.Host)))
	if _, gpu := gomem.GPU(device); gpu {
		of = "the host's part"
	}
	if workers > 1 {
		need *= int64(workers)
		of += fmt.Sprintf(", for each of %d devices", workers)
	}
	if !gomem.Computes(device) || have == 0 || need <= have {
		return nil
	}
	if b != (account{}) {
		help := "use a smaller model or batch"
		if most := have - (need - p.Peak(space.Host) - b.total()); most > 0 { // of the process
			help = fmt.Sprintf("use --host-memory %dMiB, if that is enough, or a smaller model or "+
				"batch", most>>20)
		}
		return fmt.Errorf("the process takes %s of this machine's memory (%s, and %s), it may "+
			"have %s: %s", size(need), of, &b, size(have), help)
	}
	return fmt.Errorf("the plan takes %s of this machine's memory (%s), it has %s: use a smaller "+
		"model or batch", size(need), of, size(have))
}

// ofMachine is what a plan has of the machine's memory: a GPU has its own.
func ofMachine(device string, p *gomem.Planned) int64 {
	if _, gpu := gomem.GPU(device); gpu {
		return p.Peak(space.Host)
	}
	return p.Peak(space.Device) + p.Peak(space.Host)
}

// spec is the data to read.
func (c *trainCmd) spec() string {
	if c.Data != "" {
		return string(c.Data)
	}
	switch kindName(c.Model) {
	case networks:
		return ""
	case "resnet", "wgan":
		return "glyphs"
	case "deepspeech":
		return "formant"
	case "topic":
		return "drawn"
	}
	return "go:doc"
}

// asSpec makes a spec that names no data a usage error. Data that is not there, or
// a program that is missing, is not the command line's fault.
func asSpec(err error) error {
	if e, ok := errors.AsType[*data.Error](err); ok && e.Misspelt {
		return usagef("%w", err)
	}
	return err
}

// runOptions are the flags as train takes them.
func (c *trainCmd) runOptions(b *built, d dataset, s gomem.Options) (train.Options, error) {
	o := train.Options{
		Model: &b.model.Model, Name: b.model.Name, Size: b.model.Size, Unit: b.model.Unit,
		Loader: d.batches, Tokenizer: d.tokenizer, Classes: d.classes, Scorer: d.scorer,
		Session: s,
		Seed:    c.Seed,
		Steps:   int(c.Steps), Epochs: float64(c.Epochs),
		EvalEvery: int(c.EvalEvery), EvalBatches: int(c.EvalBatches),
		Save: string(c.Save), SaveEvery: int(c.SaveEvery), Resume: string(c.Resume),
		Init:   string(c.Init),
		Config: maps.Clone(b.numbers), Labels: c.labels(d, c.spec()),
	}
	if c.MTBF > 0 {
		o.SaveAfter = c.MTBF.saveAfter(c.worker.machines, s.Logger)
	}
	c.watch(&o)
	o.Config["data"], o.Config["seed"] = c.past.id(d), strconv.FormatUint(c.Seed, 10)
	if c.EvalShare > 0 {
		o.Config["eval-share"] = fmt.Sprint(float64(c.EvalShare))
	}
	if o.Steps == 0 && o.Epochs == 0 {
		o.Steps = defaultSteps
	}
	if err := c.rate(b, d, o.Config); err != nil || c.Rename == "" {
		return o, err
	}
	var err error
	o.Rename, err = train.ReadRenaming(string(c.Rename))
	return o, err
}

// rate gives the model the learning rate that was asked for.
func (c *trainCmd) rate(b *built, d dataset, numbers map[string]string) error {
	steps := cmp.Or(int(c.Steps), defaultSteps)
	if c.Epochs > 0 {
		steps = int(math.Ceil(float64(c.Epochs) * float64(d.batches.StepsPerEpoch()) /
			float64(b.model.Executions())))
	}
	f := c.rateFlags
	if by := c.optimizer(); by != nil && f.LR == 0 {
		f.LR = positive(shapeOf(by.Rate()).peak) // the model's own is of another optimizer
	}
	return f.apply(b.model, steps, numbers)
}

// train runs and reports; after is called with what came of it.
func (c *trainCmd) train(ctx context.Context, e *env, h header, o train.Options,
	after func(train.Summary) error) error {
	if err := asUse(o.Validate()); err != nil {
		return err
	}
	undo, err := c.keepTo(e, &h, o.Planned)
	if err != nil {
		return err
	}
	defer undo()
	d := newDisplay(e.stdout, e.stderr, c.JSON, h)
	late := &late{ctx: ctx, find: h.least}
	defer late.end()
	var unwritten error
	read := func() {} // ends a notice
	if o.Init != "" {
		read = sync.OnceFunc(notice(e.stderr, "gomem: reading "+o.Init))
	}
	o.Observe = func(e train.Event) {
		read()
		d.observe(e)
		c.worker.standing.step(e.Step)
		if e.Kind == train.Start && h.warning != "" {
			d.observe(train.Event{Kind: train.Warning, Step: e.Step, Text: h.warning})
		}
		late.observe(e)
		unwritten = cmp.Or(unwritten, c.config.keep(e, c.worker.leads))
	}
	s, err := train.Run(ctx, o)
	read()
	logMemory(e.log, "trained")
	d.close()
	if err != nil {
		return c.cutShort(ctx, c.remembering(blamed(err), s, e), s, e)
	}
	if s.Left {
		c.worker.log(fmt.Sprintf("worker %d leaves after step %d, and the others go on", c.rank,
			s.Steps))
		return nil
	}
	d.summary(s, late.found(), c.fleet.peaks(c.rank, s))
	if unwritten != nil {
		fmt.Fprintf(e.stderr, "gomem: warning: %s of the run's flags: %v\n", configName,
			bare(unwritten))
	}
	if err := after(s); err != nil || !s.Interrupted || !c.worker.leads() {
		return err
	}
	text := fmt.Sprintf("stopped after step %d; %s", s.Steps, c.afterwards(s, e))
	if s.Checkpoint == "" {
		return &stoppedError{text}
	}
	fmt.Fprintf(e.stderr, "gomem: %s\n", text)
	return nil
}

// asUse makes an option that no run can have a usage error. Trouble with a
// checkpoint or a file is not the command line's.
func asUse(err error) error {
	if _, ok := errors.AsType[*train.ErrOption](err); ok {
		return usagef("%w", err)
	}
	return err
}
