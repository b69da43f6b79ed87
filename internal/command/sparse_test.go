package command

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// sparseEnd is what the last epoch of a run said.
type sparseEnd struct {
	Type                  string
	Epoch, Nonzero        int
	Objective, Gap, Loss  float64
	Test_loss, Test_error float64
}

func endOf(t *testing.T, o outcome) (end sparseEnd) {
	t.Helper()
	if o.status != exitOK || o.stderr != "" {
		t.Fatalf("%d, %s", o.status, o.stderr)
	}
	for line := range strings.Lines(o.stdout) {
		var x sparseEnd
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		if x.Type == "epoch" {
			end = x
		}
	}
	return end
}

// TestSparse: regression with few coefficients ends when the gap is small, and by whatever
// schedule, of one worker or several, at the same objective.
func TestSparse(t *testing.T) {
	inDir(t)
	write(t, "points", "1.5 1:1 2:0.5\n-2 1:0.25 3:1\n0.5 1:0.9\n3 2:0.75 3:-1\n")
	for _, data := range [][]string{
		{"--model", "lasso"},
		{"--model", "lasso", "--data", "libsvm:points", "--eval-data", "libsvm:points", "--lambda",
			"0.4"},
		{"--model", "l1-lr", "--lambda", "300", "--gap", "1e-3"},
	} {
		var first sparseEnd
		for i, how := range [][]string{nil, {"--local", "2"}, {"--sync", "independent"},
			{"--local", "3", "--sync", "independent"}} {
			args := with(with([]string{"train", "--json"}, data...), how...)
			end := endOf(t, gather(t, inMemory{}, args...))
			if i == 0 {
				first = end
			}
			if end.Nonzero == 0 || end.Epoch == 0 || end.Gap > 1e-3*end.Objective ||
				math.Abs(end.Objective-first.Objective) > 1e-3*first.Objective ||
				!(end.Test_loss > 0) {
				t.Errorf("%v: %+v, first %+v", args, end, first)
			}
		}
	}
	text := succeed(t, "train", "--model", "lasso", "--data", "libsvm:points")
	if !strings.Contains(text, "4 samples of 3 features, lambda ") ||
		!strings.Contains(text, "  nonzero ") {
		t.Error(text)
	}
	for want, args := range map[string][]string{
		"--sync blocks is for --model lasso and": {"--model", "mf", "--sync", "blocks"},
		"--sync bsp keeps workers in step, and":  {"--model", "lasso", "--sync", "bsp"},
		"--rule does nothing with --sync blocks": {"--model", "lasso", "--rule", "adam"},
		"--lr does nothing for --model lasso":    {"--model", "lasso", "--lr", "1"},
		"--lambda does nothing for --model mlr":  {"--model", "mlr", "--lambda", "1"},
		"--gap does nothing for --model mf":      {"--model", "mf", "--gap", "0.1"},
		"--gap does nothing for --model moe":     {"--model", "moe", "--gap", "0.1"},
		"\"1\": want a number above 0":           {"--model", "lasso", "--gap", "1"},
		"\"1.5\" is no class":                    {"--model", "l1-lr", "--data", "libsvm:points"},
	} {
		o := gather(t, inMemory{}, with([]string{"train"}, args...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %d, %s, want %q", args, o.status, o.stderr, want)
		}
	}
}

// TestSparseSaved: what is good enough before the last epoch is saved, too, by one worker or more.
func TestSparseSaved(t *testing.T) {
	inDir(t)
	for _, n := range []string{"1", "2"} {
		succeedIn(t, []string{"train", "--model", "lasso", "--gap", "0.01", "--local", n, "--save",
			"run" + n})
		if exported(t, "run"+n) == "" {
			t.Errorf("%s workers: nothing is saved", n)
		}
	}
}

// TestSparseGoesOn: what goes on from what was saved ends with the bits of what never stopped, and
// a penalty is kept with the run.
func TestSparseGoesOn(t *testing.T) {
	for _, c := range [][]string{{"--model", "lasso", "--local", "3"}, {"--model", "lasso"},
		{"--model", "l1-lr"}} {
		inDir(t)
		fixed := with([]string{"train", "--gap", "1e-300", "--lambda", "90"}, c...)
		succeedIn(t, with(fixed, "--epochs", "3", "--save", "whole"))
		succeedIn(t, with(fixed, "--epochs", "2", "--save", "half"))
		succeedIn(t, with([]string{"train", "--epochs", "3", "--resume", "half"}, c[2:]...))
		if exported(t, "whole") != exported(t, "half") {
			t.Errorf("%v: what went on has other bits", c)
		}
		o := gather(t, inMemory{}, "train", "--resume", "half", "--epochs", "4", "--lambda", "3")
		if !strings.Contains(o.stderr, "the run there has --lambda 90, not 3") {
			t.Errorf("%v: %s", c, o.stderr)
		}
	}
}

func succeedIn(t *testing.T, args []string) {
	t.Helper()
	if o := gather(t, inMemory{}, args...); o.status != exitOK || o.stderr != "" {
		t.Fatalf("%v: %d, %s", args, o.status, o.stderr)
	}
}
