package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/train"
)

// trainCmd is gomem train.
type trainCmd struct {
	modelFlags

	Config configFile `group:"training" placeholder:"FILE"`

	Data        location `group:"data" placeholder:"SPEC"`
	Seed        uint64   `group:"training" default:"0" placeholder:"N"`
	Steps       count    `group:"training" xor:"duration" placeholder:"N"`
	Epochs      passes   `group:"training" xor:"duration" placeholder:"X"`
	EvalEvery   count    `group:"training" placeholder:"N" default:"100"`
	EvalBatches count    `group:"data" placeholder:"N"`
	EvalData    location `group:"data" placeholder:"SPEC"`
	EvalShare   share    `group:"data" placeholder:"SHARE"`
	Strict      bool     `group:"data"`
	BLEU        *whole   `name:"bleu" group:"training" placeholder:"N"`
	Samples     location `group:"output" placeholder:"DIR"`
	Tokenizer   location `group:"data" placeholder:"FILE"`
	Save        location `group:"output" placeholder:"DIR"`
	SaveEvery   count    `group:"output" placeholder:"N"`
	MTBF        mtbf     `name:"mtbf" group:"output" placeholder:"TIME"`
	Resume      location `group:"training" placeholder:"DIR"`
	Init        location `group:"training" placeholder:"DIR"`
	Rename      location `group:"training" placeholder:"FILE"`

	rateFlags
	watchFlags
	meetFlags
	keepFlags
	planFlags
	deviceFlags

	given      given             // what was read before the model was built
	from       *checkpointed     // what is resumed; nil: the run is new
	member     *workers.Member   // of a job of several workers; nil: this is the only one
	standing   *standing         // where it is when something is logged
	flagsGiven map[string]string // of the run, as text
	kept       bool              // they are written
	log        func(string)      // what a worker says whatever it shows; nil: this is the only one
	saves      location          // where the first worker does, of one that does not
	heir       bool              // all workers before this one are gone without a word

	launched bool             // by this program, with all other workers, on this machine
	follows  bool             // the first worker of these
	reading  *soon[*trainCmd] // of a first worker that began to before it joined

	JSON    bool     `name:"json" group:"output"`
	Trace   location `group:"output" placeholder:"FILE"`
	Profile location `group:"output" placeholder:"DIR"`
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
	if err := c.restartable(e); err != nil {
		return err
	}
	if err := c.adoptTables(e.given); err != nil {
		return err
	}
	if isShallow(c.Model) {
		return c.learn(ctx, e)
	}
	if err := c.adopt(e.given); err != nil {
		return err
	}
	if err := c.fitting(); err != nil {
		return err
	}
	if _, err := c.scheme(); e.extras.Cluster != nil && err != nil {
		return err
	}
	if c.Local > 1 && e.extras.Cluster != nil {
		if _, err := c.meshed(int(c.Local)); err != nil {
			return err
		}
	}
	if err := c.newLogs(e); err != nil {
		return err
	}
	w, err := c.world(ctx, e, append(c.keepFlags.given(), option{"metrics", c.counters() != ""}),
		c.again)
	if err != nil {
		return err
	}
	c.settle(e, w)
	if w.Size > 1 {
		return c.together(ctx, e, w)
	}
	return c.alone(ctx, e)
}

// alone trains as the only worker, or as the one that c.member is.
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
	if c.member != nil {
		session.Network, session.Meter = c.member.Network(), c.member
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
	b, o, p, h := m.built, m.options, m.planned, m.header
	d, err := b.kind.load(ctx, e.stderr, c, b.model)
	if err != nil {
		return err
	}
	if c.EvalShare > 0 && d.batches.HeldOutBatches() == 0 {
		return fmt.Errorf("--eval-share %v holds nothing out of %s: give a larger one",
			float64(c.EvalShare), d.about)
	}
	if c.EvalData != "" {
		if d, err = c.evaluatedOn(ctx, e.stderr, b, d); err != nil {
			return err
		}
	}
	if err := c.countable(d.batches, b.model); err != nil {
		return err
	}
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
	if c.member != nil {
		if run.Parallel, err = c.member.Parallel(m.exchanges); err != nil {
			return err
		}
		run.Parallel.Mesh = processes(o) > 1
	}
	return c.train(ctx, e, h, run, func(s train.Summary) error {
		if err := c.profiled(ctx, e, b, p, o, session, s); err != nil {
			return err
		}
		if _, local := o.Machine.(*machine.Local); !local || c.member != nil || s.Interrupted {
			return nil
		}
		return compare(ctx, e.stderr, p, session, stepTime(b, p), s.StepMedian)
	})
}

// reachable tries the paths of a run before anything takes long. A run that is
// resumed goes on saving where it was, unless it is told otherwise.
func (c *trainCmd) reachable() error {
	if c.from != nil && c.Save == "" && c.leads() {
		c.Save = location(filepath.Dir(c.from.Path))
	}
	if c.Save != "" && c.leads() {
		if err := train.CheckSave(string(c.Save), string(c.Resume)); err != nil {
			return err
		}
	}
	if c.Rename != "" {
		if _, err := train.ReadRenaming(string(c.Rename)); err != nil {
			return fmt.Errorf("--rename %w", err)
		}
	}
	if c.Samples != "" {
		if _, err := train.SampleWriter(string(c.Samples)); err != nil {
			return err
		}
	}
	if c.Profile != "" {
		if err := writable(string(c.Profile)); err != nil {
			return fmt.Errorf("--profile %s: %w", c.Profile, bare(err))
		}
	}
	return c.outputs().ready()
}

// fitting refuses flags of a run that the model has no use for.
func (c *trainCmd) fitting() error {
	switch {
	case c.SaveEvery > 0 && c.Save == "" && c.Resume == "":
		return usagef("--save-every needs --save DIR")
	case c.MTBF > 0 && c.Save == "" && c.Resume == "":
		return usagef("--mtbf needs --save DIR")
	case c.MTBF > 0 && c.SaveEvery > 0:
		return usagef("--mtbf and --save-every can't be used together: each says when to save")
	case c.Rename != "" && c.Init == "":
		return usagef("--rename needs --init DIR or FILE")
	case c.Init != "" && c.Resume != "":
		return usagef("--init and --resume can't be used together: what is resumed has weights")
	case c.EvalShare > 0 && c.EvalData != "":
		return usagef("--eval-share and --eval-data can't be used together: nothing that is " +
			"held out of --data is evaluated then")
	case c.EvalShare > 0 && strings.HasPrefix(string(c.Data), "cifar10:"):
		return usagef("--eval-share does nothing for cifar10: its test set is what is held out")
	case !gomem.Computes(c.Device) && c.Init != "":
		return usagef("--device %s computes nothing: it has no use for --init", c.Device)
	case !gomem.Computes(c.Device) && (c.Save != "" || c.Resume != ""):
		return usagef("--device %s computes nothing: it can neither save nor resume", c.Device)
	}
	if err := c.watched(); err != nil {
		return err
	}
	k, err := kindOf(c.Model)
	if err != nil {
		return err
	}
	err = k.takes(option{"samples", c.Samples != ""}, option{"bleu", c.BLEU != nil},
		option{"tokenizer", c.Tokenizer != ""}, option{"strict", c.Strict})
	if err != nil {
		return err
	}
	if err := k.learnsFrom(string(c.EvalData)); err != nil {
		return err
	}
	return k.learnsFrom(string(c.Data))
}

// enoughMemory refuses a plan that this machine cannot hold.
func enoughMemory(device string, p planned) error {
	need, have := p.Peak(space.Device)+p.Peak(space.Host), machineMemory()
	of := fmt.Sprintf("device %s and host %s together", size(p.Peak(space.Device)),
		size(p.Peak(space.Host)))
	if _, gpu := gomem.GPU(device); gpu {
		need, of = p.Peak(space.Host), "the host's part"
	}
	if !gomem.Computes(device) || have == 0 || need <= have {
		return nil
	}
	return fmt.Errorf("the plan takes %s of this machine's memory (%s), it has %s: use a smaller "+
		"model or batch", size(need), of, size(have))
}

// spec is the data to read.
func (c *trainCmd) spec() string {
	if c.Data != "" {
		return string(c.Data)
	}
	switch c.Model {
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
		o.SaveAfter = c.saveAfter(s.Logger)
	}
	c.watch(&o)
	o.Config["data"], o.Config["seed"] = c.id(d), strconv.FormatUint(c.Seed, 10)
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

// traced runs f, with a recorder and its file around it if --trace is given. A
// run that was stopped has a timeline too.
func (c *trainCmd) traced(s *gomem.Options, f func() error) error {
	if c.Profile != "" {
		s.Trace = &gomem.TraceRecorder{}
	}
	if c.Trace == "" {
		return f()
	}
	out, err := createFile(string(c.Trace))
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

// train runs and reports; after is called with what came of it.
func (c *trainCmd) train(ctx context.Context, e *env, h header, o train.Options,
	after func(train.Summary) error) error {
	d := newDisplay(e.stdout, e.stderr, c.JSON, h)
	late := &late{ctx: ctx, find: h.least}
	defer late.end()
	var unwritten error
	o.Observe = func(e train.Event) {
		d.observe(e)
		c.standing.step(e.Step)
		if e.Kind == train.Start && h.warning != "" {
			d.observe(train.Event{Kind: train.Warning, Step: e.Step, Text: h.warning})
		}
		late.observe(e)
		unwritten = cmp.Or(unwritten, c.keepConfig(e))
	}
	if err := asUse(o.Validate()); err != nil {
		return err
	}
	s, err := train.Run(ctx, o)
	d.close()
	if err != nil {
		return c.cutShort(ctx, c.remembering(blamed(err), s, e), s, e)
	}
	if s.Left {
		c.log(fmt.Sprintf("worker %d leaves after step %d, and the others go on", c.rank, s.Steps))
		return nil
	}
	d.summary(s, late.found())
	if unwritten != nil {
		fmt.Fprintf(e.stderr, "gomem: warning: %s of the run's flags: %v\n", configName,
			bare(unwritten))
	}
	if err := after(s); err != nil || !s.Interrupted || !c.leads() {
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
