package regular

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// failing is the operating system, of which one operation fails.
type failing struct {
	OS
	what string
}

var errFull = errors.New("no space")

func (f failing) Create(path string) (File, error) {
	if f.what == "create" {
		return nil, errFull
	}
	return f.OS.Create(path)
}

func (f failing) Rename(from, to string) error {
	if f.what == "rename" {
		return errFull
	}
	return f.OS.Rename(from, to)
}

// TestReplace: a file is replaced as a whole, or it is as it was and nothing is left.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	text := func(s string, err error) func(File) error {
		return func(f File) error {
			_, failed := io.WriteString(f, s)
			return errors.Join(failed, err)
		}
	}
	if err := Replace(OS{}, dir, "file", ".tmp", text("old", nil)); err != nil {
		t.Fatal(err)
	}
	for what, content := range map[string]func(File) error{
		"create": text("new", nil), "rename": text("new", nil), "content": text("ne", errFull),
	} {
		err := Replace(failing{what: what}, dir, "file", ".tmp", content)
		have, _ := os.ReadFile(path)
		if !errors.Is(err, errFull) || string(have) != "old" {
			t.Errorf("%s: %v, the file has %q", what, err, have)
		}
	}
	if err := Replace(OS{}, dir, "file", ".tmp", text("new", nil)); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	have, _ := os.ReadFile(path)
	if err != nil || len(files) != 1 || string(have) != "new" {
		t.Errorf("files %v with %q, %v", files, have, err)
	}
}
