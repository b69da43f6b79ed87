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
	if err := Replace(OS{}, dir, "file", text("old", nil)); err != nil {
		t.Fatal(err)
	}
	for what, content := range map[string]func(File) error{
		"create": text("new", nil), "rename": text("new", nil), "content": text("ne", errFull),
	} {
		err := Replace(failing{what: what}, dir, "file", content)
		have, _ := os.ReadFile(path)
		if !errors.Is(err, errFull) || string(have) != "old" {
			t.Errorf("%s: %v, the file has %q", what, err, have)
		}
	}
	if err := Replace(OS{}, dir, "file", text("new", nil)); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, ".other.17.tmp")
	for _, left := range []string{other, filepath.Join(dir, ".file.17.tmp")} {
		if err := os.WriteFile(left, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(Tidy(OS{}, dir, "file"), os.Remove(other))
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	have, _ := os.ReadFile(path)
	if err != nil || len(files) != 1 || string(have) != "new" {
		t.Errorf("files %v with %q, %v", files, have, err)
	}
}

// TestReplaced: what Temporary made is recognised, and nothing else is.
func TestReplaced(t *testing.T) {
	for _, name := range []string{"a", "a.b", ".a", "a.7"} {
		if of, ok := Replaced(Temporary(name)); !ok || of != name {
			t.Errorf("%s is temporary for %q", Temporary(name), of)
		}
	}
	for _, name := range []string{"", ".tmp", "..tmp", ".1.tmp", "..1.tmp", ".a.x.tmp", "a.1.tmp",
		".a.1"} {
		if of, ok := Replaced(name); ok {
			t.Errorf("%q is temporary for %q", name, of)
		}
	}
}
