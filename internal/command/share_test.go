package command

import (
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestEvalShare: a run with a share held out is evaluated, by gomem eval too, on more
// than by default; and is resumed with that share alone.
func TestEvalShare(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	faces := pictured(t, "faces", 60, "cats", "dogs")
	few := pictured(t, "few", 5, "dogs", "cats")
	write(t, "other.tsv", "the number 5\tfive\nthe number 6\tsix\n")
	for _, c := range []struct {
		model, data, other string
	}{
		{"transformer", "tsv:pairs.tsv", "tsv:other.tsv"}, {"resnet", faces, few},
		{"gpt", "text:pairs.tsv", "text:other.tsv"}, {"wgan", faces, few},
		{"lstm-lm", "text:pairs.tsv", "text:other.tsv"},
		{"deepspeech", spoken(t, "list.csv", 100), spoken(t, "short.csv", 3)},
	} {
		args := []string{"train", "--model", c.model, "--size", "s512", "--policy", "vanilla",
			"--data", c.data}
		share := with(args, "--eval-share", "0.4", "--json")
		_, summary := trainLines(t, succeed(t, with(share, "--steps", "2", "--save", c.model)...))
		own := evaluation(t, "--from", c.model)
		plain := evaluation(t, "--from", c.model, "--data", c.other)
		if own["loss"] != summary["eval_loss"] || own["whole"] != false ||
			!reflect.DeepEqual(own["metrics"], summary["eval_metrics"]) {
			t.Errorf("%s: eval says %v, the run said %v %v", c.model, own, summary["eval_loss"],
				summary["eval_metrics"])
		}
		if plain["whole"] != true {
			t.Errorf("%s: of other data %v", c.model, plain)
		}
		o := invoke(t, with(args, "--steps", "3", "--resume", c.model, "--eval-share", "0.1")...)
		if o.status != exitFailure || strings.Count(o.stderr, "\n") != 1 || !strings.Contains(
			o.stderr, "was made with --eval-share 0.4, this run has --eval-share 0.1") {
			t.Errorf("%s resumed with another share: %+v", c.model, o)
		}
		succeed(t, with(args, "--steps", "3", "--resume", c.model)...)
	}
}

// TestEvalShareElsewhere: a run's data is known at any place, with what was held out of
// it.
func TestEvalShareElsewhere(t *testing.T) {
	inDir(t)
	faces := pictured(t, "faces", 60, "cats", "dogs")
	args := []string{"train", "--model", "resnet", "--size", "s512", "--policy", "vanilla",
		"--data", faces, "--steps", "1", "--json"}
	share := with(args, "--eval-share", "0.5")
	succeed(t, with(share, "--save", "half")...)
	if err := os.Rename("faces", "moved"); err != nil {
		t.Fatal(err)
	}
	_, summary := trainLines(t, succeed(t, with(share, "--data", "dir:moved")...))
	own := evaluation(t, "--from", "half", "--data", "dir:moved")
	if own["loss"] != summary["eval_loss"] || own["whole"] != false {
		t.Errorf("elsewhere %v, the run said %v", own, summary["eval_loss"])
	}
}

// TestEvalShareOfOtherData: of other data all is evaluated, in an order that no run's
// share has changed.
func TestEvalShareOfOtherData(t *testing.T) {
	inDir(t)
	few := pictured(t, "few", 40, "cats", "dogs")
	b, err := modelFlags{Model: "resnet", Size: "s512"}.build(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	load := func(share, trained string) (dataset, bool, error) {
		x := checkpointed{kind: b.kind, Checkpoint: train.Checkpoint{
			Config: map[string]string{"data": "another", "eval-share": share},
			Labels: map[string]string{"data": trained + ": 40 files"}}}
		return (&evalCmd{Data: location(few)}).load(t.Context(), io.Discard, x, b.model)
	}
	want, _, err := load("", "glyphs")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"0.5", "glyphs"}, {"0.999999", "glyphs"}, {"0.5", few}} {
		got, whole, err := load(c[0], c[1])
		if err != nil || !whole {
			t.Fatalf("%q: whole %v, %v", c, whole, err)
		}
		for i := range want.batches.HeldOutBatches() {
			x, y := got.batches.HeldOut(i).Inputs, want.batches.HeldOut(i).Inputs
			if !slices.Equal(x[0].F32(), y[0].F32()) || !slices.Equal(x[1].I32(), y[1].I32()) {
				t.Errorf("%q: batch %d is another", c, i)
			}
		}
	}
	if _, _, err := load("7", few); err == nil || !strings.Contains(err.Error(), "eval-share") {
		t.Errorf("a share of 7: %v", err)
	}
}

// TestEvalShareRefused: shares that are none, and runs that have no use for one.
func TestEvalShareRefused(t *testing.T) {
	inDir(t)
	for _, share := range []string{"NaN", "0", "-0.1", "1", "2", "Inf", "a tenth", ""} {
		o := invoke(t, with(tiny, "--eval-share", share)...)
		if o.status != exitUsage || strings.Count(o.stderr, "\n") != 1 || o.stdout != "" ||
			!strings.Contains(o.stderr, "--eval-share: ") ||
			!strings.Contains(o.stderr, "a number above 0, below 1") {
			t.Errorf("%q: %+v", share, o)
		}
	}
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{exitUsage, "--eval-share and --eval-data can't be used together",
			with(tiny, "--eval-share", "0.1", "--eval-data", "tsv:pairs.tsv")},
		{exitUsage, "--eval-share does nothing for cifar10: its test set is",
			[]string{"train", "--model", "resnet", "--data", "cifar10:x", "--eval-share", "0.1"}},
		{exitFailure, "--eval-share 1e-09 holds nothing out",
			with(tiny, "--eval-share", "1e-9")},
		{exitFailure, "do not fill one batch", with(tiny, "--eval-share", "0.999999")},
	} {
		o := invoke(t, c.args...)
		if o.status != c.status || !strings.Contains(o.stderr, c.says) ||
			strings.Count(o.stderr, "\n") != 1 || o.stdout != "" {
			t.Errorf("%q: %+v, want %q", c.args, o, c.says)
		}
	}
}
