package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/space"
	"github.com/gomem/gomem/train"
)

// trainCmd is gomem train.
type trainCmd struct {
	modelFlags

	Data        string `group:"run" placeholder:"SPEC"`
	Seed        uint64 `group:"run" default:"0" placeholder:"N"`
	Steps       count  `group:"run" xor:"duration" placeholder:"N"`
	Epochs      passes `group:"run" xor:"duration" placeholder:"X"`
	EvalEvery   count  `group:"run" placeholder:"N" default:"100"`
	EvalBatches count  `group:"run" placeholder:"N"`
	BLEU        *whole `name:"bleu" group:"run" placeholder:"N"`
	Samples     string `group:"run" placeholder:"DIR"`
	Save        string `group:"run" placeholder:"DIR"`
	SaveEvery   count  `group:"run" placeholder:"N"`
	Resume      string `group:"run" placeholder:"DIR"`

	planFlags
	deviceFlags

	JSON  bool   `name:"json" group:"output"`
	Trace string `group:"output" placeholder:"FILE"`
}

// Help is the long help.
func (trainCmd) Help() string {
	return `Trains a model within the device memory it is given.
The plan of a step is made and verified first; a budget that cannot be met is
refused with the smallest that can. On a terminal a bar shows the progress; in a
pipe, lines do. Ctrl-C finishes the step, saves if --save is given, and says how
to continue; a second Ctrl-C kills. Plan flags change memory and time, never the
losses or the weights.`
}

func (trainCmd) examples() string {
	return `
  gomem train --model moe --partition 200        s64 on Go's documentation, 192MiB
  gomem train --size s512 --steps 50             a minute's try
  gomem train --save run1 --save-every 100       keep checkpoints
  gomem train --save run1 --resume run1          continue
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
	if c.SaveEvery > 0 && c.Save == "" {
		return usagef("--save-every needs --save DIR")
	}
	if err := c.fitting(); err != nil {
		return err
	}
	b, err := c.build()
	if err != nil {
		return err
	}
	o, err := c.options(b.model.DeviceBytes, b.model.HostBytes)
	if err != nil {
		return err
	}
	session, err := c.session(o)
	if err != nil {
		return err
	}
	session.Logger = e.log
	p, err := planAll(ctx, e.stderr, b, o)
	if err != nil {
		return err
	}
	if err := enoughMemory(c.Device, p); err != nil {
		return err
	}
	vanilla, err := baseline(ctx, e.stderr, b, o, p)
	if err != nil {
		return err
	}
	d, err := b.kind.load(ctx, e.stderr, c, b.model)
	if err != nil {
		return err
	}
	if err := c.countable(d.batches, b.model); err != nil {
		return err
	}
	return c.traced(&session, len(p.training().Steps), func() error {
		h := header{report: newReport(b.model, o, p, vanilla), Device: c.Device, Data: d.about,
			facts: d.facts}
		return c.train(ctx, e, h, c.runOptions(b, d, session))
	})
}

// fitting refuses flags of a run that the model has no use for.
func (c *trainCmd) fitting() error {
	k, err := kindOf(c.Model)
	if err != nil {
		return err
	}
	err = k.takes(option{"samples", c.Samples != ""}, option{"bleu", c.BLEU != nil})
	if err != nil {
		return err
	}
	return k.learnsFrom(c.Data)
}

// enoughMemory refuses a plan that this machine cannot hold.
func enoughMemory(device string, p planned) error {
	need, have := p.Peak(space.Device)+p.Peak(space.Host), machineMemory()
	if device == gomem.Null || have == 0 || need <= have {
		return nil
	}
	return fmt.Errorf("the plan takes %s of this machine's memory (device %s and host %s "+
		"together), it has %s: use a smaller model or batch",
		size(need), size(p.Peak(space.Device)), size(p.Peak(space.Host)), size(have))
}

// spec is the data to read.
func (c *trainCmd) spec(byDefault string) string {
	if c.Data == "" {
		return byDefault
	}
	return c.Data
}

// asSpec makes a spec that names no data a usage error. Data that is not there, or
// a program that is missing, is not the command line's fault.
func asSpec(err error) error {
	if e, ok := errors.AsType[*data.Error](err); ok && e.Misspelt {
		return usagef("%w", err)
	}
	return err
}

// patience is how long work may be silent.
const patience = 2 * time.Second

// reading reports on the reading of files, when it takes long.
func reading(w io.Writer, spec string) func(files int) {
	last := time.Now()
	return func(files int) {
		if time.Since(last) > patience {
			last = time.Now()
			fmt.Fprintf(w, "gomem: reading %s: %s\n", spec, counted(files, "file"))
		}
	}
}

// notice prints a line if done is not called soon.
func notice(w io.Writer, line string) (done func()) {
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ended:
		case <-time.After(patience):
			fmt.Fprintln(w, line)
		}
	}()
	return func() { close(ended); <-stopped }
}

// runOptions are the flags as train takes them.
func (c *trainCmd) runOptions(b *built, d dataset, s gomem.Options) train.Options {
	o := train.Options{
		Model: b.model, Loader: d.batches, Tokenizer: d.tokenizer, Scorer: d.scorer, Session: s,
		Seed:  c.Seed,
		Steps: int(c.Steps), Epochs: float64(c.Epochs),
		EvalEvery: int(c.EvalEvery), EvalBatches: int(c.EvalBatches),
		Save: c.Save, SaveEvery: int(c.SaveEvery), Resume: c.Resume,
		Config: maps.Clone(b.numbers),
	}
	o.Config["data"], o.Config["seed"] = d.id, strconv.FormatUint(c.Seed, 10)
	if o.Steps == 0 && o.Epochs == 0 {
		o.Steps = defaultSteps
	}
	return o
}

// traced runs f, with a recorder and its file around it if --trace is given.
func (c *trainCmd) traced(s *gomem.Options, planSteps int, f func() error) error {
	if c.Trace == "" {
		return f()
	}
	out, err := createFile(c.Trace)
	if err != nil {
		return err
	}
	defer out.abandon()
	s.Trace = &gomem.TraceRecorder{Limit: tracedSteps * planSteps}
	if err := f(); err != nil {
		return err
	}
	return out.commit(s.Trace.WriteJSON(out))
}

// train runs and reports.
func (c *trainCmd) train(ctx context.Context, e *env, h header, o train.Options) error {
	d := newDisplay(e.stdout, c.JSON, h)
	o.Observe = d.observe
	if err := asUse(o.Validate()); err != nil {
		return err
	}
	s, err := train.Run(ctx, o)
	d.close()
	if err != nil {
		return err
	}
	d.summary(s)
	if s.Interrupted {
		fmt.Fprintf(e.stderr, "gomem: stopped after step %d; %s\n", s.Steps, afterwards(s, e.args))
	}
	return nil
}

// asUse makes an option that no run can have a usage error. Trouble with a
// checkpoint is not the command line's.
func asUse(err error) error {
	if _, ok := errors.AsType[*train.ErrCheckpoint](err); ok || err == nil {
		return err
	}
	return usagef("%w", err)
}

// afterwards says how to continue an interrupted run.
func afterwards(s train.Summary, args []string) string {
	if s.Checkpoint == "" {
		return "nothing was saved (--save DIR keeps a run)"
	}
	return fmt.Sprintf("saved %s; continue with: %s", s.Checkpoint, resumption(args))
}

// resumption is the command line that continues an interrupted run.
func resumption(args []string) string {
	words := []string{"gomem"}
	save := ""
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		if (name == "--resume" || name == "--save") && !joined && i+1 < len(args) {
			i++
			value = args[i]
		}
		if name == "--save" {
			save = value
		}
		if name != "--resume" && name != "--save" {
			words = append(words, args[i])
		}
	}
	return strings.Join(quoted(append(words, "--save", save, "--resume", save)), " ")
}

// quoted quotes words for a shell where they need it.
func quoted(words []string) []string {
	out := slices.Clone(words)
	for i, w := range out {
		if w == "" || strings.ContainsAny(w, " \t\n\"'`$&|;<>()*?[]{}~#!\\") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return out
}
