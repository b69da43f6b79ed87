package main

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
		"plan.txt")
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
	target := train.Targets(m)[0]
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
