package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/predict"
)

// defaultPenalty is the length penalty of beam search that Wu et al. (2016) take.
const defaultPenalty = 0.6

// translated is the line of a translation.
type translated struct {
	Type   string  `json:"type"`
	Input  string  `json:"input"`
	Line   int     `json:"line"`
	Text   string  `json:"text"`
	Tokens int     `json:"tokens"` // its end included
	Score  float64 `json:"score"`  // log-probability over the length penalty
	Ended  bool    `json:"ended"`  // otherwise there was no room for more
}

// translation is the task of a model that translates, line by line.
func translation(_ context.Context, e *env, c *predictCmd, x checkpointed) (*task, error) {
	o := predict.Search{Beams: max(1, int(c.Beam)), Tokens: int(c.Tokens),
		Penalty: number(c.Penalty, defaultPenalty)}
	if err := asUsageOf(o.Validate()); err != nil {
		return nil, err
	}
	if c.Penalty != nil && o.Beams == 1 {
		return nil, usagef("--length-penalty does nothing without --beam N")
	}
	tokenizer, err := x.tokenizer()
	if err != nil {
		return nil, err
	}
	d, err := x.decoder(int(c.Batch), o.Beams)
	if err != nil {
		return nil, err
	}
	t := &task{graph: d.Graph, targets: predict.TextTargets(d), unit: "token"}
	t.run = func(ctx context.Context, p *gomem.Planned, s gomem.Options, r *reply) error {
		texts, err := predict.OpenTexts(p, s, d, x.weights())
		if err != nil {
			return err
		}
		defer texts.Close()
		w := &translator{c, tokenizer, d, texts, o, r}
		err = w.all(ctx, e)
		r.usage = texts.Usage()
		return err
	}
	return t, nil
}

// decoder is the decoder of a model that translates.
func (x checkpointed) decoder(texts, beams int) (*models.Decoder, error) {
	if x.kind.name == "moe" {
		c, err := moeConfig(x.flags)
		if err != nil {
			return nil, x.unusable("%w", err)
		}
		d, err := models.DecodeMoE(c, texts, beams)
		return d, asUsageOf(err)
	}
	c, err := transformerConfig(x.flags)
	if err != nil {
		return nil, x.unusable("%w", err)
	}
	d, err := models.DecodeTransformer(c, texts, beams)
	return d, asUsageOf(err)
}

// translator translates lines.
type translator struct {
	*predictCmd
	tokenizer *data.Tokenizer
	decoder   *models.Decoder
	texts     *predict.Texts
	search    predict.Search
	reply     *reply
}

// all translates every line of the inputs.
func (t *translator) all(ctx context.Context, e *env) error {
	lines := newLineReader(t.Inputs, e.stdin, maxLine)
	defer lines.close()
	next := func() []question[string] { return lines.next(int(t.Batch)) }
	run := func(lines []string) ([]predict.Text, error) {
		var sources [][]int32
		for _, line := range lines {
			if line != "" {
				sources = append(sources, t.tokenizer.Encode(line))
			}
		}
		found, err := t.texts.Translate(ctx, sources, t.search)
		if err != nil {
			return nil, err
		}
		for i, line := range lines {
			if line == "" { // stays what it is
				found = slices.Insert(found, i, predict.Text{Ended: true})
			}
		}
		return found, nil
	}
	return answerAll(t.reply, next, run, t.show)
}

// show prints a translation.
func (t *translator) show(q question[string], found predict.Text) {
	source := t.tokenizer.Encode(q.Value)
	if room := t.decoder.Length - 1; len(source) > room {
		fmt.Fprintf(t.reply.e.stderr, "gomem: %s: cut to the first %d of %d tokens\n",
			at(q.Input, q.Line), room, len(source))
	}
	tokens := len(found.Tokens)
	if found.Ended && q.Value != "" {
		tokens++
	}
	t.reply.units += tokens
	t.reply.short(q, tokens, int(t.Tokens), found.Ended, t.decoder.Length)
	text := t.tokenizer.Decode(found.Tokens)
	t.reply.show(translated{"prediction", q.Input, q.Line, text, tokens, found.Score,
		found.Ended}, onLine(text)+"\n")
}
