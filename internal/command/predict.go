package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

// predictCmd is gomem predict.
type predictCmd struct {
	From   location `group:"model" required:"" placeholder:"DIR"`
	Inputs []string `arg:"" optional:"" name:"input" help:"Files, directories of them, or -."`

	Axis        axes     `group:"model" placeholder:"NAME=N"`
	Length      count    `group:"model" placeholder:"TOKENS"`
	Adapter     []string `group:"model" sep:"none" placeholder:"DIR"`
	Store       string   `group:"model" enum:"${holds}" default:"" placeholder:"FORMAT"`
	Batch       count    `group:"run" placeholder:"N" default:"8"`
	Beam        count    `group:"run" placeholder:"N"`
	Penalty     *float64 `name:"length-penalty" group:"run" placeholder:"A"`
	Top         count    `group:"run" placeholder:"K"`
	Samples     count    `group:"run" placeholder:"N"`
	Out         location `group:"run" placeholder:"PATH"`
	Tokens      count    `group:"run" placeholder:"N"`
	Temperature *float64 `group:"run" placeholder:"T"`
	TopK        count    `group:"run" placeholder:"K"`
	TopP        *float64 `group:"run" placeholder:"P"`
	Seed        *uint64  `group:"run" placeholder:"N"`

	planFlags
	deviceFlags

	JSON bool `name:"json" group:"output"`
}

// Help is the long help.
func (predictCmd) Help() string {
	return `Does what a trained model does, from a checkpoint alone: transformer and moe
translate lines of text, gpt continues texts, resnet says what is on pictures,
deepspeech writes down WAV recordings, lda says what topics each line is about,
and wgan draws; lstm-lm and topic have no prediction.
Inputs are files, or standard input; a directory stands for the pictures or
recordings in it. To lasso, l1-lr, lr, mlr and gbt each line is a sample in
LIBSVM's format, whose label does not matter; to mf it is the numbers of a row
and a column, as training's file has them, and mtx:FILE and ml:DIR are inputs,
too.

Plans are made for the budget as in training, but have no gradients and no
optimizer to keep, so they need far less; weights that do not fit the device are
streamed through it. Results go to standard output, one after the other as they
are ready, and a line about speed and memory to standard error. An input that
cannot be read is reported, the others go on, and the exit status is 1.`
}

func (predictCmd) examples() string {
	return `
  gomem predict --from run1 < lines.txt          translate lines
  gomem predict --from run1 --beam 4 lines.txt   the same by beam search
  gomem predict --from run2 photos cat.png       what is on pictures
  gomem predict --from run3 --json talk.wav      what is said, as JSON lines
  gomem predict --from run4 --samples 64         draw into samples.png
  gomem predict --from run6 libsvm:new           what a model without layers says
  gomem predict --from run5 --tokens 100 --temperature 0.8 < start.txt
`
}

// given are the flags of predict that only some models have.
func (c *predictCmd) given() []option {
	return []option{
		{"beam", c.Beam > 0}, {"length-penalty", c.Penalty != nil}, {"top", c.Top > 0},
		{"samples", c.Samples > 0}, {"out", c.Out != ""}, {"tokens", c.Tokens > 0},
		{"temperature", c.Temperature != nil}, {"top-k", c.TopK > 0}, {"top-p", c.TopP != nil},
		{"seed", c.Seed != nil}, {"axis", c.Axis != ""}, {"length", c.Length > 0},
		{"adapter", len(c.Adapter) > 0}, {"store", c.Store != ""},
	}
}

// task is what a model is to do: a graph with targets, and what is done once they are
// planned and the weights are there.
type task struct {
	graph   *graph.Graph
	targets []gomem.Target
	unit    string // of speed
	// run answers everything. What it returns is the session's trouble, not an input's.
	run func(ctx context.Context, p *gomem.Planned, o gomem.Options, r *reply) error
}

// preparers make the tasks of models, by their names.
func preparers() map[string]preparer {
	translates := preparer{[]string{"beam", "length-penalty", "tokens"}, translation}
	return map[string]preparer{
		"transformer": translates, "moe": translates,
		"resnet":     {[]string{"top"}, classification},
		"deepspeech": {[]string{"beam"}, transcription},
		"wgan":       {[]string{"samples", "out", "seed"}, drawing},
		networks:     {[]string{"axis", "out"}, application},
		"gpt": {[]string{"tokens", "temperature", "top-k", "top-p", "seed", "length",
			"adapter", "store"}, continuation},
	}
}

// preparer makes a task, of a model that takes some flags of predict.
type preparer struct {
	flags   []string
	prepare func(ctx context.Context, e *env, c *predictCmd, x checkpointed) (*task, error)
}

// Run predicts.
func (c *predictCmd) Run(ctx context.Context, e *env) error {
	if run, ok, err := tablesOf(c.From); ok || err != nil {
		if err == nil {
			err = c.tables(e, run)
		}
		return err
	}
	x, err := openCheckpoint(c.From)
	if err != nil {
		return err
	}
	x.say(e.stderr)
	p, ok := preparers()[x.kind.name]
	if !ok {
		return x.unusable("nothing can be predicted with %s", x.kind.name)
	}
	for _, o := range c.given() {
		if o.given && !slices.Contains(p.flags, o.name) {
			return usagef("--%s does nothing for %s, which the checkpoint is of: leave it out",
				o.name, x.kind.name)
		}
	}
	t, err := p.prepare(ctx, e, c, x)
	if err != nil {
		return err
	}
	planned, session, err := c.plan(ctx, e, x, t)
	if err != nil {
		return err
	}
	r := newReply(e, c.JSON, t.unit)
	r.disk = diskOf(planned.Results[0])
	if text := r.disk.String(); text != "" {
		fmt.Fprintln(e.stderr, train.Folded("gomem: "+text, widthOf(e.stderr)))
	}
	if err := t.run(ctx, planned.Planned, session, r); err != nil {
		return err
	}
	return r.summary(x, session)
}

// plan decides how to run a task.
func (c *predictCmd) plan(ctx context.Context, e *env, x checkpointed, t *task) (planned,
	gomem.Options, error) {
	var device, host int64
	if x.kind.name != networks { // whose file says nothing of it
		device, host = models.Budget(x.Size)
	}
	return planTask(ctx, e, taskPlan{x, t.graph, t.targets, c.planFlags, c.deviceFlags, device,
		host})
}

// taskPlan is what a plan without training is made of.
type taskPlan struct {
	checkpointed
	graph   *graph.Graph
	targets []gomem.Target
	planFlags
	deviceFlags
	device, host int64 // budgets where none are given
}

// planTask plans as train does, for the machine and the memory at hand.
func planTask(ctx context.Context, e *env, t taskPlan) (p planned, session gomem.Options,
	err error) {
	t.Device = e.onto(t.Device)
	if !gomem.Computes(t.Device) {
		return p, session, usagef("--device %s computes nothing: there would be no result",
			t.Device)
	}
	b := (&built{kind: t.kind, targets: t.targets, model: &models.Model{
		Model: nn.Model{Graph: t.graph}, Name: t.Model, Size: t.Size}}).expects()
	if err := t.keeping(e, t.Device, t.InterpretChains); err != nil {
		return p, session, err
	}
	o, err := t.options(t.device+t.beside(t.Device), t.host)
	if err != nil {
		return p, session, err
	}
	o.ReserveBytes = t.reserved
	if o, err = b.priced(o, t.Device); err != nil {
		return p, session, err
	}
	o = b.within(o, t.planFlags)
	if session, err = t.session(o); err != nil {
		return p, session, err
	}
	session.Logger = e.log
	if p, session, err = t.planWithin(ctx, e, b, o, session); err != nil {
		return p, session, err
	}
	if err := enoughMemory(t.Device, p, account{}, 1); err != nil {
		return p, session, err
	}
	return p, session, keptWithin(e.log, o, p.Planned)
}

// errSome ends a command some of whose inputs have failed, each with a line of its own.
var errSome = errors.New("some inputs have failed")

// noInputs refuses inputs of a model that takes none.
func (c *predictCmd) noInputs(x checkpointed) error {
	if len(c.Inputs) > 0 {
		return usagef("%s takes no inputs, got %s", x.kind.name, c.Inputs[0])
	}
	return nil
}

// number is a flag's number, or another where it is not given.
func number[T any](flag *T, otherwise T) T {
	if flag == nil {
		return otherwise
	}
	return *flag
}

// stdinName is how standard input is given, and called.
const stdinName = "-"

// at is where in an input something is.
func at(input string, line int) string {
	if input == stdinName {
		input = "standard input"
	}
	if line > 0 {
		return fmt.Sprintf("%s:%d", input, line)
	}
	return input
}
