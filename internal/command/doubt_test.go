package command

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
)

// TestDoubt: a step that takes far less, or more, than was predicted by what this machine was
// measured to take has that said, and all of it measured again at the next start.
func TestDoubt(t *testing.T) {
	longtest.Skip(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	b, err := modelFlags{Model: "transformer", Size: "s512"}.build(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o := gomem.Options{Device: gomem.CPU}
	p, err := planAll(t.Context(), io.Discard, b, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		predicted, took time.Duration
		said            string
	}{
		{3 * time.Millisecond, 4 * time.Millisecond, ""},
		{41700 * time.Microsecond, 1800 * time.Microsecond, "gomem: a step took 1.8 ms, and 41.7 " +
			"were predicted: this machine is measured again at the next start\n"},
		{time.Millisecond, time.Second, "gomem: a step took 1000 ms, and 1 were predicted: this " +
			"machine is measured again at the next start\n"},
	} {
		if _, err := thisMachine(t.Context(), io.Discard, executed(p), o); err != nil {
			t.Fatal(err)
		}
		if kept(t) == 0 {
			t.Fatal("nothing was measured")
		}
		var said strings.Builder
		if err := compare(t.Context(), &said, p, o, c.predicted, c.took); err != nil ||
			said.String() != c.said {
			t.Errorf("%v predicted, %v taken: %q, %v", c.predicted, c.took, said.String(), err)
		}
		if again := kept(t) == 0; again != (c.said != "") {
			t.Errorf("%v predicted, %v taken: measured again: %v", c.predicted, c.took, again)
		}
	}
}

// kept is how many operations there are in the cache of what this machine was measured to take.
func kept(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "gomem",
		"machine-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("kept are %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), `"op"`)
}
