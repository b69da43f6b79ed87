package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSavesThatFail: a checkpoint that cannot be written costs nothing but itself, unless it is the
// last. What was there before is there still.
func TestSavesThatFail(t *testing.T) {
	want, _ := mustRun(t, toyOptions(t, toy(toyVocab, unigram{})))
	for _, c := range []struct {
		name   string
		blocks []int // steps at which something is in the way
		fails  bool
		latest int
	}{
		{"a full disk for a while", []int{4, 8}, false, want.Steps},
		{"at the end", []int{want.Steps}, true, want.Steps - want.Steps%4 - 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := toyOptions(t, toy(toyVocab, unigram{}))
			o.Save, o.SaveEvery = t.TempDir(), 4
			var warned []string
			o.Observe = func(e Event) {
				if e.Kind == Warning {
					warned = append(warned, e.Text)
				}
				for _, step := range c.blocks {
					path := filepath.Join(o.Save, fileName(step))
					switch {
					case e.Kind == Step && e.Step == 1:
						block(t, path)
					case e.Kind == Step && e.Step == 10 && !c.fails:
						if err := os.Remove(path); err != nil {
							t.Error(err)
						}
					}
				}
			}
			s, err := Run(context.Background(), o)
			if _, unsaved := errors.AsType[*ErrCheckpoint](err); unsaved != c.fails {
				t.Fatalf("%v", err)
			}
			if !c.fails && s.WeightsSHA256 != want.WeightsSHA256 {
				t.Error("other weights than those of a run whose saves succeed")
			}
			if len(warned) < len(c.blocks) ||
				!strings.Contains(warned[0], "the run goes on, and has") ||
				strings.Contains(warned[0], "\n") {
				t.Errorf("%q", warned)
			}
			if found, err := Inspect(o.Save); err != nil || found.Step != c.latest {
				t.Errorf("the latest is of step %d, want %d: %v", found.Step, c.latest, err)
			}
		})
	}
}

// block puts a directory where a file is to be.
func block(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}
