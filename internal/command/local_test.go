package command

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// summaryOf is the last of JSON lines.
func summaryOf(t *testing.T, o outcome) map[string]any {
	t.Helper()
	if o.status != exitOK || o.stderr != "" {
		t.Fatalf("status %d, standard error %q", o.status, o.stderr)
	}
	lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
	var s map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLocalRing: workers that exchange gradients have one result, run after run, whatever
// the way, the plan and the budget; and one worker is the plain run.
func TestLocalRing(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	run := with(tiny, "--steps", "4", "--eval-batches", "1", "--bleu", "0", "--json")
	weights := func(c inMemory, more ...string) string {
		t.Helper()
		s := summaryOf(t, gather(t, c, with(run, more...)...))
		if s["predicted_device_peak_bytes"] != s["actual_device_peak_bytes"] {
			t.Errorf("%v: %v", more, s)
		}
		return s["weights_sha256"].(string)
	}
	alone := weights(inMemory{})
	if one := weights(inMemory{}, "--local", "1"); one != alone {
		t.Error("one worker is not a plain run")
	}
	ring := weights(inMemory{}, "--local", "3")
	if ring == alone {
		t.Error("three workers are as one")
	}
	budgets := inMemory{args: func(rank int) []string {
		return [][]string{{"--policy", "vanilla"}, {"--partition", "20"},
			{"--policy", "auto"}}[rank]
	}}
	for _, again := range []string{weights(inMemory{}, "--local", "3", "--sync", "ring"),
		weights(budgets, "--local", "3")} {
		if again != ring {
			t.Error("a ring has other weights the second time")
		}
	}
}

// TestLocalFactors: workers that exchange factors have one result, whatever the plan and the
// budget, within what exchanging may take, and nearly a ring's; where batches are large
// beside the weights it is more bytes than that of gradients, and hybrid takes fewer.
func TestLocalFactors(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	run := with(tinyMoE, "--steps", "3", "--eval-batches", "1", "--bleu", "0", "--json",
		"--optimizer", "sgd", "--local", "3", "--sync")
	budgets := inMemory{args: func(rank int) []string {
		return [][]string{{"--policy", "vanilla"}, {"--partition", "20"},
			{"--policy", "auto"}}[rank]
	}}
	one := func(c inMemory, scheme string) (weights string, loss, sent float64) {
		t.Helper()
		s := summaryOf(t, gather(t, c, with(run, scheme)...))
		x := s["exchanged"].(map[string]any)
		if s["predicted_host_peak_bytes"].(float64) < s["actual_host_peak_bytes"].(float64) ||
			s["predicted_device_peak_bytes"] != s["actual_device_peak_bytes"] ||
			x["memory_bytes"].(float64) > x["memory_bound_bytes"].(float64) {
			t.Errorf("%s: %v", scheme, s)
		}
		return s["weights_sha256"].(string), s["eval_loss"].(float64), x["sent_bytes"].(float64)
	}
	weights, loss, sent := one(inMemory{}, "factors")
	if again, _, _ := one(budgets, "factors"); again != weights {
		t.Error("factors have other weights the second time")
	}
	_, of, ring := one(inMemory{}, "ring")
	if math.Abs(loss-of) > 1e-5 || sent == ring {
		t.Errorf("a loss of %v and %v bytes, of a ring %v and %v", loss, sent, of, ring)
	}
	_, of, fewest := one(inMemory{}, "hybrid")
	if math.Abs(loss-of) > 1e-5 || fewest > min(sent, ring) {
		t.Errorf("hybrid: a loss of %v and %v bytes, of factors %v and %v", of, fewest, loss, sent)
	}
}

// TestLocalDisplay: what is shown of several workers fits, and says what they exchange.
func TestLocalDisplay(t *testing.T) {
	inDir(t)
	o := gather(t, inMemory{}, with(tiny, "--local", "2", "--steps", "3", "--bleu", "0")...)
	if o.status != exitOK || o.stderr != "" {
		t.Fatal(o)
	}
	for _, want := range []string{"workers        2, gradients by all-reduce on a ring",
		"  up ", "  down ",
		"exchanged       sent ", " of the host", "; least "} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
	for _, line := range tooWide(o.stdout, 80) {
		t.Errorf("too wide: %s", line)
	}
}

// TestLocalStops: when one worker is to stop, the run is saved, and says how to go on.
func TestLocalStops(t *testing.T) {
	inDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := inMemory{t: t, ctx: func(whole context.Context, rank int) context.Context {
		if rank == 1 {
			return ctx
		}
		return whole
	}}
	stdout := &stopper{on: "step 1/", cancel: cancel}
	var stderr bytes.Buffer
	status := Main(t.Context(), with(endless, "--local", "2", "--save", "run"), stdout, &stderr,
		Extras{Cluster: c})
	o := outcome{status, "", notices.ReplaceAllString(stderr.String(), "")}
	if o.status != exitOK || !strings.HasPrefix(o.stderr, "gomem: stopped after step ") ||
		!strings.Contains(o.stderr, "--local 2 --resume run") ||
		strings.Count(o.stderr, "\n") != 1 {
		t.Fatal(o.status, o.stderr)
	}
	o = gather(t, inMemory{}, with(tiny, "--local", "3", "--steps", "100000", "--resume", "run",
		"--seed", "2")...)
	if o.status != exitFailure ||
		!strings.Contains(o.stderr, "with --seed 0, this run has --seed 2") {
		t.Error(o.status, o.stderr)
	}
}

// TestLocalSchemes: whatever the scheme, the workers end with what the first one shows, and
// say what they have exchanged; in step and with plain descent, it is what a ring does, but that
// a ring has the mean over the words of all, of which the workers have unequally many.
func TestLocalSchemes(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	run := with(tiny, "--steps", "6", "--eval-batches", "1", "--bleu", "0", "--json",
		"--optimizer", "sgd", "--eval-every", "4", "--local", "2")
	want := summaryOf(t, gather(t, inMemory{}, run...))["eval_loss"].(float64)
	schemes := [][]string{{"bsp"}, {"bosen"}, {"pf", "--staleness", "1"},
		{"easgd", "--average", "2"}, {"ssp", "--staleness", "1"},
		{"ssp", "--filter", "topk:0.1"}, {"average", "--average", "3"}, {"async"}, {"svb"}}
	for _, scheme := range schemes[:longtest.Count(4, len(schemes))] {
		o := gather(t, inMemory{}, with(with(run, "--sync"), scheme...)...)
		if o.status != exitOK {
			t.Errorf("%v: %s", scheme, o.stderr)
			continue
		}
		s := summaryOf(t, o)
		loss := s["eval_loss"].(float64)
		if x := s["exchanged"].(map[string]any); x["sent_bytes"].(float64) < 1e5 ||
			x["memory_bytes"].(float64) < 1e5 || x["memory_bytes"].(float64) >
			x["memory_bound_bytes"].(float64) {
			t.Errorf("%v: %v", scheme, x)
		}
		if near := math.Abs(loss - want); near > 0.3 || scheme[0] == "bsp" && near > 1e-3 {
			t.Errorf("%v: held-out loss %v, of a ring %v", scheme, loss, want)
		}
	}
}
