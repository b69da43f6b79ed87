package command

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// plannedAmong is what plan says of the recurrent language model among two workers.
func plannedAmong(t *testing.T, scheme string) (x struct{ Sent []sent }) {
	t.Helper()
	o := gather(t, inMemory{}, "plan", "--model", "lstm-lm", "--size", "s512", "--policy",
		"vanilla", "--workers", "2", "--sync", scheme, "--json")
	if err := json.Unmarshal([]byte(o.stdout), &x); err != nil {
		t.Fatal(err, o.stderr)
	}
	return x
}

// TestPlanSaysWhatIsSent: plan says of every variable what training then does, with the bytes of
// the formula.
func TestPlanSaysWhatIsSent(t *testing.T) {
	inDir(t)
	const units, vocabulary, texts, length = 128, 528, 4, 8
	for _, scheme := range []string{"svb", "hybrid", "ring"} {
		x := plannedAmong(t, scheme)
		start, _, _ := factoredRun(t, "--sync", scheme, "--steps", "1", "--vocabulary",
			strconv.Itoa(vocabulary))
		trained := map[string]factored{}
		for _, f := range start.Factored {
			trained[f.Variable] = f
		}
		if len(x.Sent) != 10 {
			t.Fatalf("%s: %d variables", scheme, len(x.Sent))
		}
		for _, s := range x.Sent {
			f, by := trained[s.Variable]
			if s.Variable == "embedding/weight" { // of as many sub-words as are learnt
				continue
			}
			if by != s.ByFactors || by && (f.Bytes != s.Factors || f.Dense != s.Dense) {
				t.Errorf("%s: %+v, trained %+v", scheme, s, f)
			}
			if matrix := s.Dense == 4*units*units; scheme == "svb" && matrix != (s.Factors > 0) {
				t.Errorf("%+v", s)
			}
			if scheme == "svb" && strings.HasSuffix(s.Variable, "/weight") &&
				s.Factors != 4*texts*length*2*units {
				t.Errorf("%+v", s)
			}
		}
	}
}

// TestPlanAmong: what is printed names the way of a weight; and flags that make no sense are
// refused.
func TestPlanAmong(t *testing.T) {
	inDir(t)
	plan := []string{"plan", "--model", "lstm-lm", "--size", "s512", "--policy",
		"vanilla"}
	for scheme, want := range map[string]string{"orpheus": "What is less is taken.",
		"bosen": "This scheme sends all whole.", "factors": "wherever there are some",
		"hybrid": "    2KiB  none      whole"} {
		o := gather(t, inMemory{}, with(plan, "--workers", "4", "--sync", scheme)...)
		text := strings.ReplaceAll(o.stdout, "\n", " ")
		if o.status != exitOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s %s", scheme, o.status, o.stderr, o.stdout)
		}
	}
	for want, flags := range map[string][]string{
		"--sync needs --workers N":           {"--sync", "ring"},
		"there is no scheme":                 {"--workers", "2", "--sync", "nonsense"},
		"--workers does nothing with --mesh": {"--workers", "2", "--mesh", "batch:2"},
		"what the workers exchange takes":    {"--workers", "2", "--host-memory", "9KiB"},
		"among how many, 2 or more":          {"--workers", "1", "--sync", "svb"},
	} {
		o := gather(t, inMemory{}, with(plan, flags...)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %d %q, want %q", flags, o.status, o.stderr, want)
		}
	}
	if o := invoke(t, with(plan, "--sync", "svb")...); o.status != exitUsage ||
		!strings.Contains(o.stderr, "--sync needs gomem-cluster") {
		t.Errorf("%d %q", o.status, o.stderr)
	}
}
