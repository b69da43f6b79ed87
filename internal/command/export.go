package command

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/train"
)

// exportCmd is gomem export.
type exportCmd struct {
	From location `group:"model" required:"" placeholder:"DIR"`
	To   location `arg:"" help:"Directory to write."`
}

// Help is the long help.
func (exportCmd) Help() string {
	return `Writes a checkpoint of gpt as others publish GPT-2 and LLaMA: a directory with
model.safetensors, config.json and tokenizer.json, which the libraries of Hugging
Face read, and gomem predict. There is no optimizer in it.

Of a model without layers (mlr, lr, gbt, ...), the tables of the newest epoch are
written as model.safetensors, and the words of lda as vocab.txt.`
}

func (exportCmd) examples() string {
	return `
  gomem export --from run1 published             write a directory
  gomem predict --from published start.txt       continue a text with it
  gomem train --model gpt --init published       train on with its weights
`
}

// Run writes.
func (c *exportCmd) Run(_ context.Context, e *env) error {
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
	if x.public != nil {
		return x.unusable("it is in the public form already: copy its directory, or give a run's " +
			"of gomem train")
	}
	if x.kind.name != "gpt" {
		return x.unusable("it is of %s: only gpt has a public form", x.Model)
	}
	config, err := gptConfig(x.flags)
	if err != nil {
		return x.unusable("%w", err)
	}
	if err := train.Export(string(c.To), x.Path, config); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "wrote %s: %s parameters of step %d\n", c.To,
		grouped(config.Parameters()), x.Step)
	return err
}
