package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// gptConfig is the model that flags choose.
func gptConfig(f modelFlags) (models.GPTConfig, error) {
	c, err := f.gpt()
	if err != nil {
		return c, err
	}
	if f.Fine {
		return c, usagef("--fine does nothing for --model gpt: leave one of them out")
	}
	setCounts(countField{f.Batch, &c.Texts}, countField{f.Length, &c.Length},
		countField{f.Depth, &c.Layers})
	f.sizes(&c.Vocab, f.Vocabulary, &c.Dropout)
	c.Training, c.Store = f.training(), f.Store
	if c.Positions > 0 && c.Length > c.Positions && f.kept() == "" {
		c.Positions = c.Length
	}
	if err := c.Validate(); err != nil {
		return c, usagef("%w", err)
	}
	return c, nil
}

func buildGPT(f modelFlags) (*models.Model, map[string]string, error) {
	c, err := gptConfig(f)
	if err == nil && c.Store != "" && f.LoRA == "" {
		err = usagef("--store %s keeps matrices as they are: train adapters beside them, by --lora",
			c.Store)
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := models.GPT(c)
	numbers := map[string]string{
		"blocks": c.Blocks, "batch": strconv.Itoa(c.Texts), "length": strconv.Itoa(c.Length),
		"depth": strconv.Itoa(c.Layers),
	}
	if network := f.kept(); network != "" {
		numbers["network"] = network
	}
	return m, numbers, err
}

// gpt is the network that flags choose, as its size or its file has it.
func (f modelFlags) gpt() (models.GPTConfig, error) {
	if f.Network == "" && f.network == "" {
		c, err := models.NewGPTConfig(f.Size, cmp.Or(f.Blocks, models.GPT2Blocks))
		if err != nil {
			err = usagef("%w", err)
		}
		return c, err
	}
	if f.Network == "" {
		p, err := models.ParsePublished([]byte(f.network))
		return p.GPTConfig, err
	}
	for _, flag := range []option{{"blocks", f.Blocks != ""}, {"depth", f.Depth > 0},
		{"vocabulary", f.Vocabulary > 0}, {"size", f.Size != usualSize}} {
		if flag.given {
			return models.GPTConfig{}, usagef("--network %s says what the network is: leave out "+
				"--%s", f.Network, flag.name)
		}
	}
	p, err := publishedNetwork(f.Network)
	return p.GPTConfig, err
}

// publishedNetwork reads the config.json that is at a path, or in a directory there, or what a file
// of llama.cpp says instead.
func publishedNetwork(path string) (p models.Published, err error) {
	p, ok, err := train.GGUFNetwork(path)
	if err != nil {
		return p, usagef("--network %s: %w", path, err)
	}
	if ok {
		return p, nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	text, err := regular.ReadFile(path)
	if err != nil {
		err = data.Remedied(err)
	} else {
		p, err = models.ParsePublished(text)
	}
	if err != nil {
		return p, usagef("--network %s: %w", path, err)
	}
	return p, nil
}

// kept is what a checkpoint keeps of a network that is a file's: what the file says of it, in one
// form; "" of one of a size, or of a file that cannot be read.
func (f modelFlags) kept() string {
	if f.Network == "" {
		return f.network
	}
	p, err := publishedNetwork(f.Network)
	if err != nil {
		return ""
	}
	text, err := p.PublicConfig()
	var line bytes.Buffer
	if err != nil || json.Compact(&line, text) != nil {
		return ""
	}
	return line.String()
}

// runningWords is how many sub-words a model of running text has at most.
func runningWords(f modelFlags) (int, error) {
	if f.Model == "lstm-lm" {
		c, err := lstmLMConfig(f)
		return c.Vocab, err
	}
	c, err := gptConfig(f)
	return c.Vocab, err
}

// readRunning reads running text and learns the sub-words: as many of them as there are is
// the model's vocabulary. What takes long says so.
func readRunning(ctx context.Context, w io.Writer, c *trainCmd) error {
	most, err := runningWords(c.modelFlags)
	if err != nil {
		return err
	}
	public, err := c.publicInit(c.modelFlags, c.Tokenizer != "")
	if err != nil {
		return err
	}
	spec := c.spec()
	text, err := data.Options{EvalShare: float64(c.EvalShare),
		Progress: reading(w, spec)}.OpenRunning(ctx, spec)
	if err != nil {
		return asSpec(err)
	}
	done := notice(w, fmt.Sprintf("gomem: learning up to %d sub-words from %s", most, spec))
	defer done()
	tokenizer, err := c.past.subWords(ctx, text, most, string(c.Tokenizer), public)
	if err != nil {
		return err
	}
	c.given = given{text: text, tokenizer: tokenizer}
	return sizeByWords(c, tokenizer, most)
}

// loadRunning makes batches of running text.
func loadRunning(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	text, tokenizer := c.given.text, c.given.tokenizer
	done := notice(w, "gomem: encoding "+c.spec())
	defer done()
	rows := m.Data[0].Type()
	loader, err := data.NewRunningLoader(ctx, text, tokenizer,
		data.RunningOptions{Rows: rows.Size(0), Length: rows.Size(1), Seed: c.Seed})
	if err != nil {
		return dataset{}, err
	}
	tokens, heldOut := loader.Tokens()
	return dataset{
		batches: loader, tokenizer: tokenizer, about: text.Info.String(), id: text.Info.SHA256,
		formerly: text.Info.Listing,
		facts: []field{
			{"vocabulary", grouped(int64(tokenizer.Used())) + " sub-words"},
			{"tokens", fmt.Sprintf("%s, %s held out", grouped(int64(tokens)),
				grouped(int64(heldOut)))},
		},
		scorer: train.PerplexityScorer,
	}, nil
}
