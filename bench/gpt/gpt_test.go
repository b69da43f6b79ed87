package main

import (
	"context"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// gpt2 and llama are configurations of small networks, as config.json has them.
func gpt2() map[string]any {
	return map[string]any{"model_type": "gpt2", "activation_function": "gelu_new", "n_layer": 3,
		"n_head": 4, "n_embd": 32, "n_inner": 96, "n_positions": 48, "n_ctx": 48,
		"vocab_size": 211, "layer_norm_epsilon": 1e-5}
}

func llama(tied bool) map[string]any {
	return map[string]any{"model_type": "llama", "hidden_act": "silu", "num_hidden_layers": 3,
		"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32,
		"intermediate_size": 80, "max_position_embeddings": 48, "vocab_size": 211,
		"rms_norm_eps": 1e-6, "rope_theta": 10000, "rope_scaling": nil,
		"tie_word_embeddings": tied}
}

// TestPyTorch is what takes PyTorch, which is slow to start.
func TestPyTorch(t *testing.T) {
	longtest.Skip(t)
	p, err := startPeer(context.Background(), "/usr/bin/python3")
	if missing, ok := errors.AsType[*torch.ErrMissing](err); ok {
		t.Skip("nothing to compare with: ", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string]map[string]any{
		"gpt2":              {"config": gpt2()},
		"gpt2, with masks":  {"config": gpt2(), "prefix": "transformer.", "buffers": true},
		"gpt2, bf16":        {"config": gpt2(), "code": "BF16"},
		"llama, tied":       {"config": llama(true)},
		"llama, f16 shards": {"config": llama(false), "code": "F16", "shards": 3},
	} {
		t.Run(name, func(t *testing.T) { testCheckpoint(t, p, arguments) })
	}
	t.Run("training", func(t *testing.T) { testTraining(t, p) })
	t.Run("failure", func(t *testing.T) {
		if err := p.ask("evaluate", map[string]any{"directory": "none"}, nil); err == nil {
			t.Error("a request without arguments was answered")
		}
	})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// testCheckpoint: what PyTorch writes is read; written again, PyTorch reads it, and
// there it has the loss and the continuation that it has here, within any memory.
func testCheckpoint(t *testing.T, p peer, arguments map[string]any) {
	ctx := context.Background()
	dir := t.TempDir()
	arguments["directory"] = dir
	if err := p.ask("make", arguments, nil); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again")
	if err := rewrite(ctx, dir, again); err != nil {
		t.Fatal(err)
	}
	w := randomText(3, 40, 211)
	var want struct{ Loss float64 }
	err := p.ask("evaluate", map[string]any{"directory": again, "tokens": w.tokens,
		"targets": w.targets}, &want)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, again} {
		got, err := evaluate(ctx, dir, w)
		if err != nil || !(math.Abs(got-want.Loss) < 1e-5*want.Loss) {
			t.Errorf("%s: loss %v, want %v; %v", filepath.Base(dir), got, want.Loss, err)
		}
	}
	const tokens = 30
	prompt := w.tokens[0][:11]
	var there generated
	if err := p.ask("generate", map[string]any{"directory": again, "prompt": prompt,
		"tokens": tokens}, &there); err != nil {
		t.Fatal(err)
	}
	for _, budget := range []int64{0, 64 << 10} {
		here, err := generate(ctx, dir, prompt, tokens, 48, gomem.Options{DeviceBytes: budget})
		if err != nil || !slices.Equal(here.IDs, there.IDs) {
			t.Errorf("in %d bytes: %v, want %v; %v", budget, here.IDs, there.IDs, err)
		}
	}
}

// rewrite writes a public checkpoint again.
func rewrite(ctx context.Context, from, to string) (err error) {
	p, err := train.OpenPublic(from)
	if err != nil {
		return err
	}
	m, err := models.GPT(randomText(1, 8, p.Config.Vocab).of(p.Config))
	if err != nil {
		return err
	}
	s, err := gomem.Compile(ctx, m.Graph, gomem.Options{}, train.Targets(&m.Model)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := p.Load(s, parameters(s)); err != nil {
		return err
	}
	return train.WritePublic(to, p.Config, p.Tokenizer, parameters(s), s.Get)
}

// testTraining: steps of AdamW with clipped gradients have PyTorch's losses.
func testTraining(t *testing.T, p peer) {
	for _, config := range []map[string]any{gpt2(), llama(false)} {
		dir := t.TempDir()
		if err := p.ask("make", map[string]any{"config": config, "directory": dir},
			nil); err != nil {
			t.Fatal(err)
		}
		w := randomText(2, 24, 211)
		var want trained
		if err := p.ask("train", map[string]any{"directory": dir, "tokens": w.tokens,
			"targets": w.targets, "steps": 8, "rate": 0.003, "decay": 0.1}, &want); err != nil {
			t.Fatal(err)
		}
		got, err := learn(context.Background(), dir, w, 8, 0.003, gomem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Losses {
			if !(math.Abs(got.Losses[i]-want.Losses[i]) < 1e-4*want.Losses[i]) {
				t.Errorf("%v: losses %v, want %v", config["model_type"], got.Losses, want.Losses)
				break
			}
		}
		if want.Losses[7] > want.Losses[0]-0.5 {
			t.Errorf("nothing was learnt: %v", want.Losses)
		}
	}
}

func TestParse(t *testing.T) {
	if o, err := parse([]string{"-part", "train"}, io.Discard); err != nil || len(o.parts) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"-part", "x"}, {"more"}, {"-what"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}

// TestNoPython: without an interpreter there is nothing to compare with.
func TestNoPython(t *testing.T) {
	o, err := parse([]string{"-python", "no-such-interpreter", "-dir", t.TempDir()}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := run(context.Background(), o, &b); err != nil ||
		!strings.Contains(b.String(), "not compared: no Python interpreter") {
		t.Errorf("%q, %v", &b, err)
	}
}

// evaluate is the loss of a public checkpoint, of windows of text.
func evaluate(ctx context.Context, dir string, w windows) (loss float64, err error) {
	p, err := train.OpenPublic(dir)
	if err != nil {
		return 0, err
	}
	m, err := models.GPT(w.of(p.Config))
	if err != nil {
		return 0, err
	}
	s, err := gomem.Compile(ctx, m.Graph, gomem.Options{}, gomem.Evaluation(m.EvalLoss))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := p.Load(s, parameters(s)); err != nil {
		return 0, err
	}
	out, err := s.Step(ctx, "eval", w.feeds(m, 0, 0))
	if err != nil {
		return 0, err
	}
	return float64(out[0].F32()[0]), nil
}
