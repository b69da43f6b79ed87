package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// line is any line of train --json.
type line struct {
	Type string
	Step int
	Loss float64
	Path string
	Text string
	Held float64 `json:"eval_loss"`
}

func trainLines(t *testing.T, out string) ([]line, map[string]any) {
	t.Helper()
	var lines []line
	var last map[string]any
	for text := range strings.Lines(out) {
		var l line
		last = nil
		decode(t, text, &l)
		decode(t, text, &last)
		lines = append(lines, l)
	}
	return lines, last
}

// tiny is a run of the model that is planned soonest, and tinyMoE one with experts.
var (
	tiny    = slices.Clip(with([]string{"train", "--model", "transformer"}, atItsSmallest...))
	tinyMoE = slices.Clip(with([]string{"train"}, atItsSmallest...))

	atItsSmallest = []string{"--size", "s512", "--data", "tsv:pairs.tsv", "--eval-batches", "1"}
)

func TestTrainJSON(t *testing.T) {
	inDir(t)
	lines, summary := trainLines(t,
		succeed(t, append(tiny, "--steps", "4", "--eval-every", "2", "--save", "run", "--json")...))
	var kinds []string
	for _, l := range lines {
		kinds = append(kinds, l.Type)
	}
	if got := strings.Join(kinds, " "); got != "start step step eval step step save eval summary" {
		t.Errorf("lines are %s", got)
	}
	for _, k := range []string{
		"steps", "loss_first", "loss_last", "eval_loss", "units_per_s", "step_ms_median",
		"predicted_device_peak_bytes", "actual_device_peak_bytes", "predicted_host_peak_bytes",
		"actual_host_peak_bytes",
		"weights_sha256", "vanilla_device_peak_bytes",
	} {
		if summary[k] == nil {
			t.Errorf("the summary has no %s: %v", k, summary)
		}
	}
	if summary["predicted_device_peak_bytes"] != summary["actual_device_peak_bytes"] ||
		summary["predicted_host_peak_bytes"] != summary["actual_host_peak_bytes"] {
		t.Errorf("peaks are not those predicted: %v", summary)
	}
}

// TestPlanAndTrainAgree: the peak that plan states is the one that a run has.
func TestPlanAndTrainAgree(t *testing.T) {
	inDir(t)
	var x explanation
	decode(t, succeed(t, "plan", "--size", "s512", "--partition", "7", "--json"), &x)
	_, summary := trainLines(t, succeed(t,
		append(tinyMoE, "--steps", "1", "--partition", "7", "--json")...))
	if summary["actual_device_peak_bytes"] != float64(x.DevicePeak) ||
		summary["actual_host_peak_bytes"] != float64(x.HostPeak) {
		t.Errorf("plan says %d and %d, the run had %v", x.DevicePeak, x.HostPeak, summary)
	}
}

// TestResume: a run in two parts ends as one without a break.
func TestResume(t *testing.T) {
	inDir(t)
	_, whole := trainLines(t, succeed(t, append(tiny, "--steps", "4", "--json")...))
	succeed(t, append(tiny, "--steps", "2", "--save", "run")...)
	lines, second := trainLines(t,
		succeed(t, append(tiny, "--steps", "4", "--resume", "run", "--policy", "vanilla",
			"--json")...))
	if lines[1].Type != "resume" || lines[1].Step != 2 || lines[2].Step != 3 {
		t.Errorf("the second part starts with %+v", lines[:3])
	}
	if whole["weights_sha256"] != second["weights_sha256"] {
		t.Errorf("weights differ: %v and %v", whole, second)
	}
	if o := invoke(t, append(tiny, "--steps", "4", "--resume", "run", "--seed",
		"9")...); o.status != exitFailure || !strings.Contains(o.stderr, "seed") {
		t.Errorf("with another seed: %+v", o)
	}
}

// TestPipe: what is not a terminal gets plain lines.
func TestPipe(t *testing.T) {
	inDir(t)
	out := succeed(t, append(tiny, "--steps", "12", "--save", "run")...)
	if i := strings.IndexFunc(out,
		func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }); i >= 0 {
		t.Errorf("a control character at %d in %q", i, out)
	}
	for _, want := range []string{"model ", "parameters", "vocabulary", "times as much",
		"step 1/12  loss", "step 12/12  loss", "held-out loss", "saved run", "predicted = ",
		"weights sha256"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// stopper cancels a context when a given text is written.
type stopper struct {
	bytes.Buffer
	on     string
	cancel context.CancelFunc
}

// Write keeps the text.
func (s *stopper) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.on)) {
		s.cancel()
	}
	return s.Buffer.Write(p)
}

// TestInterrupt: an interrupted run says what it saved and how to continue.
func TestInterrupt(t *testing.T) {
	inDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	stdout := &stopper{on: "step 1/", cancel: cancel}
	var stderr bytes.Buffer
	status := Main(ctx, append(tinyMoE, "--steps", "100000", "--save", "a run"), stdout, &stderr,
		Extras{})
	if status != exitOK || !strings.Contains(stderr.String(), "saved a run/") ||
		strings.Count(stderr.String(), "\n") != 1 {
		t.Fatalf("status %d, standard error %q", status, stderr.String())
	}
	if want := "continue with: gomem train --size s512 --data tsv:pairs.tsv --eval-batches 1 " +
		"--steps 100000 --resume 'a run'\n"; !strings.HasSuffix(stderr.String(),
		want) {
		t.Errorf("standard error %q", stderr.String())
	}
	if !strings.Contains(stdout.String(), "weights ") {
		t.Errorf("no summary in %s", stdout.String())
	}
}

func TestInterruptBeforeFirstStep(t *testing.T) {
	inDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	if status := Main(ctx, tiny, &stdout, &stderr, Extras{}); status != 130 ||
		!strings.Contains(stderr.String(), "interrupted") || stdout.Len() > 0 {
		t.Errorf("status %d, standard error %q", status, stderr.String())
	}
}

// TestBLEUZero: nobody has to wait for translations.
func TestBLEUZero(t *testing.T) {
	inDir(t)
	if out := succeed(t, append(tiny, "--steps", "1", "--bleu", "0")...); strings.Contains(out,
		"bleu") || !strings.Contains(out, "accuracy") {
		t.Errorf("a score for translations that were not wanted:\n%s", out)
	}
}

func TestTrace(t *testing.T) {
	inDir(t)
	succeed(t, append(tiny, "--steps", "2", "--trace", "trace.json")...)
	text, err := os.ReadFile("trace.json")
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct{ Name, Cat string }
	}
	if err := json.Unmarshal(text, &trace); err != nil || len(trace.TraceEvents) < 100 {
		t.Errorf("%d events, %v", len(trace.TraceEvents), err)
	}
}

// TestNullDevice: the accounting of a run that computes nothing.
func TestNullDevice(t *testing.T) {
	inDir(t)
	_, summary := trainLines(t, succeed(t,
		append(tiny, "--steps", "2", "--device", "null", "--json")...))
	if summary["predicted_device_peak_bytes"] != summary["actual_device_peak_bytes"] {
		t.Errorf("summary %v", summary)
	}
	text := succeed(t, append(tiny, "--steps", "2", "--device", "null")...)
	if strings.Contains(text, "weights") || !strings.Contains(text, "device peak") {
		t.Errorf("a summary of results that do not exist:\n%s", text)
	}
}

func TestResumption(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"train --save d", "gomem train --resume d"},
		{"train --resume e", "gomem train --resume d"},
		{"train --save=d --resume=e --steps 3", "gomem train --steps 3 --resume d"},
		{"train --resume e --save d --json", "gomem train --json --resume d"},
		{"train --save-every 3 --resume e", "gomem train --save-every 3 --resume d"},
	} {
		if got := resumption(&env{args: strings.Fields(c.args)}, "d"); got != c.want {
			t.Errorf("%s: %s, want %s", c.args, got, c.want)
		}
	}
	if got := quoted([]string{"it's", "", "a b", "plain"}); strings.Join(got,
		" ") != `'it'\''s' '' 'a b' plain` {
		t.Errorf("quoted %q", got)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -123456: "-123,456",
		860_700_672: "860,700,672"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
}

// TestModels: every model trains by its name, with the metrics that its users
// expect, and plan counts its parameters.
func TestModels(t *testing.T) {
	longtest.Skip(t)
	dir := inDir(t)
	for _, c := range []struct{ model, unit, metric string }{
		{"transformer", "token", "bleu"},
		{"resnet", "image", "accuracy among 5"},
		{"wgan", "image", ""},
		{"gpt", "token", "perplexity"}, {"lstm-lm", "token", "perplexity"},
	} {
		args := []string{"train", "--model", c.model, "--size", "s512", "--steps", "2",
			"--eval-batches", "1", "--json"}
		switch c.model {
		case "transformer":
			args = append(args, "--data", "tsv:pairs.tsv")
		case "gpt":
			args = append(args, "--data", "text:pairs.tsv", "--blocks", "llama")
		case "lstm-lm":
			args = append(args, "--data", "text:pairs.tsv")
		case "wgan":
			args = append(args, "--samples", "pictures")
		}
		_, summary := trainLines(t, succeed(t, args...))
		scores, _ := summary["eval_metrics"].(map[string]any)
		if _, ok := scores[c.metric]; summary["unit"] != c.unit || c.metric != "" && !ok {
			t.Errorf("%s: %v", c.model, summary)
		}
		if summary["predicted_device_peak_bytes"] != summary["actual_device_peak_bytes"] {
			t.Errorf("%s: peaks %v", c.model, summary)
		}
	}
	if got := files(t, dir+"/pictures"); got != "step-000002.png" {
		t.Errorf("pictures %s", got)
	}
	for model, want := range map[string]int64{
		"transformer": 61_378_560, "moe": 860_700_672, "resnet": 60_194_857, "wgan": 16_808_388,
		"deepspeech": 47_224_861, "gpt": 124_439_808, "lstm-lm": 14_400_160_000,
	} {
		var x explanation
		decode(t, succeed(t, "plan", "--model", model, "--size", "base", "--policy", "vanilla",
			"--batch", "4", "--json"), &x)
		if x.Parameters != want {
			t.Errorf("%s has %d parameters, want %d", model, x.Parameters, want)
		}
	}
}
