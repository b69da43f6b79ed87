package command

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/predict"
	"github.com/gomem/gomem/train"
)

// checkpointed is a model of a checkpoint.
type checkpointed struct {
	train.Checkpoint
	kind   kind
	flags  modelFlags
	public *train.Public // where the checkpoint is none of gomem's
	// network says that it is the file of a network, of which there are weights and no run
	network bool
}

// openCheckpoint reads what a checkpoint says of its model: that is all that it takes
// to build it again.
func openCheckpoint(path location) (checkpointed, error) {
	if isNetwork(path) {
		return openNetworkAs(path)
	}
	if p, err := openPublic(string(path)); p != nil || err != nil {
		gpt, _ := kindOf("gpt")
		return checkpointed{Checkpoint: checkpointOf(p), kind: gpt, public: p}, err
	}
	c, err := train.Inspect(string(path))
	if err != nil {
		if run, ok, _ := tablesOf(path); ok {
			err = fmt.Errorf("%s has tables of --model %s: train --resume goes on with them, and "+
				"export writes them as tensors", path, run.Model)
		}
		return checkpointed{}, err
	}
	x := checkpointed{Checkpoint: c}
	if x.kind, err = kindOf(c.Model); err != nil {
		return x, x.unusable("it is of a model %q, which this program does not have", c.Model)
	}
	x.flags, err = flagsOf(c)
	if err != nil {
		return x, x.unusable("%w", err)
	}
	return x, nil
}

// say prints what of a public checkpoint was passed over.
func (x checkpointed) say(w io.Writer) {
	if x.public != nil {
		for _, note := range x.public.Notes {
			fmt.Fprintf(w, "gomem: %s: %s\n", x.Path, note)
		}
	}
}

// unusable is an error of a checkpoint.
func (x checkpointed) unusable(format string, args ...any) error {
	return &train.ErrCheckpoint{Path: x.Path, Err: fmt.Errorf(format, args...)}
}

// letters are those that a model of speech writes.
func (x checkpointed) letters() (speech.Letters, error) {
	l, err := speech.LettersOf(x.Classes)
	if err != nil {
		return nil, x.unusable("%w", err)
	}
	return l, nil
}

// flagsOf are the flags that chose a model, by what its checkpoint says.
func flagsOf(c train.Checkpoint) (modelFlags, error) {
	f := modelFlags{Model: c.Model, Size: c.Size}
	for _, field := range []struct {
		name string
		to   *count
	}{
		{"batch", &f.Batch}, {"length", &f.Length}, {"experts", &f.Experts},
		{"expert-hidden", &f.ExpertHidden}, {"depth", &f.Depth}, {"pixels", &f.Pixels},
		{"vocabulary", &f.Vocabulary}, {"classes", &f.Classes},
		{"topics", &f.Topics},
	} {
		if text := c.Config[field.name]; text != "" {
			if err := field.to.UnmarshalText([]byte(text)); err != nil {
				return f, fmt.Errorf("%s %w", field.name, err)
			}
		}
	}
	if text := c.Config["dropout"]; text != "" {
		f.Dropout = new(fraction)
		if err := f.Dropout.UnmarshalText([]byte(text)); err != nil {
			return f, fmt.Errorf("dropout %w", err)
		}
	}
	f.Freeze = scopes(c.Config["freeze"])
	if text := c.Config["lora"]; text != "" {
		if err := f.LoRA.UnmarshalText([]byte(text)); err != nil {
			return f, fmt.Errorf("lora %w", err)
		}
	}
	f.Fine, f.Stacked = c.Config["fine"] == "true", c.Config["stacked"] == "true"
	f.MoE, f.Nets = c.Config["moe"], c.Config["nets"]
	if c.Config["version"] == "2" {
		f.Version = "v2"
	}
	if c.Config["unrolled"] == "true" {
		f.RNN = "unrolled"
	}
	if c.Config["scanned"] == "true" {
		f.RNN = "scanned"
	}
	if c.Model == "deepspeech" && len(c.Classes) > 0 {
		f.symbols = count(len(c.Classes) + 1)
	}
	if c.Model == networks {
		f.Model, f.sum = networks+":"+c.Labels[labelFile], c.Config["sha256"]
		f.Axis, f.Output = axes(c.Config["axis"]), c.Config["output"]
		f.Loss, f.Target = c.Config["loss"], c.Config["target"]
	}
	if c.Model == "gpt" {
		f.Blocks, f.network = c.Config["blocks"], c.Config["network"]
		f.Store, f.Optimizer = c.Config["store"], c.Config["optimizer"]
	} else if blocks := blocksGiven(c.Config["blocks"]); blocks != "" {
		f.Blocks, f.Depth = blocks, 0
	}
	return f, nil
}

// blocksGiven is what --blocks was, by how it was kept: four numbers in brackets, which
// are zeros where there was a depth.
func blocksGiven(kept string) string {
	words := strings.Fields(strings.Trim(kept, "[]"))
	for _, w := range words {
		if n, err := strconv.Atoi(w); err == nil && n > 0 {
			return strings.Join(words, ",")
		}
	}
	return ""
}

// tokenizer is the one that the model was trained with.
func (x checkpointed) tokenizer() (*data.Tokenizer, error) {
	if x.public != nil {
		return x.public.Tokenizer, nil
	}
	if x.Tokenizer == "" {
		return nil, x.unusable("it has no tokenizer: train again")
	}
	t := new(data.Tokenizer)
	if err := t.UnmarshalText([]byte(x.Tokenizer)); err != nil {
		return nil, x.unusable("%w", err)
	}
	return t, nil
}

// weights are the values of the checkpoint's variables.
func (x checkpointed) weights() predict.Weights {
	if x.public != nil {
		return x.public.Load
	}
	return predict.Checkpoint(x.Path)
}

// className is what a label is called.
func (x checkpointed) className(label int) string {
	switch {
	case label == 0:
		return "background"
	case label <= len(x.Classes):
		return x.Classes[label-1]
	}
	return fmt.Sprintf("class %d", label)
}
