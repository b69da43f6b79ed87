package precision_test

import (
	"strings"
	"testing"

	"github.com/gomem/gomem/graph/precision"
)

// TestParse: names are those of the precisions, and what is none is refused with what there is.
func TestParse(t *testing.T) {
	for _, p := range precision.All() {
		if got, err := precision.Parse(string(p)); got != p || err != nil {
			t.Errorf("%s is read as %q, %v", p, got, err)
		}
	}
	if p, err := precision.Parse(""); !p.Plain() || err != nil {
		t.Errorf("nothing is %q, %v", p, err)
	}
	for bad, want := range map[string]string{"F32": "want one of f32, tf32, bf16", "fp16": "scaled",
		"tf32 ": "unknown"} {
		if _, err := precision.Parse(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
