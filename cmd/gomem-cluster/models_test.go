//go:build linux

package main

import (
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestLocalModels: every model is trained by several processes, by schemes of every kind: those of
// exchanges within a step have one result, run after run, and peaks are as predicted with all. The
// short form has one scheme of each model.
func TestLocalModels(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	schemes := []string{"ring", "ps", "hybrid", "factors", "bosen", "pf", "easgd", "ssp",
		"orpheus", "fabric"}
	within := map[string]bool{"ring": true, "ps": true, "hybrid": true, "factors": true}
	for i, model := range longtest.Some(4, []string{"moe", "resnet", "topic", "lstm-lm", "gpt",
		"wgan", "deepspeech", "transformer"}) {
		for k := range longtest.Count(1, len(schemes)) {
			scheme := schemes[(i+k)%len(schemes)]
			t.Run(model+"/"+scheme, func(t *testing.T) {
				run := func() string {
					return launch(t, t.TempDir(), "train", "--model", model, "--size", "s512",
						"--local", "2", "--sync", scheme, "--steps", "3", "--eval-batches", "1",
						"--json").weights(t)
				}
				if first := run(); within[scheme] && longtest.Enabled() && run() != first {
					t.Error("other weights the second time")
				}
			})
		}
	}
}
