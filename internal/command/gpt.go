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
	"strings"

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
	c.Training, c.Store, c.Packed = f.training(), f.Store, f.packed
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
	if err == nil {
		err = f.storing()
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

// storing reports matrices that are held in few bits and cannot be trained so.
func (f modelFlags) storing() error {
	switch {
	case f.Store == "" || f.LoRA != "":
		return nil
	case f.Store != "bf16":
		return usagef("--store %s keeps matrices as they are: train adapters beside them, by "+
			"--lora, or matrices of bf16, by --store bf16 and --optimizer adamw-8bit", f.Store)
	case !strings.HasSuffix(f.Optimizer, "-8bit") && !strings.HasSuffix(f.Optimizer, "-bf16"):
		return usagef("--store bf16 without --lora trains matrices of bf16: give --optimizer " +
			"adamw-8bit or adamw-bf16, or their like of adam, or train adapters, by --lora")
	}
	return nil
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
	if err := alike(spec, string(c.EvalData)); err != nil {
		return err
	}
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

// packs reports whether data are documents, of which rows have several.
func packs(spec string) bool { return strings.HasPrefix(spec, "jsonl:") }

// alike refuses to evaluate on documents what is trained on running text, or the reverse: their
// batches differ.
func alike(spec, eval string) error {
	if eval == "" || packs(spec) == packs(eval) {
		return nil
	}
	return usagef("--data %s and --eval-data %s: give jsonl for both, or for neither", spec, eval)
}

// loadRunning makes batches of running text.
func loadRunning(ctx context.Context, w io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	text, tokenizer := c.given.text, c.given.tokenizer
	done := notice(w, "gomem: encoding "+c.spec())
	defer done()
	d, err := runningBatches(ctx, text, tokenizer, m, c.Seed)
	if err != nil {
		return dataset{}, err
	}
	d.tokenizer, d.about, d.id = tokenizer, text.Info.String(), text.Info.SHA256
	d.formerly = text.Info.Listing
	d.facts = append([]field{{"vocabulary", grouped(int64(tokenizer.Used())) + " sub-words"}},
		d.facts...)
	return d, nil
}

// runningBatches are batches of running text, or of documents, of a model's shape.
func runningBatches(ctx context.Context, text *data.Running, tokenizer *data.Tokenizer,
	m *models.Model, seed uint64) (d dataset, err error) {
	d.scorer = train.PerplexityScorer
	rows := m.Data[0].Type()
	o := data.RunningOptions{Rows: rows.Size(0), Length: rows.Size(1), Seed: seed}
	if text.Packed() {
		loader, err := data.NewPackedLoader(ctx, text, tokenizer, o)
		if err == nil {
			d.batches, d.facts = loader, packingFacts(loader.Packing())
		}
		return d, err
	}
	loader, err := data.NewRunningLoader(ctx, text, tokenizer, o)
	if err != nil {
		return d, err
	}
	tokens, heldOut := loader.Tokens()
	d.batches, d.facts = loader, []field{{"tokens", fmt.Sprintf("%s, %s held out",
		grouped(int64(tokens)), grouped(int64(heldOut)))}}
	return d, nil
}

// packingFacts say how long documents are, and how they fill rows.
func packingFacts(p data.Packing) []field {
	facts := []field{documentFacts(p).fact(),
		{"rows", fmt.Sprintf("%s of %s tokens, %.1f %% full", grouped(int64(p.Rows)),
			grouped(int64(p.Length)), 100*float64(p.Filled)/float64(max(1, p.Rows*p.Length)))}}
	if p.Longer > 0 {
		facts = append(facts, field{"cut", fmt.Sprintf("%s documents are longer than a row",
			grouped(int64(p.Longer)))})
	}
	return facts
}
