//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package regular_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomem/gomem/internal/regular"
)

// TestHold: one at a time has a directory, by whatever name, and what is in it is as it was.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h, err := regular.Hold(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{dir, link, dir + "/."} {
			if _, err := regular.Hold(name); !errors.Is(err, regular.ErrHeld) {
				t.Errorf("%s is held twice: %v", name, err)
			}
		}
		h.Release()
	}
	if files, err := os.ReadDir(dir); len(files) > 0 || err != nil {
		t.Errorf("holding left %v, %v", files, err)
	}
	if _, err := regular.Hold(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that does not exist: %v", err)
	}
}
