package command

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// evaluation is the JSON object of an evaluation that must work.
func evaluation(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var line map[string]any
	out := succeed(t, append([]string{"eval", "--json", "--policy", "vanilla"}, args...)...)
	if err := json.Unmarshal([]byte(out), &line); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return line
}

// spoken writes a set of recordings and gives its spec.
func spoken(t *testing.T, name string, n int) string {
	t.Helper()
	list := "wav_filename,wav_filesize,transcript\n"
	recording(t, "word.wav", 12000)
	for i := range n {
		list += fmt.Sprintf("word.wav,24044,%c%c\n", 'a'+i%26, 'a'+i/26)
	}
	write(t, name, list)
	return "csv:" + name
}

// pictured writes a folder of pictures of some kinds and gives its spec.
func pictured(t *testing.T, dir string, n int, kinds ...string) string {
	t.Helper()
	for i := range n {
		picture(t, fmt.Sprintf("%s/%s/%d.png", dir, kinds[i%len(kinds)], i), 20+i%30, 30)
	}
	return "dir:" + dir
}

// TestEval: a checkpoint evaluates to what its run said at its end, under any plan; of
// other data, all is evaluated.
func TestEval(t *testing.T) {
	inDir(t)
	write(t, "other.tsv", "the number 5\tfive\nthe number 6\tsix\n")
	pairs, text := "tsv:pairs.tsv", "text:pairs.tsv"
	faces := pictured(t, "faces", 300, "cats", "dogs", "ducks")
	few := pictured(t, "few", 5, "ducks", "cats")
	for _, c := range []struct {
		model, data, other string
		units              float64 // of the other data; 0: whatever there is
	}{
		{"transformer", pairs, "tsv:other.tsv", 0}, {"moe", pairs, "tsv:other.tsv", 0},
		{"gpt", text, "text:other.tsv", 0}, {"resnet", faces, few, 5}, {"wgan", faces, few, 5},
		{"lstm-lm", text, "text:other.tsv", 0},
		{"deepspeech", spoken(t, "list.csv", 300), spoken(t, "short.csv", 3), 3},
	} {
		args := []string{"train", "--model", c.model, "--size", "s512", "--policy", "vanilla",
			"--data", c.data, "--steps", "3", "--save", c.model, "--json"}
		_, summary := trainLines(t, succeed(t, args...))
		for _, policy := range []string{"vanilla", "thesis"} {
			got := evaluation(t, "--from", c.model, "--policy", policy)
			if got["loss"] != summary["eval_loss"] ||
				!reflect.DeepEqual(got["metrics"], summary["eval_metrics"]) ||
				got["whole"] != false {
				t.Errorf("%s under %s: %v, the run had %v %v", c.model, policy, got,
					summary["eval_loss"], summary["eval_metrics"])
			}
			if got["predicted_device_peak_bytes"] != got["actual_device_peak_bytes"] {
				t.Errorf("%s under %s: %v", c.model, policy, got)
			}
		}
		other := evaluation(t, "--from", c.model, "--data", c.other)
		if other["whole"] != true || c.units > 0 && other["units"] != c.units ||
			other["units"] == 0.0 {
			t.Errorf("%s of other data: %v", c.model, other)
		}
		lines := succeed(t, "eval", "--policy", "vanilla", "--from", c.model, "--eval-batches", "1")
		if !strings.Contains(lines, "in 1 batch\n") || !strings.Contains(lines, "held-out loss  ") {
			t.Errorf("%s: %q", c.model, lines)
		}
	}
	refusesEval(t)
}

// refusesEval tries what cannot be evaluated, where there are checkpoints of all models.
func refusesEval(t *testing.T) {
	t.Helper()
	pictured(t, "strange", 6, "cats", "newts")
	if err := os.Remove("pairs.tsv"); err != nil {
		t.Fatal(err)
	}
	for args, c := range map[string]struct {
		status int
		says   string
	}{
		"":                                  {2, "--from"},
		"--from nowhere":                    {1, "checkpoint nowhere"},
		"--from resnet --bleu 1":            {2, "--bleu does nothing for resnet"},
		"--from resnet --data tsv:x":        {2, "is not for --model resnet"},
		"--from resnet --data odd:x":        {2, "unknown source"},
		"--from resnet --data dir:strange":  {1, "images of newts, which is none of the 3 kinds"},
		"--from resnet --device null":       {2, "computes nothing"},
		"--from transformer":                {1, "pairs.tsv: no such file"},
		"--from moe --data tsv:nothing.tsv": {1, "nothing.tsv: no such file"},
		"--from moe --data tsv:other.tsv --policy thesis --device-memory 9KiB": {1,
			"device memory"},
	} {
		o := invoke(t, append([]string{"eval"}, strings.Fields(args)...)...)
		if o.status != c.status || !strings.Contains(o.stderr, c.says) || o.stdout != "" ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("eval %s: %+v, want %d and %q", args, o, c.status, c.says)
		}
	}
}
