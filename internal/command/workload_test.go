package command

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// TestShallow: models without layers learn, by one worker and by several, of data that are
// drawn or in a file, and refuse what is for layers.
func TestShallow(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	type run struct {
		args []string
		loss float64 // to get below
	}
	for _, c := range longtest.Some(5, []run{
		{[]string{"--model", "mlr", "--local", "3", "--staleness", "1"}, 0.7},
		{[]string{"--model", "mf", "--local", "2", "--sync", "ssp"}, 0.1},
		{[]string{"--model", "lr", "--filter", "dvf:1e-3,fp16", "--epochs", "3"}, 0.4},
		{[]string{"--model", "mlr", "--local", "2", "--rule", "bfgs"}, 0.45},
		{[]string{"--model", "mf", "--local", "2", "--rule", "adarevision:0.2", "--order",
			"absmag"}, 0.3},
		{[]string{"--model", "mlr"}, 0.7},
		{[]string{"--model", "lr", "--local", "2", "--sync", "pf", "--epochs", "2"}, 0.5},
		{[]string{"--model", "mlr", "--local", "2", "--rule", "adam:0.01"}, 0.7},
		{[]string{"--model", "mlr", "--rule", "dfp"}, 0.7},
	}) {
		o := gather(t, inMemory{}, with([]string{"train", "--json"}, c.args...)...)
		lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
		epochs, begin := 40, 0
		if slices.Contains(c.args, "stratified") { // says nothing of the beginning
			begin = 1
		}
		if i := slices.Index(c.args, "--epochs"); i >= 0 {
			epochs, _ = strconv.Atoi(c.args[i+1])
		}
		if o.status != exitOK || o.stderr != "" || len(lines) != epochs+2-begin {
			t.Fatalf("%v: %d, %s: %d lines", c.args, o.status, o.stderr, len(lines))
		}
		var last struct{ Epoch, Loss float64 }
		lines = lines[:len(lines)-1]
		text := lines[len(lines)-1]
		err := json.Unmarshal([]byte(text), &last)
		if err != nil || last.Epoch != float64(epochs) || !(last.Loss < c.loss) {
			t.Errorf("%v: %v, %s", c.args, err, text)
		}
		if lr := slices.Contains(c.args, "lr"); lr != strings.Contains(text, `"auc":0.7`) {
			t.Errorf("%v: %s", c.args, text)
		}
	}
	write(t, "points", "0 1:1 2:0.5\n1 1:0.25 2:1\n0 1:0.9\n1 2:0.75\n")
	text := succeed(t, "train", "--model", "mlr", "--data", "libsvm:points", "--epochs", "3",
		"--lr", "0.5")
	if !strings.Contains(text, "points: 4 samples of 2 features and 2 classes") ||
		!strings.Contains(text, "epoch 3  loss 0.") {
		t.Error(text)
	}
	write(t, "broken", "1 2:x\n")
	write(t, "five", "0 1:1\n1 1:1\n2 2:1\n")
	write(t, "signs", "-1 1:1 2:0.5\n+1 1:0.25 9:1\n-1 1:0.9\n+1 2:0.75\n")
	text = succeed(t, "train", "--model", "lr", "--data", "libsvm:signs", "--epochs", "3",
		"--lr", "0.5", "--eval-data", "libsvm:signs")
	if !strings.Contains(text, "signs: 4 samples of 9 features and 2 classes") ||
		!strings.Contains(text, "test error 0.") || !strings.Contains(text, "  auc ") {
		t.Error(text)
	}
	for _, dir := range []string{"films", "torn", "both"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "films/u.data", "1\t9\t3\t881250949\n1\t7\t4.5\t881250950\n8\t9\t1\t0\n")
	text = succeed(t, "train", "--model", "mf", "--data", "ml:films", "--epochs", "2", "--factors",
		"2", "--sync", "stratified")
	if !strings.Contains(text, "ml:films: 3 elements of a matrix, 2 by 2") {
		t.Error(text)
	}
	write(t, "torn/ratings.dat", "1::2::3::4\n1::2::3\n")
	write(t, "both/u.data", "")
	write(t, "both/ratings.csv", "")
	dfp := []string{"--model", "mlr", "--rule", "dfp"}
	for want, args := range map[string][]string{
		"--mtbf does nothing for --model mlr":    {"--model", "mlr", "--mtbf", "9h", "--save", "r"},
		"averages and sums at barriers are":      {"--model", "lr", "--sync", "easgd"},
		"rows of kind sparse: averages":          {"--model", "lr", "--sync", "orpheus"},
		"a rule that does more than add":         {"--model", "lr", "--rule", "adam"},
		"a single row has no low rank":           {"--model", "lr", "--filter", "powersgd:2"},
		"--rotate-every does nothing for --mode": {"--model", "lr", "--rotate-every", "2"},
		"16777216 epochs by bfgs, of which each": {"--model", "mlr", "--rule", "bfgs", "--epochs",
			"16777216"},
		"five: 3 classes: want two":              {"--model", "lr", "--data", "libsvm:five"},
		"--mesh does nothing for --model mlr":    {"--model", "mlr", "--mesh", "batch:2"},
		"--no-fuse does nothing for --model mf":  {"--model", "mf", "--no-fuse"},
		"--partition does nothing for --model m": {"--model", "mf", "--partition", "20"},
		"--data points: want libsvm:FILE":        {"--model", "mlr", "--data", "points"},
		"--sync ring exchanges gradients of lay": {"--model", "mf", "--sync", "ring"},
		"--sync blocks is for --model lasso":     {"--model", "mf", "--sync", "blocks"},
		"--sync bsp keeps workers in step, and":  {"--model", "lasso", "--sync", "bsp"},
		"--lr does nothing for --model lasso":    {"--model", "lasso", "--lr", "1"},
		"--lambda does nothing for --model lr":   {"--model", "lr", "--lambda", "1"},
		"--gap does nothing for --model moe":     {"--model", "moe", "--gap", "0.1"},
		"--gap: \"1\": want a number above 0":    {"--model", "lasso", "--gap", "1"},
		"--sync stratified is for --model mf":    {"--model", "lr", "--sync", "stratified"},
		"--filter does nothing with --sync stra": {"--model", "mf", "--sync", "stratified",
			"--filter", "fp16"},
		"--factors does nothing for --model lr":  {"--model", "lr", "--factors", "9"},
		"--factors does nothing for --model moe": {"--model", "moe", "--factors", "9"},
		"--schedule does nothing for --model mf": {"--model", "mf", "--schedule", "step"},
		"torn/ratings.dat: line 2: ":             {"--model", "mf", "--data", "ml:torn"},
		"both: 2 files of ratings: want one of":  {"--model", "mf", "--data", "ml:both"},
		"nowhere: 0 files of ratings: want one":  {"--model", "mf", "--data", "ml:nowhere"},
		"--data x: want mtx:FILE or ml:DIR":      {"--model", "mf", "--data", "x"},
		"--rule bfgs is for --model mlr":         {"--model", "lr", "--rule", "bfgs"},
		"needs --sync bsp: all":                  with(dfp, "--sync", "ssp"),
		"--rule dfp keeps nothing":               with(dfp, "--save", "r"),
		"--lr does nothing with --rule bfgs":     {"--model", "mlr", "--rule", "bfgs", "--lr", "1"},
		"missing: no such file":                  {"--model", "mf", "--data", "mtx:missing"},
		"broken: ":                               {"--model", "mlr", "--data", "libsvm:broken"},
	} {
		o := invoke(t, with([]string{"train"}, args...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, want) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%v: %d, %q, want %q", args, o.status, o.stderr, want)
		}
	}
}

// TestExchangeIsMeasured: what exchanging takes is measured, and no more than was said before.
func TestExchangeIsMeasured(t *testing.T) {
	inDir(t)
	model := []string{"--model", "transformer", "--size", "s512", "--steps", "2"}
	for _, args := range longtest.Some(5, [][]string{
		with(model, "--sync", "bosen"), with(model, "--sync", "ring"),
		with(model, "--sync", "fabric"),
		{"--model", "mf", "--epochs", "2"}, {"--model", "lr", "--epochs", "1"},
		with(model, "--sync", "async"), with(model, "--sync", "pf"),
		with(model, "--sync", "halton"), {"--model", "mlr", "--epochs", "2"},
	}) {
		o := gather(t, inMemory{}, with([]string{"train", "--json", "--local", "2"}, args...)...)
		lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
		var last struct {
			Predicted int64           `json:"predicted_host_peak_bytes"`
			Actual    int64           `json:"actual_host_peak_bytes"`
			Exchanged train.Exchanged `json:"exchanged"`
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatalf("%v: %v: %s", args, err, o.stderr)
		}
		x := last.Exchanged
		if x.Memory <= 0 || x.Memory > x.Bound {
			t.Errorf("%v: exchanging took %d bytes of at most %d", args, x.Memory, x.Bound)
		}
		if last.Actual != last.Predicted {
			t.Errorf("%v: plans had %d bytes of the host, %d were said", args, last.Actual,
				last.Predicted)
		}
	}
}
