package command

import (
	"fmt"
	"strings"
	"testing"
)

// documentsOf writes documents whose tokens a tokenizer of the checkpoint in public counts, and
// says how long they are.
func documentsOf(t *testing.T) {
	t.Helper()
	inDir(t)
	var lines strings.Builder
	for i := range 90 {
		fmt.Fprintf(&lines, "{\"text\": %q}\n", strings.Repeat("ab ", 1+i%3*i%40))
	}
	write(t, "d.jsonl", lines.String())
}

// TestPlanDocuments: what is planned for documents is what trains on them, and how long they are
// is counted.
func TestPlanDocuments(t *testing.T) {
	documentsOf(t)
	flags := []string{"--model", "gpt", "--size", "s512", "--batch", "2", "--data",
		"jsonl:d.jsonl", "--device-memory", "4MiB", "--json"}
	var x explanation
	decode(t, succeed(t, append([]string{"plan"}, flags...)...), &x)
	trained := succeed(t, append([]string{"train", "--steps", "1"}, flags...)...)
	line, _, _ := strings.Cut(trained, "\n")
	var header report
	decode(t, line, &header)
	if x.DevicePeak != header.DevicePeak || x.HostPeak != header.HostPeak || x.DevicePeak == 0 {
		t.Errorf("planned %d and %d bytes, trained in %d and %d", x.DevicePeak, x.HostPeak,
			header.DevicePeak, header.HostPeak)
	}
	d, sum := x.Documents, 0
	for i, r := range d.Bins {
		sum += r.Documents
		if r.From > r.To || i > 0 && r.From <= d.Bins[i-1].To {
			t.Errorf("ranges %+v", d.Bins)
		}
	}
	if last := d.Bins[len(d.Bins)-1]; d.Documents != 90 || sum != 90 || d.Longest > last.To ||
		d.Longest < last.From || d.Median > d.Ninety || d.Ninety > d.Longest {
		t.Errorf("%+v", d)
	}
}

// TestPlanLengths: every length has the plan that it has alone, and rows that hold all tokens.
func TestPlanLengths(t *testing.T) {
	documentsOf(t)
	flags := []string{"plan", "--model", "gpt", "--size", "s512", "--batch", "2", "--data",
		"jsonl:d.jsonl", "--device-memory", "3MiB"}
	var x struct {
		Lengths []lengthPlan
	}
	decode(t, succeed(t, append(flags, "--json", "--lengths", "32,8,512,4096")...), &x)
	if len(x.Lengths) != 4 {
		t.Fatalf("%+v", x)
	}
	for i, want := range []int{8, 32} {
		l := x.Lengths[i]
		var alone explanation
		decode(t, succeed(t, append(flags, "--json", "--length", fmt.Sprint(want))...), &alone)
		if l.Length != want || l.MinDevice != alone.MinDevice || l.Device != alone.DevicePeak ||
			l.PredictedMS != alone.PredictedMS || l.Full <= 0.5 || l.Full > 1 || l.EpochS <= 0 {
			t.Errorf("%+v, alone %+v", l, alone.report)
		}
	}
	if a, b := x.Lengths[0], x.Lengths[1]; a.Rows <= b.Rows || a.Cut <= b.Cut {
		t.Errorf("%+v and %+v", a, b)
	}
	if l := x.Lengths[2]; l.Why != "no room" || l.MinDevice <= 3<<20 {
		t.Errorf("%+v within 3 MiB", l)
	}
	few := x.Lengths[3]
	x.Lengths = nil // a batch of the usual length is not asked for
	decode(t, succeed(t, append(flags, "--json", "--batch", "64", "--lengths", "8")...), &x)
	if l := x.Lengths; len(l) != 1 || l[0].Why != "" || l[0].Rows < 64 {
		t.Errorf("64 short rows: %+v", l)
	}
	if l := few; l.Why != "too few" || l.Device != 0 {
		t.Errorf("%+v of a few rows", l)
	}
	out := succeed(t, append(flags, "--lengths", "32,8")...)
	for _, words := range []string{"length", "tokens/s", "documents  90; "} {
		if !strings.Contains(out, words) {
			t.Errorf("%s\ndoes not say %q", out, words)
		}
	}
}

// TestPlanLengthsRefuses: flags that go with documents, and nothing else.
func TestPlanLengthsRefuses(t *testing.T) {
	documentsOf(t)
	write(t, "none.jsonl", "")
	for _, row := range []struct{ args, says string }{
		{"--model moe --data jsonl:d.jsonl", "is for --model gpt, or lda"},
		{"--model moe --lengths 8", "is for --model gpt, or lda"},
		{"--model gpt --lengths 8", "needs --data jsonl:FILE"},
		{"--model gpt --tokenizer t.json", "needs --data jsonl:FILE"},
		{"--model gpt --data text:d.jsonl", "want jsonl:FILE"},
		{"--model gpt --data jsonl:missing.jsonl", "missing.jsonl"},
		{"--model gpt --data jsonl:none.jsonl", "none.jsonl"},
		{"--model gpt --data jsonl:d.jsonl --lengths 8 --length 8", "is one of --lengths"},
		{"--model gpt --data jsonl:d.jsonl --lengths 8 --dump p.txt", "--dump is of one plan"},
		{"--model gpt --data jsonl:d.jsonl --lengths 8 --sweep", "together"},
		{"--model gpt --data jsonl:d.jsonl --lengths 8 --device cpu,cpu", "has several"},
		{"--model gpt --data jsonl:d.jsonl --lengths 0", "--lengths"},
		{"--model gpt --data jsonl:d.jsonl --lengths 8,,9", "--lengths"},
		{"--model gpt --data jsonl:d.jsonl --tokenizer none.json", "none.json"},
		{"--model gpt --data jsonl:d.jsonl --network none", "--network none"},
		{"--model gpt --data jsonl:d.jsonl --tokens 5", "plan --tokens is for --model lda"},
	} {
		o := invoke(t, append([]string{"plan", "--size", "s512"}, strings.Fields(row.args)...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, row.says) {
			t.Errorf("plan %s: %d, %q, want %q", row.args, o.status, o.stderr, row.says)
		}
	}
}
