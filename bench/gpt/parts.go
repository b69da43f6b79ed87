package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/planner"
)

// networks are what is asked of PyTorch to make each.
func networks() map[string]map[string]any {
	return map[string]map[string]any{
		"GPT-2": {"deviation": 0.05, "config": map[string]any{"model_type": "gpt2",
			"activation_function": "gelu_new", "n_layer": 12, "n_head": 12, "n_embd": 768,
			"n_inner": 3072, "n_positions": 1024, "vocab_size": 50257,
			"layer_norm_epsilon": 1e-5}},
		"GPT-2, as trained": {"deviation": 0.02, "config": map[string]any{"model_type": "gpt2",
			"activation_function": "gelu_new", "n_layer": 12, "n_head": 12, "n_embd": 768,
			"n_inner": 3072, "n_positions": 1024, "vocab_size": 50257,
			"layer_norm_epsilon": 1e-5}},
		"LLaMA": {"deviation": 0.05, "code": "BF16", "config": map[string]any{
			"model_type": "llama", "hidden_act": "silu", "num_hidden_layers": 22,
			"num_attention_heads": 32, "num_key_value_heads": 4, "hidden_size": 2048,
			"intermediate_size": 5632, "max_position_embeddings": 2048, "vocab_size": 32000,
			"rms_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": false}},
	}
}

// part is one of the comparisons.
type part struct {
	name string
	run  func(ctx context.Context, b *bench, w io.Writer, first bool) error
}

func parts() []part {
	return []part{
		{"continue", continuation{"GPT-2", "Continuing a text with GPT-2", 0, 60, 128}.run},
		{"stream", continuation{"LLaMA", "Continuing a text with 1.1 billion parameters",
			256 << 20, 24, 128}.run},
		{"train", training},
		{"attention", attentions},
		{"loss", vocabularies},
	}
}

// continuation compares the likeliest tokens after a prompt.
type continuation struct {
	network, title string
	budget         int64 // of the device, in bytes; 0: none
	tokens, length int
}

func (c continuation) run(ctx context.Context, b *bench, w io.Writer, first bool) error {
	dir, err := b.network(ctx, c.network)
	if err != nil {
		return err
	}
	const prompt = 40
	text := randomText(1, prompt, 32000)
	var there generated
	about, err := b.alone(ctx, "generate", map[string]any{"directory": dir,
		"prompt": text.tokens[0], "tokens": c.tokens, "threads": runtime.NumCPU()}, &there)
	if err != nil {
		return err
	}
	here, err := generate(ctx, dir, text.tokens[0], c.tokens, c.length,
		gomem.Options{Policy: planner.Auto, DeviceBytes: c.budget})
	if err != nil {
		return err
	}
	if first {
		heading(w, about)
	}
	fmt.Fprintf(w, "\n## %s\n\n", c.title)
	fmt.Fprintf(w, "The %d likeliest tokens after a prompt of %d. ", c.tokens, prompt)
	if !slices.Equal(here.IDs, there.IDs) {
		fmt.Fprintf(w, "**They differ**:\n%v here,\n%v there.\n", here.IDs, there.IDs)
		return fmt.Errorf("%s continues otherwise", c.network)
	}
	fmt.Fprintf(w, "They are the same, token by token.\n\n")
	columns(w, "", "gomem", "PyTorch")
	row(w, "device memory, MiB", mib(here.Peak), "")
	row(w, "host memory, MiB", mib(here.host), mib(there.Peak))
	row(w, "first token, s", seconds(here.First), seconds(there.First))
	rest := float64(c.tokens - 1)
	row(w, "then tokens/s", fmt.Sprintf("%.2f", rest/here.Rest),
		fmt.Sprintf("%.2f", rest/there.Rest))
	return nil
}

// training compares steps of training, on a text of 512 tokens.
func training(ctx context.Context, b *bench, w io.Writer, first bool) error {
	const steps, length, budget = 3, 512, 512 << 20
	dir, err := b.network(ctx, "GPT-2, as trained")
	if err != nil {
		return err
	}
	text := randomText(1, length, 50257)
	var there trained
	about, err := b.alone(ctx, "train", map[string]any{"directory": dir, "tokens": text.tokens,
		"targets": text.targets, "steps": steps, "rate": 6e-4, "decay": 0.1,
		"threads": runtime.NumCPU()}, &there)
	if err != nil {
		return err
	}
	here, err := learn(ctx, dir, text, steps, 6e-4,
		gomem.Options{Policy: planner.Auto, DeviceBytes: budget})
	if err != nil {
		return err
	}
	if first {
		heading(w, about)
	}
	apart := 0.0
	for i := range here.Losses {
		apart = max(apart, math.Abs(here.Losses[i]-there.Losses[i])/there.Losses[i])
	}
	fmt.Fprintf(w, "\n## Training GPT-2\n\n%d steps on one text of %d tokens. Losses go from "+
		"%.4f to %.4f, and are %.0e apart at most.\n\n", steps, length, there.Losses[0],
		there.Losses[steps-1], apart)
	columns(w, "", "gomem", "PyTorch")
	row(w, "device memory, MiB", mib(here.Peak), "")
	row(w, "host memory, MiB", mib(here.host), mib(there.Peak))
	row(w, "a step, s (median)", seconds(gauge.Median(here.Seconds)),
		seconds(gauge.Median(there.Seconds)))
	if !(apart < 1e-3) {
		return fmt.Errorf("losses %v here, %v there", here.Losses, there.Losses)
	}
	return nil
}
