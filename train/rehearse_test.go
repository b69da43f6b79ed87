//go:build unix

package train

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
)

// TestBlockedDirectories: whatever is in the way of saving is found before
// anything is computed, said on one line, and left as it was.
func TestBlockedDirectories(t *testing.T) {
	dir := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	for _, d := range []string{at("newest", latestName), at("target", fileName(20)),
		at("temporary", regular.Temporary(fileName(20)), "full")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(at("nowhere"), at("link")), os.Mkdir(at("pipes"), 0o700),
		os.Mkdir(at("dangling"), 0o700), syscall.Mkfifo(at("pipes", latestName), 0o600),
		os.Symlink(at("nowhere"), at("dangling", fileName(3))),
		os.WriteFile(at("file"), nil, 0o600), syscall.Mkfifo(at("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	o := toyOptions(t, toy(toyVocab, unigram{}))
	for path, want := range map[string]string{
		at("link"):               "link is a link to a place that does not exist",
		at("link", "below"):      "link is a link to a place that does not exist",
		at("newest"):             "latest in it is not a regular file",
		at("pipes"):              "latest in it is not a regular file",
		at("target"):             fileName(20) + " in it is not a regular file",
		at("dangling"):           fileName(3) + " in it is not a regular file",
		at("temporary"):          regular.Temporary(fileName(20)) + " in it is not a regular file",
		at("file"):               "save there: not a directory",
		at("file", "below"):      "not a directory",
		at("pipe"):               "save there: not a directory",
		"/proc/self/new":         "cannot save there",
		at("long", long(300)):    "file name too long",
		at(long(20), "a\x00b"):   "invalid argument",
		at("new", long(300), ""): "file name too long",
	} {
		o.Save = path
		events := watch(&o)
		_, err := Run(context.Background(), o)
		e, ok := errors.AsType[*ErrCheckpoint](err)
		if !ok || e.Path != path || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") || len(*events) > 0 {
			t.Errorf("%s: %v (%T) does not say %q; events %v", path, err, err, want, *events)
		}
	}
	for _, path := range []string{at("new"), at("new", "deep", "er"), at("new") + "/", dir} {
		if err := CheckSave(path, ""); err != nil {
			t.Error(err)
		}
	}
	if after := tree(t, dir); !slices.Equal(after, before) {
		t.Errorf("trying left %v, there was %v", after, before)
	}
}

func long(n int) string { return strings.Repeat("n", n) }

// tree lists all below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		out = append(out, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFailingRehearsal: whichever operation fails is an error, and what was made
// is removed unless it is removing that fails.
func TestFailingRehearsal(t *testing.T) {
	for n := 0; ; n++ {
		dir := t.TempDir()
		d := &faultyDisk{disk: osDisk{}, at: n, fails: syscall.EROFS}
		err := rehearse(d, filepath.Join(dir, "a", "b"))
		if err == nil {
			if n < 10 || len(names(t, dir)) > 0 {
				t.Errorf("%d operations, which leave %v", n, names(t, dir))
			}
			return
		}
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("operation %d: %v", n, err)
		}
		if left := tree(t, dir); len(left) > 1 && !d.removal {
			t.Errorf("operation %d leaves %v", n, left)
		}
	}
}

// TestPipesAreRefused: what is no regular file is not opened, which would wait
// for ever; as a checkpoint, as the latest one, or as the file that names it.
func TestPipesAreRefused(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	pipe := filepath.Join(t.TempDir(), "pipe")
	o.Save = t.TempDir()
	mustRun(t, o)
	latest := filepath.Join(o.Save, latestName)
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Remove(latest),
		syscall.Mkfifo(latest, 0o600),
		syscall.Mkfifo(filepath.Join(o.Save, fileName(99)), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(pipe); err == nil ||
		!strings.Contains(err.Error(), pipe+": safetensors: a pipe, not a regular file") {
		t.Errorf("%v", err)
	}
	if c, err := Inspect(o.Save); err != nil || c.Step != 20 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestPipeInTheWay: under a temporary name there is nothing worth waiting for.
func TestPipeInTheWay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"step-000007.png", fileName(5)} {
		if err := syscall.Mkfifo(filepath.Join(dir, regular.Temporary(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	scorer, err := SampleWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	grid := tensor.New(tensor.Of(tensor.F32, 1, 3, 8, 8))
	if err := scorer(7, false).Score(data.Batch{}, []tensor.View{grid}, nil); err != nil {
		t.Error(err)
	}
	st := store{dir: dir, keep: 2, disk: osDisk{}}
	if _, err := st.save(at(5), source{session: session(t, toy(toyVocab, unigram{}))}); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{latestName, fileName(5),
		"step-000007.png"}) {
		t.Errorf("the directory has %v", got)
	}
}
