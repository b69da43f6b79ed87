//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/regular"
)

// TestOneRunSaves: as long as a run goes on, no other saves to its directory, neither a new one
// nor one that resumes what is there; then one does.
func TestOneRunSaves(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save = filepath.Join(t.TempDir(), "deep", "run")
	o.Steps, o.SaveEvery = 4, 2
	refused := 0
	try := func(resume string) {
		again := toyOptions(t, toy(toyVocab, unigram{}))
		again.Save, again.Resume = o.Save+"/", resume
		again.Steps = 8
		_, err := Run(context.Background(), again)
		if e, ok := errors.AsType[*ErrCheckpoint](err); !ok || e.Path != again.Save ||
			!errors.Is(err, regular.ErrHeld) || strings.Contains(err.Error(), "\n") {
			t.Errorf("a second run, resuming %q: %v", resume, err)
		}
		refused++
	}
	o.Observe = func(e Event) {
		switch {
		case e.Kind == Step && e.Step == 1:
			try("")
		case e.Kind == Step && e.Step == 3:
			try(o.Save)
		}
	}
	if _, err := Run(context.Background(), o); err != nil || refused != 2 {
		t.Fatalf("after %d other runs: %v", refused, err)
	}
	o.Resume, o.Steps, o.Observe = o.Save, 8, nil
	if s, err := Run(context.Background(), o); err != nil || s.ResumedFrom != 4 {
		t.Errorf("resumed from %d: %v", s.ResumedFrom, err)
	}
}

// TestNothingSaved: a run that saves nothing leaves nothing of a directory that it made, and
// leaves alone one that it did not.
func TestNothingSaved(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{top, filepath.Join(top, "deep", "run")} {
		o := toyOptions(t, toy(toyVocab, unigram{NaNLoss: 1}))
		o.Save = dir
		seen := false
		o.Observe = func(e Event) {
			_, err := os.Stat(dir)
			seen = seen || err == nil
		}
		if _, err := Run(context.Background(), o); err == nil || !seen {
			t.Errorf("%s: %v, and the directory was seen: %v", dir, err, seen)
		}
		if left := tree(t, top); len(left) > 1 {
			t.Errorf("%s: there is %v", dir, left)
		}
	}
}
