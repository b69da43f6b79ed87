package command

import (
	"fmt"
	"strings"
	"testing"
)

// TestTrees: boosted trees are learnt of what is drawn and of files, by one worker or several with
// the same bits, and after a run that was saved; and what they have no use for is refused.
func TestTrees(t *testing.T) {
	inDir(t)
	var points strings.Builder
	for i := range 120 {
		fmt.Fprintf(&points, "%d 1:%d 3:%d\n", (i/7+i%3)%2, i%11, i%13)
	}
	write(t, "points", points.String())
	for k, c := range [][]string{
		{"--tree-depth", "3"},
		{"--loss", "logistic", "--data", "libsvm:points", "--eval-data", "libsvm:points", "--lr",
			"0.3", "--tree-depth", "2"},
	} {
		run := func(more ...string) string {
			o := gather(t, inMemory{}, with(with([]string{"train"}, c...), more...)...)
			if o.status != exitOK || o.stderr != "" {
				t.Fatalf("%v %v: %d, %s", c, more, o.status, o.stderr)
			}
			return o.stdout
		}
		name := func(s string) string { return fmt.Sprint(s, k) }
		c = with([]string{"--model", "gbt"}, c...)
		text := run("--epochs", "4", "--save", name("whole"))
		if !strings.Contains(text, "epoch 4  loss ") || !strings.Contains(text, "  test loss ") ||
			strings.Contains(text, "  auc ") != (k == 1) {
			t.Errorf("%v: %s", c, text)
		}
		whole := exported(t, name("whole"))
		run("--epochs", "4", "--local", "3", "--save", name("three"))
		run("--epochs", "2", "--local", "2", "--save", name("half"), "--seed", "0")
		c = nil
		run("--epochs", "4", "--resume", name("half"), "--local", "2")
		for _, s := range []string{"three", "half"} {
			if exported(t, name(s)) != whole {
				t.Errorf("%s: other trees", name(s))
			}
		}
	}
	json := succeed(t, "train", "--model", "gbt", "--epochs", "2", "--json", "--loss", "logistic")
	if !strings.Contains(json, `"auc":0.`) || strings.Count(json, `"type":"epoch"`) != 3 {
		t.Error(json)
	}
	for _, still := range [][]string{{"--min-leaf", "20000"}, {"--lambda", "1e12"}} {
		text := succeed(t, with([]string{"train", "--model", "gbt", "--epochs", "1"}, still...)...)
		if _, first, _ := strings.Cut(text, "epoch 0"); strings.Count(text, first[:14]) != 2 {
			t.Errorf("%v: a tree changed something: %s", still, text)
		}
	}
	succeed(t, "train", "--model", "mf", "--epochs", "1", "--lambda", "0.1")
	write(t, "five", "0 1:1\n1 1:1\n2 2:1\n")
	gbt := []string{"--model", "gbt"}
	for want, args := range map[string][]string{
		"--sync histograms is for --model gbt":   {"--model", "mf", "--sync", "histograms"},
		"--sync bsp is not for --model gbt":      with(gbt, "--sync", "bsp"),
		"--rule does nothing with --sync histog": with(gbt, "--rule", "adam"),
		"--tree-depth does nothing for --model ": {"--model", "mlr", "--tree-depth", "3"},
		"--loss does nothing for --model moe":    {"--model", "moe", "--loss", "logistic"},
		"--gap does nothing for --model gbt":     with(gbt, "--gap", "0.1"),
		"--min-leaf does nothing for --model mf": {"--model", "mf", "--min-leaf", "3"},
		"has --min-leaf 20, not 3":               {"--resume", "whole1", "--min-leaf", "3"},
		"has no --lambda, not 3":                 {"--resume", "whole1", "--lambda", "3"},
		"trees of depth 13: want 1 to 12":        with(gbt, "--tree-depth", "13"),
		"five: 3 classes: want two": with(gbt, "--loss", "logistic", "--data",
			"libsvm:five"),
		"has --tree-depth 2, not 3":              {"--resume", "whole1", "--tree-depth", "3"},
		"has --loss logistic, not squares":       {"--resume", "whole1", "--loss", "squares"},
		"whole1 is at epoch 4 already, the run ": {"--resume", "whole1", "--epochs", "3"},
		"131073 trees: want 131072 at most":      with(gbt, "--epochs", "131073"),
	} {
		o := invoke(t, with([]string{"train"}, args...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %d, %q, want %q", args, o.status, o.stderr, want)
		}
	}
}
