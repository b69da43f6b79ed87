//go:build unix

package regular_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gomem/gomem/internal/regular"
)

// TestRegularFilesOnly: whatever else is at a path is refused, without waiting
// and by a name that people know; a link to a file is followed.
func TestRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := errors.Join(syscall.Mkfifo(at("pipe"), 0o600), os.Symlink(at("pipe"), at("link")),
		os.Symlink(at("nothing"), at("dangling"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "a directory, not a regular file", at("pipe"): "a pipe, not a regular file",
		at("link"): "a pipe, not a regular file", at("socket"): "a socket, not a regular file",
		os.DevNull: "a device, not a regular file", at("dangling"): "no such file",
		at("none"): "no such file",
	} {
		f, err := regular.Open(path)
		if f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", path, f, err, want)
		}
		e, ok := errors.AsType[*fs.PathError](err)
		if !ok || e.Path != path {
			t.Errorf("%s: the error %v (%T) does not name the path", path, err, err)
		}
		if missing := want == "no such file"; missing == errors.Is(err, regular.ErrNotRegular) ||
			missing != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v is of the wrong kind", path, err)
		}
		if _, err := regular.ReadFile(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

// TestReadFile: all of a file, through a link too.
func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	link := path + ".link"
	for _, n := range []int{0, 1, 511, 512, 1 << 20} {
		want := bytes.Repeat([]byte("x"), n)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(link)
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		if got, err := regular.ReadFile(link); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: read %d, %v", n, len(got), err)
		}
	}
}

// TestReplacedByAPipe: a pipe that takes a file's place between looking and
// opening does not make it wait either.
func TestReplacedByAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := syscall.Mkfifo(path+".pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			_ = os.WriteFile(path+".new", nil, 0o600)
			_ = os.Rename(path+".new", path)
			_ = os.Remove(path)
			_ = os.Link(path+".pipe", path)
		}
	}()
	for {
		if f, err := regular.Open(path); err == nil {
			if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
				t.Errorf("opened %v, %v", info, err)
			}
			f.Close()
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
