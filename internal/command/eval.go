package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// evalCmd is gomem eval.
type evalCmd struct {
	From location `group:"model" required:"" placeholder:"DIR"`

	Data        location `group:"data" placeholder:"SPEC"`
	EvalBatches count    `group:"data" placeholder:"N"`
	Length      count    `group:"model" placeholder:"TOKENS"`
	Adapter     location `group:"model" placeholder:"DIR"`
	Store       string   `group:"model" enum:"${holds}" default:"" placeholder:"FORMAT"`
	Strict      bool     `group:"data"`
	BLEU        *whole   `name:"bleu" group:"run" placeholder:"N"`

	planFlags
	deviceFlags

	JSON bool `name:"json" group:"output"`
}

// Help is the long help.
func (evalCmd) Help() string {
	return `Prints the metrics of training for any data, from a checkpoint alone. Of the
data that it was trained on only what was held out is evaluated, and then the
numbers are those that train printed at its end; other data is evaluated as a
whole. Of pictures it counts what each class was taken for, and how often. The
plan has no gradients and no optimizer to keep. A public checkpoint of GPT-2,
LLaMA, Mistral, Mixtral or Qwen, as gomem export writes and gomem predict reads
it, is evaluated on the text of --data: documents as they are, in windows as
long as the model reads, 2,048 tokens at most unless --length says more, in
which each token is predicted from those before it.`
}

func (evalCmd) examples() string {
	return `
  gomem eval --from run1                         as at the end of training
  gomem eval --from run1 --data tsv:test.tsv     all of a test set
  gomem eval --from run2 --data dir:photos --json
  gomem eval --from published --data text:a.txt  a public checkpoint's perplexity
`
}

// evaluated is what eval prints.
type evaluated struct {
	Type           string             `json:"type"`
	Checkpoint     string             `json:"checkpoint"`
	Model          string             `json:"model"`
	Size           string             `json:"size"`
	Step           int                `json:"step"`
	Data           string             `json:"data"`
	Whole          bool               `json:"whole"` // of the data; none was trained on
	Loss           float64            `json:"loss"`
	Metrics        map[string]float64 `json:"metrics,omitempty"`
	Batches        int                `json:"batches"`
	Unit           string             `json:"unit"`
	Units          int                `json:"units"`
	Seconds        float64            `json:"seconds"`
	UnitsPerSecond float64            `json:"units_per_s"`
	memoryUse
	byClass
}

// Run evaluates.
func (c *evalCmd) Run(ctx context.Context, e *env) error {
	x, err := openCheckpoint(c.From)
	if err != nil {
		return err
	}
	x.say(e.stderr)
	if c.BLEU != nil && x.kind.name != "moe" && x.kind.name != "transformer" {
		return usagef("--bleu does nothing for %s, which the checkpoint is of: leave it out",
			x.kind.name)
	}
	if err := x.kind.takes(option{"strict", c.Strict}); err != nil {
		return err
	}
	if x.flags.evaluates() && x.kind.name == networks {
		return x.unusable("there is no loss to evaluate: give what gomem train made of it")
	}
	if err := x.lengthen(c.Length); err != nil {
		return err
	}
	if err := x.store(c.Store); err != nil {
		return err
	}
	if c.Adapter != "" {
		if err := x.adapt([]string{string(c.Adapter)}); err != nil {
			return err
		}
	}
	if x.public != nil {
		return c.public(ctx, e, x)
	}
	if err := x.kind.learnsFrom(string(c.Data)); err != nil {
		return err
	}
	spec, err := c.spec(x)
	if err != nil {
		return err
	}
	x.flags.packed = packs(spec)
	b, err := x.flags.build(e.stderr)
	if err != nil {
		return x.unusable("%w", err)
	}
	m, err := b.model.Evaluation()
	if err != nil {
		return err
	}
	d, whole, err := c.load(ctx, e.stderr, x, b.model) // first: data are of the process's account
	if err != nil {
		return err
	}
	planned, session, err := planTask(ctx, e, taskPlan{x, m.Graph,
		[]gomem.Target{train.EvalTarget(&m.Model)}, c.planFlags, c.deviceFlags, m.DeviceBytes,
		m.HostBytes})
	if err != nil {
		return err
	}
	scorer, confusion := scorerOf(d, x.Step), x.classes(b.model)
	if confusion != nil {
		scorer = func() train.Scorer { return train.ClassScorer(confusion) }
	}
	result, err := train.Evaluate(ctx, train.EvalOptions{Model: &m.Model,
		Executions: b.model.Executions(), Loader: d.batches, From: x.Path, Session: session,
		Planned: planned.Planned, Batches: c.batches(whole), Scorer: scorer})
	if err != nil {
		return asUse(err)
	}
	return c.print(e, x, b.model, d, whole, result, session,
		x.results(confusion, b.model.Classes))
}

// asInTraining is how many batches train evaluates.
const asInTraining = 8

// batches is how many are evaluated at most: as many as in training, or all of other
// data, 0.
func (c *evalCmd) batches(whole bool) int {
	if c.EvalBatches > 0 || whole {
		return int(c.EvalBatches)
	}
	return asInTraining
}

// scorerOf is the scorer of the last evaluation of a run, or nil.
func scorerOf(d dataset, step int) func() train.Scorer {
	if d.scorer == nil {
		return nil
	}
	return func() train.Scorer { return d.scorer(step, true) }
}

// print shows what came of it.
func (c *evalCmd) print(e *env, x checkpointed, m *models.Model, d dataset, whole bool,
	r train.Evaluated, session gomem.Options, by byClass) error {
	line := evaluated{"eval", x.Path, x.Model, x.Size, x.Step, d.about, whole, r.Loss, r.Metrics,
		r.Batches, m.Unit, r.Units, r.Time.Seconds(),
		float64(r.Units) / max(r.Time.Seconds(), 1e-9), memoryUsed(r.Usage, session), by}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(line)
	}
	part, of, model := "what was held out of it", "held-out loss",
		fmt.Sprintf("after step %d", line.Step)
	switch {
	case x.public != nil:
		part, of, model = "all of it", "loss", "public checkpoint"
	case whole:
		part = "all of it: other data was trained on"
	}
	loss := append([]string{fmt.Sprintf("%.4f", line.Loss)}, metrics(line.Metrics)...)
	printFields(e.stdout, []field{
		{"model", fmt.Sprintf("%s %s, %s", line.Model, line.Size, model)},
		{"data", line.Data},
		{"evaluated", fmt.Sprintf("%s, %s in %s", part, counted(line.Units, line.Unit),
			batchesOf(line.Batches))},
		{of, strings.Join(loss, "  ")},
		{"speed", fmt.Sprintf("%s %ss/s", figures(line.UnitsPerSecond), line.Unit)},
		{"memory", line.memoryUse.String()},
	})
	by.print(e.stdout)
	return nil
}

// batchesOf is a number of batches in words.
func batchesOf(n int) string {
	if n == 1 {
		return "1 batch"
	}
	return grouped(int64(n)) + " batches"
}

// spec is the data to evaluate: what is given, or what the model was trained on.
func (c *evalCmd) spec(x checkpointed) (string, error) {
	spec := cmp.Or(string(c.Data), x.spec())
	if spec == "" {
		return "", usagef("--data is missing: the checkpoint does not say what it was trained on")
	}
	return spec, nil
}

// spec is the data that the model was trained on.
func (x checkpointed) spec() string {
	if spec := x.Labels[labelSpec]; spec != "" {
		return spec
	}
	trained, _, _ := strings.Cut(x.Labels["data"], ": ")
	return trained
}
