package command

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// public evaluates a public checkpoint on a text, as others do: documents are not cut, each
// begins with what the tokenizer puts before texts, and windows are as long as the model
// reads.
func (c *evalCmd) public(ctx context.Context, e *env, x checkpointed) error {
	d, m, err := c.publicText(ctx, e.stderr, x)
	if err != nil {
		return err
	}
	evaluation, err := m.Evaluation()
	if err != nil {
		return err
	}
	planned, session, err := planTask(ctx, e, taskPlan{x, evaluation.Graph,
		[]gomem.Target{train.EvalTarget(&evaluation.Model)}, c.planFlags, c.deviceFlags,
		m.DeviceBytes, m.HostBytes})
	if err != nil {
		return err
	}
	x.public.Packed = packing(e.stderr, x.Path)
	result, err := train.Evaluate(ctx, train.EvalOptions{Model: &evaluation.Model, Executions: 1,
		Loader: d.batches, Public: x.public, Session: session, Planned: planned.Planned,
		Batches: c.batches(true), Scorer: scorerOf(d, 0)})
	if err != nil {
		return asUse(err)
	}
	return c.print(e, x, m, d, true, result, session, byClass{})
}

// publicTokens is about how many tokens a batch of a public checkpoint's evaluation has.
const publicTokens = 2048

// publicDocuments is publicText of documents: rows are as long as the longest of them, if the model
// reads so much.
func (c *evalCmd) publicDocuments(ctx context.Context, text *data.Running,
	x checkpointed) (d dataset, m *models.Model, err error) {
	l, err := data.NewPackedLoader(ctx, text, x.public.Tokenizer,
		data.RunningOptions{Rows: 1, Length: 1})
	if err != nil {
		return d, nil, err
	}
	config := x.public.Config
	config.Packed = true
	config.Length = max(2, min(config.Length, slices.Max(l.Packing().Lengths)))
	config.Texts = max(1, publicTokens/config.Length)
	if m, err = models.GPT(config); err != nil {
		return d, nil, x.unusable("%w", err)
	}
	d.about, d.scorer = text.Info.String(), train.PerplexityScorer
	d.batches, err = l.Shaped(data.RunningOptions{Rows: config.Texts, Length: config.Length})
	return d, m, err
}

// publicText reads the text, and builds a model for as much of it as fits in a window.
func (c *evalCmd) publicText(ctx context.Context, w io.Writer, x checkpointed) (d dataset,
	m *models.Model, err error) {
	spec, err := c.spec(x)
	if err != nil {
		return d, nil, err
	}
	if err := x.kind.learnsFrom(spec); err != nil {
		return d, nil, err
	}
	text, err := data.Options{Progress: reading(w, spec)}.OpenRunning(ctx, spec)
	if err != nil {
		return d, nil, asSpec(err)
	}
	if text.Packed() {
		return c.publicDocuments(ctx, text.Whole(), x)
	}
	text = text.Documents()
	l, err := data.NewRunningLoader(ctx, text, x.public.Tokenizer,
		data.RunningOptions{Rows: 1, Length: 1})
	if err != nil {
		return d, nil, err
	}
	_, tokens := l.Tokens()
	if tokens < 2 {
		return d, nil, &data.Error{Spec: spec,
			Err: errors.New("text of a single token, which nothing follows: give more")}
	}
	config := x.public.Config
	config.Length = max(2, min(config.Length, tokens-1))
	windows := (tokens - 2 + config.Length) / config.Length
	config.Texts = max(1, min(windows, publicTokens/config.Length))
	if m, err = models.GPT(config); err != nil {
		return d, nil, x.unusable("%w", err)
	}
	d.about, d.scorer = text.Info.String(), train.PerplexityScorer
	d.batches, err = l.Shaped(data.RunningOptions{Rows: config.Texts, Length: config.Length})
	return d, m, err
}
