package train

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// barrier is a fence that says what it is told to.
type barrier struct {
	epoch int64
	says  func(step int, path string) (time.Time, int64, error)
}

func (b *barrier) Term() (string, int64) { return "toy", b.epoch }

func (b *barrier) Saved(_ context.Context, step int, path string) (time.Time, int64, error) {
	return b.says(step, path)
}

// fencedOptions are of a run that is one worker of one, whose place others may take.
func fencedOptions(t *testing.T, b *barrier) Options {
	t.Helper()
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save, o.SaveEvery = filepath.Join(t.TempDir(), "run"), 2
	o.Parallel = &Parallel{Workers: 1, Peers: &seat{newHall(1), 0, 0}, Fence: b}
	return o
}

// TestFence: checkpoints say of which job and epoch they are, and each is told of just before it is
// the latest. One whose permission ends meanwhile is asked for again.
func TestFence(t *testing.T) {
	var told []string
	asked := 0
	b := &barrier{epoch: 3}
	o := fencedOptions(t, b)
	b.says = func(step int, path string) (time.Time, int64, error) {
		if path != "" {
			told = append(told, filepath.Base(path))
			if path != filepath.Join(o.Save, fileName(step)) {
				t.Errorf("told of %s after step %d", path, step)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("told of what is not there: %v", err)
			}
		}
		if asked++; asked%2 == 1 {
			return time.Now().Add(-time.Second), 0, nil // it was stopped after the answer
		}
		return time.Now().Add(time.Hour), 0, nil
	}
	s, _ := mustRun(t, o)
	c, err := Inspect(o.Save)
	if err != nil || c.Job != "toy" || c.Epoch != 3 || c.Step != s.SavedStep {
		t.Errorf("%+v, %v", c, err)
	}
	if len(told) < 2 || told[0] != fileName(2) {
		t.Errorf("told of %v", told)
	}
}

// TestReplaced: of a worker that others go on without no file changes, whoever notices it: who is
// asked, or the latest checkpoint, which is of a later epoch.
func TestReplaced(t *testing.T) {
	for _, noticed := range []string{"who is asked", "who is asked last", "the latest checkpoint"} {
		b := &barrier{epoch: 2}
		o := fencedOptions(t, b)
		later := fencedOptions(t, &barrier{epoch: 4, says: func(int, string) (time.Time, int64,
			error) {
			return time.Now().Add(time.Hour), 0, nil
		}})
		mustRun(t, later)
		var before map[string]string
		o.Observe = func(e Event) {
			if e.Kind == Step && e.Step == 6 {
				if noticed == "the latest checkpoint" {
					theirs(t, later.Save, o.Save)
				}
				before = contents(t, o.Save)
			}
		}
		b.says = func(step int, path string) (time.Time, int64, error) {
			if step >= 6 && noticed == "who is asked" ||
				step >= 6 && noticed == "who is asked last" && path != "" {
				return time.Time{}, 4, nil
			}
			return time.Now().Add(time.Hour), 0, nil
		}
		_, err := Run(t.Context(), o)
		if err == nil ||
			err.Error() != "worker 0 was replaced in epoch 4: its state of step 6 is not saved" {
			t.Errorf("%s: %v", noticed, err)
		}
		after := contents(t, o.Save)
		if noticed == "who is asked last" { // its own, which is not the latest
			delete(after, fileName(6))
		}
		if !maps.Equal(before, after) {
			t.Errorf("%s: files have changed", noticed)
		}
	}
}

// theirs puts the latest checkpoint of a directory into another one.
func theirs(t *testing.T, from, to string) {
	t.Helper()
	all := contents(t, from)
	for _, name := range []string{strings.TrimSpace(all[latestName]), latestName} {
		if err := os.WriteFile(filepath.Join(to, name), []byte(all[name]), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// TestRescueFenced: a run that fails is rescued where nobody goes on without it, also if that
// cannot be asked, and then removes nothing; else both are said on one line.
func TestRescueFenced(t *testing.T) {
	for _, c := range []struct {
		next int64
		err  error
	}{{}, {err: errors.New("nobody answers")}, {next: 3}} {
		b := &barrier{epoch: 2, says: func(step int, _ string) (time.Time, int64, error) {
			if step == 7 {
				return time.Time{}, c.next, c.err
			}
			return time.Now().Add(time.Hour), 0, nil
		}}
		o := fencedOptions(t, b)
		o.Loader = &losing{Batches: o.Loader, from: 7}
		_, err := Run(t.Context(), o)
		want, saved := "the disk is gone", 7
		if c.next > 0 {
			want += "; worker 0 was replaced in epoch 3: its state of step 7 is not saved"
			saved = 6
		}
		if err == nil || err.Error() != want {
			t.Errorf("%+v: %v", c, err)
		}
		if found, err := Inspect(o.Save); err != nil || found.Step != saved {
			t.Errorf("%+v: step %d, %v", c, found.Step, err)
		}
		if contents(t, o.Save)[fileName(4)] == "" {
			t.Errorf("%+v: what was saved before is gone", c)
		}
	}
}
