package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/predict"
	"github.com/gomem/gomem/train"
)

// continued is the line of a text that was continued.
type continued struct {
	Type   string `json:"type"`
	Input  string `json:"input"`
	Text   string `json:"text"`   // what was written, without the prompt
	Tokens int    `json:"tokens"` // of it
	Ended  bool   `json:"ended"`  // by the model

	Adapter string `json:"adapter,omitempty"` // its directory
}

// continuation is the task of a model that continues texts: every input is one.
func continuation(_ context.Context, e *env, c *predictCmd, x checkpointed) (*task, error) {
	o, err := c.sampling()
	if err == nil {
		err = x.lengthen(c.Length)
	}
	if err == nil {
		err = x.store(c.Store)
	}
	if err == nil {
		err = x.adapt(c.Adapter)
	}
	if err != nil {
		return nil, err
	}
	tokenizer, err := x.tokenizer()
	if err != nil {
		return nil, err
	}
	o.Ends = tokenizer.Ends()
	if len(c.Inputs) == 0 {
		c.Inputs = []string{stdinName}
	}
	all := listed[string](c.Inputs, func(dir string) ([]string, error) {
		return nil, errors.New("is a directory: give files of text")
	})
	batch := min(int(c.Batch), len(all))
	d, err := x.continuer(batch)
	if err != nil {
		return nil, err
	}
	t := &task{graph: d.Graph, targets: predict.TextTargets(d), unit: "token"}
	t.run = func(ctx context.Context, p *gomem.Planned, s gomem.Options, r *reply) error {
		if x.public != nil {
			x.public.Packed = packing(e.stderr, x.Path)
		}
		done := notice(e.stderr, "gomem: reading "+x.Path)
		texts, err := predict.OpenTexts(p, s, d, x.weights())
		done()
		if err != nil {
			return err
		}
		defer texts.Close()
		w := &continuer{tokenizer: tokenizer, length: d.Length, texts: texts, sampling: o,
			reply: r, titled: len(all) > 1 || len(c.Adapter) > 1}
		read := readOnce(func(input string) (string, error) { return promptOf(input, e.stdin) })
		err = w.adapted(ctx, x.public, c.Adapter, all, batch, read)
		r.usage = texts.Usage()
		return err
	}
	return t, nil
}

// readOnce has every input read once, however often it is asked for.
func readOnce(read func(input string) (string, error)) func(input string) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := map[string]result{}
	return func(input string) (string, error) {
		r, ok := done[input]
		if !ok {
			r.text, r.err = read(input)
			done[input] = r
		}
		return r.text, r.err
	}
}

// store has the matrices of a public checkpoint's network held in few bits, if that is asked for;
// if nothing is, as its file has them.
func (x checkpointed) store(format string) error {
	switch {
	case x.public == nil && format == "":
		return nil
	case x.public == nil:
		return usagef("--store is for a public checkpoint: leave it out for a run")
	case format == "":
		x.public.AsStored()
		return nil
	case format == "f32":
		return nil
	}
	x.public.Config.Store = format
	if err := x.public.Config.Validate(); err != nil {
		return usagef("%w", err)
	}
	return nil
}

// adapt has a public checkpoint's network have adapters, if that is asked for.
func (x checkpointed) adapt(dirs []string) error {
	switch {
	case len(dirs) == 0:
		return nil
	case x.public == nil:
		return usagef("--adapter does nothing for a run, which has its own: leave it out, or " +
			"give --from a public checkpoint")
	}
	return x.public.Adapt(dirs...)
}

// adapted continues every text with each of the adapters, or with none if there are none.
func (c *continuer) adapted(ctx context.Context, p *train.Public, adapters []string,
	all []question[string], batch int, read func(string) (string, error)) error {
	for i := range max(1, len(adapters)) {
		if i > 0 {
			use := func(s *gomem.Session, vars []graph.Value) error { return p.Use(s, vars, i) }
			if err := c.texts.Reload(use); err != nil {
				return err
			}
		}
		if len(adapters) > 0 {
			c.adapter = adapters[i]
		}
		if err := c.all(ctx, inTurn(slices.Clone(all), batch, read)); err != nil {
			return err
		}
	}
	return nil
}

// sampling is how tokens are chosen. Who limits what is drawn wants something drawn.
func (c *predictCmd) sampling() (predict.Sampling, error) {
	temperature := 0.0
	if c.TopK > 0 || c.TopP != nil || c.Seed != nil {
		temperature = 1
	}
	o := predict.Sampling{Tokens: int(c.Tokens), Temperature: number(c.Temperature, temperature),
		TopK: int(c.TopK), TopP: number(c.TopP, 1), Seed: number(c.Seed, 0)}
	switch err := o.Validate(); {
	case err != nil:
		return o, usagef("%w", err)
	case o.Temperature == 0 && temperature > 0:
		return o, usagef("--temperature 0 draws nothing: leave out --top-k, --top-p and --seed")
	}
	return o, nil
}

// lengthen has a public checkpoint's network read so many tokens at a time, if that is asked for.
func (x checkpointed) lengthen(tokens count) error {
	switch {
	case tokens == 0:
		return nil
	case x.public == nil:
		return usagef("--length does nothing for a run, which reads as many tokens as it was " +
			"trained with: leave it out")
	}
	x.public.Config.Length = int(tokens)
	if err := x.public.Config.Validate(); err != nil {
		return usagef("%w", err)
	}
	return nil
}

// continuer is the decoder of a model that continues texts.
func (x checkpointed) continuer(batch int) (*models.Decoder, error) {
	if x.public != nil {
		return models.DecodeGPT(x.public.Config, batch)
	}
	c, err := gptConfig(x.flags)
	if err != nil {
		return nil, x.unusable("%w", err)
	}
	return models.DecodeGPT(c, batch)
}

// maxPrompt bounds what is read of a text, in bytes.
const maxPrompt = 1 << 24

// promptOf reads a text, without the end of its last line.
func promptOf(input string, stdin io.Reader) (string, error) {
	var text []byte
	var err error
	if input == stdinName {
		text, err = io.ReadAll(io.LimitReader(stdin, maxPrompt+1))
	} else {
		text, err = regular.ReadFile(input)
	}
	switch {
	case err != nil:
		return "", data.Remedied(err)
	case len(text) > maxPrompt:
		return "", fmt.Errorf("text of more than %d bytes: give its end", maxPrompt)
	}
	if err := data.CheckUTF8(string(text)); err != nil {
		return "", err
	}
	prompt := strings.TrimPrefix(string(text), "\ufeff")
	return strings.TrimSuffix(strings.TrimSuffix(prompt, "\n"), "\r"), nil
}

// continuer continues texts.
type continuer struct {
	tokenizer *data.Tokenizer
	length    int
	texts     *predict.Texts
	sampling  predict.Sampling
	reply     *reply
	titled    bool   // there are several
	adapter   string // in use; "" if there is none
	shown     int    // bytes of what is written that have been shown
}

// all continues every text. One that is alone in its batch is shown as it is written.
func (c *continuer) all(ctx context.Context, next func() []question[string]) error {
	first, live := 0, false
	run := func(texts []string) ([]predict.Text, error) {
		var prompts [][]int32
		for _, text := range texts {
			prompts = append(prompts, c.prompt(text))
		}
		if len(prompts) == 0 {
			return nil, nil
		}
		live = len(prompts) == 1 && c.reply.json == nil && !c.titled
		var emit func(int, int32)
		if live {
			fmt.Fprint(c.reply.e.stdout, texts[0])
			emit = c.typewriter(texts[0])
		}
		o := c.sampling
		o.First = first
		first += len(prompts)
		return c.texts.Continue(ctx, prompts, o, emit)
	}
	return answerAll(c.reply, next, run, func(q question[string], written predict.Text) {
		if n := len(c.tokenizer.Prompt(q.Value)); n >= c.length {
			fmt.Fprintf(c.reply.e.stderr, "gomem: %s: of its %d tokens the last %d were read\n",
				at(q.Input, 0), n, c.length-1)
		}
		c.reply.units += len(written.Tokens)
		c.reply.short(q, len(written.Tokens), c.sampling.Tokens, written.Ended, c.length)
		text := c.tokenizer.DecodeAfter(q.Value, written.Tokens)
		line := continued{"prediction", q.Input, text, len(written.Tokens), written.Ended,
			c.adapter}
		title := at(q.Input, 0)
		if c.adapter != "" {
			title += " by " + onLine(c.adapter)
		}
		switch {
		case live:
			c.reply.show(line, harmless(text[c.shown:])+"\n")
		case c.titled:
			c.reply.show(line, fmt.Sprintf("==> %s <==\n%s%s\n", title, q.Value,
				harmless(text)))
		default:
			c.reply.show(line, q.Value+harmless(text)+"\n")
		}
	})
}

// prompt is the ids of a text. Nothing is continued as what begins a document.
func (c *continuer) prompt(text string) []int32 {
	if ids := c.tokenizer.Prompt(text); len(ids) > 0 {
		return ids
	}
	return []int32{max(0, c.tokenizer.EOS())}
}

// typewriter shows what is written behind a text as it is, whole characters at a time.
func (c *continuer) typewriter(behind string) func(int, int32) {
	var ids []int32
	c.shown = 0
	return func(_ int, id int32) {
		ids = append(ids, id)
		text := c.tokenizer.DecodeAfter(behind, c.tokenizer.Settled(ids))
		if r, _ := utf8.DecodeLastRuneInString(text); r != utf8.RuneError {
			fmt.Fprint(c.reply.e.stdout, harmless(text[c.shown:]))
			c.shown = len(text)
		}
	}
}

// harmless is a text without what moves a terminal's cursor, but for lines and tabs.
func harmless(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for k := range cells {
			cells[k] = onLine(cells[k])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}
