//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/device/devicetest"
	"github.com/gomem/gomem/internal/longtest"
)

// TestCodeIsKept: kernels are compiled once for a source and a GPU: a second device has them from
// the file that the first left. A file that is none is made anew, another source has another file,
// and where there is no place for one there is a device all the same.
func TestCodeIsKept(t *testing.T) {
	longtest.Skip(t)
	o := options(t, devicetest.Source)
	o.Cache = filepath.Join(t.TempDir(), "kernels")
	once := func(o cuda.Options) {
		t.Helper()
		d, err := cuda.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(want int) []string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(o.Cache, "*"))
		if err != nil || len(files) != want {
			t.Fatalf("%d files, want %d: %v, %v", len(files), want, files, err)
		}
		return files
	}
	once(o)
	path := kept(1)[0]
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		t.Fatalf("%d bytes: %v", len(text), err)
	}
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	once(o)
	if again, err := os.Stat(path); err != nil || !os.SameFile(first, again) {
		t.Errorf("the kernels were compiled again: %v", err)
	}
	if err := os.WriteFile(path, []byte("no kernels\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	once(o)
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, text) {
		t.Errorf("what is no file of kernels is left: %d of %d bytes, %v", len(again), len(text),
			err)
	}
	o.Source += "\n// another\n"
	once(o)
	kept(2)
	o.Cache = filepath.Join(path, "none")
	once(o)
}
