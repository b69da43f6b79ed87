package command

import (
	"fmt"
	"strings"
	"testing"
)

// TestExport: what is exported predicts the same, by its own tokenizer, and can be
// trained on; what is no checkpoint of gpt is refused.
func TestExport(t *testing.T) {
	inDir(t)
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "9", "--save", "run")
	if out := succeed(t, "export", "--from", "run", "published"); !strings.Contains(out,
		"43,392 parameters of step 9") {
		t.Errorf("%q", out)
	}
	if got := files(t, "published"); got != "config.json model.safetensors tokenizer.json" {
		t.Errorf("files %s", got)
	}
	for _, c := range []struct{ want, line string }{
		{"run: the directory has checkpoints of a run", "export --from run run"},
		{"published: the directory has a public checkpoint", "train --model gpt --size s512 " +
			"--data text:pairs.tsv --steps 1 --save published"},
	} {
		o := invoke(t, strings.Fields(c.line)...)
		if o.status != exitFailure || !strings.Contains(o.stderr, c.want) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", c.line, o)
		}
	}
	write(t, "a.txt", "the number")
	want, _ := predicted(t, exitOK, "--from", "run", "--tokens", "9", "a.txt")
	got, _ := predicted(t, exitOK, "--from", "published", "--tokens", "9", "a.txt")
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, from := range []string{"run", "published"} {
		succeed(t, "export", "--from", from, "--gguf", from+".gguf")
		got, _ := predicted(t, exitOK, "--from", from+".gguf", "--tokens", "9", "a.txt")
		if got != want {
			t.Errorf("%s.gguf: %q, want %q", from, got, want)
		}
	}
	succeed(t, "train", "--model", "gpt", "--network", "run.gguf", "--init", "run.gguf", "--batch",
		"2", "--steps", "1", "--data", "text:pairs.tsv")
	if o := invoke(t, "export", "--from", "run", "--store", "q8_0", "out"); o.status != exitUsage ||
		!strings.Contains(o.stderr, "--store does nothing without --gguf") {
		t.Errorf("%+v", o)
	}
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "2", "--save", "again",
		"--tokenizer", "published/tokenizer.json")
	lines, _ := trainLines(t, succeed(t, "train", "--model", "gpt", "--size", "s512", "--steps",
		"2", "--init", "published", "--data", "text:pairs.tsv", "--json"))
	if text := fmt.Sprint(lines); !strings.Contains(text, "28 variables taken") {
		t.Errorf("%s does not say what was taken", text)
	}
	trained(t, "transformer", "--data", "tsv:pairs.tsv", "--steps", "2", "--bleu", "0", "--save",
		"other")
	for args, says := range map[string]string{
		"export --from none out":      "none",
		"export --from other out":     "it is of transformer",
		"export --from published out": "it is in the public form already: copy",
		"train --model gpt --size s512 --data text:pairs.tsv --tokenizer a.txt": "a.txt",
	} {
		if o := invoke(t, strings.Fields(args)...); o.status != exitFailure ||
			!strings.Contains(o.stderr, says) {
			t.Errorf("%s: %+v", args, o)
		}
	}
	if o := invoke(t, "train", "--tokenizer", "a.txt"); o.status != exitUsage ||
		!strings.Contains(o.stderr, "--tokenizer does nothing for --model moe") {
		t.Errorf("%+v", o)
	}
}

// TestExportONNX: what predicts of a model is written as a file, which is a network with the
// logits; a model that predicts nothing is refused, and no file is there.
func TestExportONNX(t *testing.T) {
	inDir(t)
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "2", "--save", "run")
	if out := succeed(t, "export", "--from", "run", "--onnx", "model.onnx"); out !=
		"wrote model.onnx: 43,392 parameters of step 2\n" {
		t.Errorf("%q", out)
	}
	out := succeed(t, "plan", "--model", "onnx:model.onnx", "--json")
	if !strings.Contains(out, "43392") {
		t.Errorf("another network: %.300s", out)
	}
	trained(t, "topic", "--data", "drawn", "--steps", "1", "--save", "topics")
	o := invoke(t, "export", "--from", "topics", "--onnx", "topics.onnx")
	if o.status != exitFailure || !strings.Contains(o.stderr, "neither logits nor other outputs") {
		t.Errorf("%+v", o)
	}
	if got := files(t, "."); strings.Contains(got, "topics.onnx") {
		t.Errorf("files %s", got)
	}
}
