package command

import (
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/train"
)

// TestDumpVerifies: a plan read from a file is as good as one that was just made,
// for a graph that is built anew; and a file that was changed is refused.
func TestDumpVerifies(t *testing.T) {
	inDir(t)
	succeed(t, "plan", "--model", "transformer", "--size", "s512", "--no-fuse", "--dump",
		"plan.txt", "--policy", "thesis")
	data, err := os.ReadFile("plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	c, err := models.NewTransformerConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Transformer(c)
	if err != nil {
		t.Fatal(err)
	}
	target := train.Targets(&m.Model)[0]
	read := func(text string) error {
		p, err := plan.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return plan.Verify(p, m.Graph, target.Fetches, target.Updates)
	}
	text := string(data)
	if err := read(text); err != nil {
		t.Error(err)
	}
	for old, changed := range map[string]string{"sha256:": "sha256:0", "device+0 ": "device+1 ",
		" stage ": " feed ", "launch matmul": "launch matmuls", "space host ": "space host 1"} {
		switch other := strings.Replace(text, old, changed, 1); {
		case other == text:
			t.Errorf("nothing to replace: %q", old)
		case read(other) == nil:
			t.Errorf("%q for %q is accepted", changed, old)
		}
	}
}

// TestDumpPass: every step of the plan has its event in the tables, by number and
// node, and every slot at least one stay.
func TestDumpPass(t *testing.T) {
	inDir(t)
	for _, policy := range []string{"thesis", "vanilla", "grappler"} {
		succeed(t, "plan", "--model", "moe", "--size", "s512", "--policy", policy, "--dump",
			"plan.txt", "--dump-pass", "tables.txt")
		rows := map[string]int{}
		for _, file := range []string{"plan.txt", "tables.txt"} {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				kind, _, _ := strings.Cut(line, " ")
				rows[kind]++
			}
		}
		if rows["event"] == 0 || rows["event"] != rows["step"] || rows["stay"] < rows["slot"] ||
			rows["candidate"] == 0 || rows["order"] == 0 || rows["leaf"] == 0 ||
			policy == "thesis" && rows["away"] == 0 {
			t.Errorf("%s: rows by kind %v", policy, rows)
		}
	}
}

// TestDebugSaysWhyCandidatesLost: of plans and of refusals, on standard error.
func TestDebugSaysWhyCandidatesLost(t *testing.T) {
	for budget, want := range map[string]string{
		"1GiB": " taken : policy=", "1KiB": "over the budget"} {
		o := invoke(t, "--log-level", "debug", "plan", "--size", "s512", "--device-memory", budget)
		if !strings.Contains(o.stderr, want) {
			t.Errorf("%s: no candidate is %q:\n%s", budget, want, o.stderr)
		}
	}
}
