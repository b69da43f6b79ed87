//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package scratch_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib/cluster/scratch"
)

// holdVar makes this test's executable a process that has a directory below its value.
const holdVar = "GOMEM_TEST_HOLD"

func TestMain(m *testing.M) {
	if parent := os.Getenv(holdVar); parent != "" {
		d, err := scratch.Make(parent, "gomem-x-")
		if err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(d.Path, "data"), []byte("much"), 0o600); err != nil {
			panic(err)
		}
		os.Stdout.WriteString(d.Path + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// holder is a process with a directory, and what ends it.
func holder(t *testing.T, parent string) (dir string, kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), holdVar+"="+parent)
	if _, err := c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	end := func() { _ = c.Process.Kill(); _ = c.Wait() }
	t.Cleanup(end)
	return strings.TrimSpace(line), end
}

func is(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// makes makes a directory, and removes it.
func makes(t *testing.T, parent string) {
	t.Helper()
	d, err := scratch.Make(parent, "gomem-x-")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.Path)
	if err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(d.Path) != parent {
		t.Error(info, err)
	}
	if err := d.Remove(); err != nil || is(d.Path) {
		t.Error(err)
	}
	if err := d.Remove(); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

// TestLeftBehind: the directory of a process stays while it lives, whoever makes others, and is
// removed by the next one once it was killed; as often as that happens.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "a[*]?") // no pattern
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	lives, _ := holder(t, parent)
	dies, kill := holder(t, parent)
	makes(t, parent)
	if !is(filepath.Join(lives, "data")) || !is(filepath.Join(dies, "data")) {
		t.Fatal("that of a process that lives is gone")
	}
	kill()
	if !is(dies) {
		t.Fatal("who is killed has removed something")
	}
	makes(t, parent)
	if is(dies) || !is(filepath.Join(lives, "data")) {
		t.Errorf("of the killed one: %v, of the living one: %v", is(dies), is(lives))
	}
}

// TestStays: what is not known to be left behind by a process of this user and this machine stays.
func TestStays(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string) string{
		"no lock": func(t *testing.T, dir string) string {
			return rename(t, filepath.Join(dir, ".lock"), filepath.Join(dir, ".lock.new"), dir)
		},
		"a link": func(t *testing.T, dir string) string {
			moved := rename(t, dir, filepath.Join(filepath.Dir(dir), "elsewhere"), dir)
			if err := os.Symlink("elsewhere", moved); err != nil {
				t.Fatal(err)
			}
			return dir
		},
		"a lock that is a link": func(t *testing.T, dir string) string {
			rename(t, filepath.Join(dir, ".lock"), filepath.Join(dir, "lock"), dir)
			if err := os.Symlink("lock", filepath.Join(dir, ".lock")); err != nil {
				t.Fatal(err)
			}
			return dir
		},
		"another machine's": func(t *testing.T, dir string) string {
			lock := filepath.Join(dir, ".lock")
			if err := os.WriteFile(lock, []byte("other\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		},
		"one that all may enter": func(t *testing.T, dir string) string {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			return dir
		},
		"another prefix": func(t *testing.T, dir string) string {
			other := filepath.Join(filepath.Dir(dir), "gomem-y-1")
			return rename(t, dir, other, other)
		},
		"another user's": func(t *testing.T, dir string) string {
			if os.Getuid() != 0 {
				t.Skip("as root")
			}
			if err := os.Chown(dir, 12345, 12345); err != nil {
				t.Fatal(err)
			}
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			dir, kill := holder(t, parent)
			kill()
			dir = change(t, dir)
			makes(t, parent)
			if !is(filepath.Join(dir, "data")) {
				t.Error("it is gone")
			}
		})
	}
}

func rename(t *testing.T, from, to, then string) string {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	return then
}

// TestNowhere: where nothing can be made, that is an error.
func TestNowhere(t *testing.T) {
	t.Parallel()
	if d, err := scratch.Make(filepath.Join(t.TempDir(), "none"), "x"); err == nil {
		t.Error(d)
	}
}
