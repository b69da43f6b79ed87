package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := fmt.Fprint(w, s); return err }
	}
	if err := writeFile(path, text("one")); err != nil {
		t.Fatal(err)
	}
	err := writeFile(path, func(w io.Writer) error {
		return errors.Join(text("half")(w), errors.New("no space left"))
	})
	if err == nil || err.Error() != path+": no space left" {
		t.Errorf("error %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "one" || files(t, dir) != "a.txt" {
		t.Errorf("after a failed write the file has %q, the directory %s", got, files(t, dir))
	}
	if err := writeFile(path, text("two")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "two" {
		t.Errorf("file has %q", got)
	}
}

func TestWriteFileRefusesDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := writeFile(dir, func(io.Writer) error { return nil }); err == nil ||
		!strings.HasPrefix(err.Error(), dir+": ") {
		t.Errorf("error %v", err)
	}
}

// TestWriteFileKeepsDevices: what is not a regular file is written, not
// replaced.
func TestWriteFileKeepsDevices(t *testing.T) {
	if err := writeFile(os.DevNull,
		func(w io.Writer) error { _, err := fmt.Fprint(w, "x"); return err }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s is %v now (%v)", os.DevNull, info.Mode(), err)
	}
}

func TestAbandon(t *testing.T) {
	dir := t.TempDir()
	f, err := createFile(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	f.abandon()
	if left := files(t, dir); left != "" {
		t.Errorf("left behind: %s", left)
	}
}
