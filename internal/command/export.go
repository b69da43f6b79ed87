package command

import (
	"context"
	"fmt"
	"os"

	"github.com/gomem/gomem/front/onnx"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// exportCmd is gomem export.
type exportCmd struct {
	From location `group:"model" required:"" placeholder:"DIR"`
	To   location `arg:"" optional:"" help:"Directory to write."`
	ONNX location `name:"onnx" group:"output" placeholder:"FILE"`

	Adapter location `group:"output" placeholder:"DIR"`
	GGUF    location `name:"gguf" group:"output" placeholder:"FILE"`
	Store   string   `group:"model" enum:"${stores}" default:"" placeholder:"FORMAT"`
}

// Help is the long help.
func (exportCmd) Help() string {
	return `Writes a checkpoint of gpt as others publish such networks: a directory with
model.safetensors, config.json and tokenizer.json, which the libraries of Hugging
Face read, and gomem predict. There is no optimizer in it. What --lora has
trained is added to the matrices; --adapter writes it by itself, as PEFT reads
it: adapter_model.safetensors and adapter_config.json.

By --gguf it is one file, as llama.cpp reads it, with matrices in the format that
--store says; a public checkpoint is written as such a file, too.

By --onnx what predicts is written as a file of ONNX, of batches and lengths as the
run's: the logits of moe, transformer, gpt, lstm-lm, resnet and deepspeech, and the
images of wgan by its seed, i32[2]. Every expert of moe computes all rows there.
What has no form in ONNX is refused by name. Of a run of --model onnx:FILE it is
that file again, with the weights of the run.

Of a model without layers (mlr, lr, gbt, ...), the tables of the newest epoch are
written as model.safetensors, and the words of lda as vocab.txt.`
}

func (exportCmd) examples() string {
	return `
  gomem export --from run1 published             write a directory
  gomem export --from run1 --onnx model.onnx     for other programs
  gomem export --from run1 --gguf model.gguf --store q8_0
  gomem predict --from published start.txt       continue a text with it
  gomem train --model gpt --init published       train on with its weights
`
}

// Run writes.
func (c *exportCmd) Run(_ context.Context, e *env) error {
	given := 0
	for _, to := range []location{c.To, c.ONNX, c.Adapter, c.GGUF} {
		if to != "" {
			given++
		}
	}
	if given != 1 {
		return usagef("want a directory to write, or --onnx FILE, --gguf FILE or --adapter DIR: " +
			"one of them")
	}
	if c.Store != "" && c.GGUF == "" {
		return usagef("--store does nothing without --gguf: leave it out")
	}
	if c.ONNX != "" {
		return c.network(e)
	}
	if run, ok, err := tablesOf(c.From); ok || err != nil {
		if err == nil {
			var text string
			if text, err = exportTables(c.To, c.From, run); err == nil {
				_, err = fmt.Fprint(e.stdout, text)
			}
		}
		return err
	}
	x, err := openCheckpoint(c.From)
	if err != nil {
		return err
	}
	if x.public != nil && c.GGUF != "" {
		return c.gguf(e, x, x.public.Config)
	}
	if x.public != nil {
		return x.unusable("it is in the public form already: copy its directory, or give a run's " +
			"of gomem train")
	}
	if x.kind.name == networks {
		return x.unusable("it is of a network of a file: write that by --onnx FILE")
	}
	if x.kind.name != "gpt" {
		return x.unusable("it is of %s: only gpt has a public form", x.Model)
	}
	config, err := gptConfig(x.flags)
	if err != nil {
		return x.unusable("%w", err)
	}
	if c.Adapter != "" {
		return c.adapter(e, x, config)
	}
	if c.GGUF != "" {
		return c.gguf(e, x, config)
	}
	if err := train.Export(string(c.To), x.Path, config); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "wrote %s: %s parameters of step %d\n", c.To,
		grouped(config.Parameters()), x.Step)
	return err
}

// gguf writes a file of llama.cpp.
func (c *exportCmd) gguf(e *env, x checkpointed, config models.GPTConfig) error {
	if err := (outputs{{"--gguf", string(c.GGUF)}}).ready(); err != nil {
		return err
	}
	var err error
	if x.public != nil {
		err = x.public.ExportGGUF(string(c.GGUF), c.Store)
	} else {
		err = train.ExportGGUF(string(c.GGUF), x.Path, config, c.Store)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "wrote %s: %s parameters\n", c.GGUF,
		grouped(config.Parameters()))
	return err
}

// adapter writes the adapters of a run.
func (c *exportCmd) adapter(e *env, x checkpointed, config models.GPTConfig) error {
	if err := train.WriteAdapter(string(c.Adapter), x.Path, config); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.stdout, "wrote %s: the adapters of step %d\n", c.Adapter, x.Step)
	return err
}

// sameFile reports whether two paths are of one file that is there.
func sameFile(a, b string) bool {
	have, errA := os.Stat(a)
	want, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(have, want)
}

// model writes what predicts of a model of ours: its logits, or the images of a generator.
func (c *exportCmd) model(e *env, x checkpointed) error {
	b, err := x.flags.build(e.stderr)
	if err != nil {
		return x.unusable("%w", err)
	}
	name, out := "logits", b.model.Predicted()
	if !out.Valid() {
		return x.unusable("it is of %s, whose evaluation has a loss only: neither logits nor "+
			"other outputs to export", x.Model)
	}
	if out != b.model.Logits() {
		name = "output"
	}
	weights, err := train.OpenValues(x.Path)
	if err != nil {
		return err
	}
	defer weights.Close()
	err = onnx.Export(string(c.ONNX), []onnx.Output{{Name: name, Value: out}}, weights.Get)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "wrote %s: %s parameters of step %d\n", c.ONNX,
		grouped(b.model.Graph.Parameters()), x.Step)
	return err
}

// network writes the file of a network with the weights of its run.
func (c *exportCmd) network(e *env) error {
	x, err := openCheckpoint(c.From)
	if err != nil {
		return err
	}
	if err := (outputs{{"--onnx", string(c.ONNX)}}).ready(); err != nil {
		return err
	}
	if x.kind.name != networks && x.public == nil {
		return c.model(e, x)
	}
	if x.kind.name != networks || x.network {
		return x.unusable("--onnx is for what gomem train has saved")
	}
	if sameFile(string(c.ONNX), x.flags.file()) {
		return usagef("--onnx %s is the file that the run is of: give another", c.ONNX)
	}
	n, m, err := newNetwork(x.flags)
	if err != nil {
		return x.unusable("%w", err)
	}
	weights, err := safetensors.Open(x.Path)
	if err != nil {
		return err
	}
	defer weights.Close()
	if err := n.Write(string(c.ONNX), weights.Get); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "wrote %s: %s parameters of step %d\n", c.ONNX,
		grouped(m.Graph.Parameters()), x.Step)
	return err
}
