package data

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/regular"
)

// promptly fails a test in which f waits for somebody.
func promptly(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it hangs")
	}
}

// TestPipes: a pipe is refused, or passed over in a tree, and not waited for.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.mo", "a.txt"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Skip(err)
		}
	}
	promptly(t, func() {
		for _, spec := range []string{"tsv:" + dir + "/a.txt", "text:" + dir + "/a.txt"} {
			_, err := Open(t.Context(), spec, nil)
			if !errors.Is(err, regular.ErrNotRegular) ||
				!strings.Contains(err.Error(), "a.txt: a pipe, not a regular file: give a file") {
				t.Errorf("%s: %v", spec, err)
			}
		}
		if _, err := Open(t.Context(), "mo:"+dir, nil); err == nil ||
			!strings.Contains(err.Error(), "no pairs in 0 files") {
			t.Errorf("a tree of pipes: %v", err)
		}
		r := &reader{}
		if _, err := r.parseFile(dir+"/a.mo", parseMO); !errors.Is(err, regular.ErrNotRegular) {
			t.Errorf("a file that became a pipe: %v", err)
		}
	})
}

// goCommand puts a program named go first on the PATH.
func goCommand(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/go", []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	t.Setenv("GOROOT", "")
}

// TestGoRoot: a go command that hangs, or whose children do, is given up; one that
// fails is as good as none.
func TestGoRoot(t *testing.T) {
	longtest.Skip(t)
	for script, want := range map[string]string{
		"sleep 600":           "the go command does not say its GOROOT in 50ms: mend it",
		"sleep 600 & sleep 1": "does not say",
	} {
		goCommand(t, script)
		promptly(t, func() {
			root, err := goRoot(t.Context(), 50*time.Millisecond)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %q, %v", script, root, err)
			}
		})
	}
	goCommand(t, "echo /tree")
	if root, err := goRoot(t.Context(), time.Minute); root != "/tree" || err != nil {
		t.Errorf("%q, %v", root, err)
	}
	goCommand(t, "exit 1")
	if _, err := goRoot(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := goRoot(ctx, time.Minute); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestMisspelt: a spec that names no data is told from data that is not there.
func TestMisspelt(t *testing.T) {
	t.Setenv("GOROOT", t.TempDir()+"/none")
	for spec, want := range map[string]bool{"": true, "ftp:x": true, "tsv:": true,
		"tsv:/none/such": false, "mo:/none/such": false, "go:doc": false} {
		_, err := Open(t.Context(), spec, nil)
		if e, ok := errors.AsType[*Error](err); !ok || e.Misspelt != want {
			t.Errorf("%q: %+v", spec, err)
		}
	}
}
