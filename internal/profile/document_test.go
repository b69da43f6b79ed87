package profile_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/profile"
)

// TestDocument: every key that a report or a difference has is documented.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/profile.md")
	if err != nil {
		t.Fatal(err)
	}
	in := inputOf(t, "moe")
	var report, diff bytes.Buffer
	p := explain(t, in)
	if err := p.Report.WriteJSON(&report); err != nil {
		t.Fatal(err)
	}
	other := inputOf(t, "transformer").Plan
	if err := compare(t, in.Plan, other).WriteJSON(&diff); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, b := range []*bytes.Buffer{&report, &diff} {
		var x any
		if err := json.Unmarshal(b.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		gather(x, keys)
	}
	for _, c := range profile.Categories() {
		keys[c.String()] = true
	}
	for key := range keys {
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("docs/profile.md does not have %s", key)
		}
	}
	if len(keys) < 80 {
		t.Errorf("only %d keys", len(keys))
	}
}

// gather notes the keys of objects.
func gather(x any, keys map[string]bool) {
	switch x := x.(type) {
	case map[string]any:
		for key, value := range x {
			keys[key] = true
			gather(value, keys)
		}
	case []any:
		for _, value := range x {
			gather(value, keys)
		}
	}
}
