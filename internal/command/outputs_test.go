package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestOutputsApart: two outputs to one file are refused before anything is planned, however
// their paths are spelt, and nothing is written.
func TestOutputsApart(t *testing.T) {
	dir := inDir(t)
	if err := os.Symlink(dir, "link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("sub", 0o777); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	same := []string{"x.txt", "./x.txt", "sub/../x.txt", "link/x.txt", "link/sub/../x.txt",
		filepath.Join(dir, "x.txt"), ".//x.txt"}
	for _, path := range same {
		for _, args := range [][]string{
			{"plan", "--size", "s512", "--dump", "x.txt", "--dump-pass", path},
			{"plan", "--size", "s512", "--dump-pass", path, "--graph", "x.txt"},
			{"profile", "--size", "s512", "--png", path, "--html", "x.txt"},
			{"profile", "--size", "s512", "--svg", "x.txt", "--trace", path},
		} {
			o := invoke(t, args...)
			if o.status != exitUsage || !strings.Contains(o.stderr, "are one file") ||
				o.stdout != "" || files(t, dir) != before {
				t.Errorf("%v: %+v, %s", args, o, files(t, dir))
			}
		}
	}
	o := invoke(t, append(tiny, "--steps", "1", "--profile", "sub", "--trace",
		"link/sub/trace.json")...)
	if o.status != exitUsage || !strings.Contains(o.stderr, "are one file") {
		t.Errorf("the trace of a profile: %+v", o)
	}
	succeed(t, "plan", "--size", "s512", "--dump", os.DevNull, "--dump-pass", os.DevNull)
}

// TestPlaceOf: paths have one place if and only if what is written to the one is read from the
// other.
func TestPlaceOf(t *testing.T) {
	here := filepath.Join(t.TempDir(), "1/2/3/4/5") // as far as paths lead upwards
	if err := os.MkdirAll(here, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	if err := os.MkdirAll("a/b/c", 0o777); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"l": "a/b", "a/up": "..", "a/b/m": "../../a/b/c"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		path := func(name string) string {
			steps := rapid.SliceOfN(rapid.SampledFrom([]string{".", "..", "a", "b", "c", "l", "m",
				"up"}), 0, 5).Draw(t, name)
			return strings.Join(append(steps, rapid.SampledFrom([]string{"x", "y"}).Draw(t,
				"file of "+name)), "/")
		}
		one, other := path("one"), path("other")
		if os.WriteFile(one, nil, 0o666) != nil {
			return // there is no such directory
		}
		defer os.Remove(one)
		if _, err := os.Stat(other[:len(other)-1] + "."); err != nil {
			return
		}
		_, err := os.Stat(other)
		if same := placeOf(one) == placeOf(other); same != (err == nil) {
			t.Errorf("%s and %s: one place: %v; file: %v", one, other, same, err)
		}
	})
}

// TestOutputsFirst: a file that cannot be written is refused before anything is planned: the
// budget would be, too.
func TestOutputsFirst(t *testing.T) {
	inDir(t)
	for _, flag := range []string{"--dump", "--dump-pass", "--graph"} {
		o := invoke(t, "plan", "--size", "s512", "--device-memory", "1KiB", flag, "none/x.txt")
		if o.status != exitFailure || !strings.Contains(o.stderr, "none/x.txt: no such file") {
			t.Errorf("%s: %+v", flag, o)
		}
	}
}
