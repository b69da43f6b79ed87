package command

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/wrap"
	"github.com/gomem/gomem/internal/longtest"
)

// factoredRun trains the recurrent language model with two workers by a scheme, and returns what
// its first and its last line say, and the bytes of updates that both have sent.
func factoredRun(t *testing.T, flags ...string) (start struct{ Factored []factored },
	summary map[string]any, sent int64) {
	t.Helper()
	var meter wrap.Meter
	o := gather(t, inMemory{meter: &meter}, with([]string{"train", "--model", "lstm-lm", "--size",
		"s512", "--data", "text:pairs.tsv", "--policy", "vanilla", "--local", "2",
		"--eval-batches", "2", "--json"}, flags...)...)
	summary = summaryOf(t, o)
	first, _, _ := strings.Cut(o.stdout, "\n")
	if err := json.Unmarshal([]byte(first), &start); err != nil {
		t.Fatal(err)
	}
	for _, space := range []string{"device", "host"} {
		if summary["predicted_"+space+"_peak_bytes"] != summary["actual_"+space+"_peak_bytes"] {
			t.Errorf("%v: %s: %v", flags, space, summary)
		}
	}
	x := summary["exchanged"].(map[string]any)
	if x["memory_bytes"].(float64) > x["memory_bound_bytes"].(float64) {
		t.Errorf("%v: exchanging took more than was said: %v", flags, x)
	}
	return start, summary, meter.Sent(distrib.Updates).Bytes
}

// TestFactorsBetweenSteps: where every worker sends to every other, the matrices of all gates go
// as factors, whose bytes are those of the formula: samples times rows and columns, of V for all
// steps of a window and of U for all but the first. Fewer bytes are sent, by just what the
// variables' bytes differ, and the losses are those of whole matrices but for rounding. A limit of
// the norm, which changes nothing here, has matrices sent.
func TestFactorsBetweenSteps(t *testing.T) {
	inDir(t)
	const steps, units, texts, length = 6, 128, 4, 8
	run := []string{"--sync", "svb", "--steps", "6"}
	start, factors, sent := factoredRun(t, run...)
	if len(start.Factored) != 8 {
		t.Fatalf("factors of %v", start.Factored)
	}
	var fewer int64
	for _, f := range start.Factored {
		rows := int64(texts * length)
		if strings.HasSuffix(f.Variable, "/state-weight") {
			rows = texts * (length - 1)
		}
		if f.Bytes != 4*rows*2*units || f.Dense != 4*units*units {
			t.Errorf("%+v", f)
		}
		fewer += f.Dense - f.Bytes
	}
	none, dense, whole := factoredRun(t, with(run, "--clip", "1e9")...)
	if none.Factored != nil {
		t.Errorf("clipped, factors of %v", none.Factored)
	}
	if got := whole - sent; got != 2*steps*fewer {
		t.Errorf("factors save %d bytes, want %d", got, 2*steps*fewer)
	}
	for _, key := range []string{"loss_last", "eval_loss"} {
		if d := math.Abs(dense[key].(float64) - factors[key].(float64)); !(d <= 1e-4) {
			t.Errorf("%s: %v by factors, %v by matrices", key, factors[key], dense[key])
		}
	}
}

// TestFactorsOfSchemes: which variables go as factors is a matter of the scheme, the optimizer and
// the bytes; and what is accumulated has the factors of all batches.
func TestFactorsOfSchemes(t *testing.T) {
	inDir(t)
	for _, c := range []struct {
		flags string
		want  int
	}{
		{"--sync orpheus", 8}, {"--sync lossy", 8}, {"--sync halton", 8},
		{"--sync svb --accumulate 2", 4}, // 56 of 64 rows are fewer, 64 are not
		{"--sync svb --length 20", 0}, {"--sync svb --optimizer adam", 0},
		{"--sync svb --filter fp16", 0}, {"--sync bosen", 0}, {"--sync easgd", 0},
		{"--sync ring", 0}, {"--sync hybrid", 9}, {"--sync factors", 9},
	}[:longtest.Count(6, 12)] {
		start, _, _ := factoredRun(t, append(strings.Fields(c.flags), "--steps", "3")...)
		if len(start.Factored) != c.want {
			t.Errorf("%s: factors of %d variables, want %d: %v", c.flags, len(start.Factored),
				c.want, start.Factored)
		}
	}
}

// TestFactoredFact: a few variables are named, and more are counted.
func TestFactoredFact(t *testing.T) {
	var list []factored
	if got := factoredFact(list); got != "" {
		t.Error(got)
	}
	for range mostNamed {
		list = append(list, factored{"w", 1024, 2048})
	}
	all := factoredFact(list)
	want := "a worker's of a step are 8KiB for 16KiB: w 1KiB for 2KiB, w"
	if !strings.HasPrefix(all, want) || strings.Contains(all, "more") {
		t.Errorf("%q", all)
	}
	if got := factoredFact(append(list, list[0])); !strings.HasSuffix(got, "1 more (see --json)") {
		t.Errorf("%q", got)
	}
}
