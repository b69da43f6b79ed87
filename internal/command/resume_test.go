package command

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/train"
)

// TestResumeSavesThere: a run that is resumed saves where it was, unless it is
// told otherwise, and the summary names the file that holds its weights.
func TestResumeSavesThere(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	succeed(t, with(tiny, "--steps", "2", "--save", "run")...)
	for i, c := range []struct{ resume, save, want string }{
		{"run", "", "run/step-00000003.safetensors"},
		{"run/step-00000003.safetensors", "", "run/step-00000004.safetensors"},
		{"run", "other", "other/step-00000005.safetensors"},
	} {
		args := with(tiny, "--steps", string(rune('3'+i)), "--resume", c.resume, "--json")
		if c.save != "" {
			args = append(args, "--save", c.save)
		}
		_, summary := trainLines(t, succeed(t, args...))
		if summary["checkpoint"] != c.want {
			t.Errorf("resuming %s: checkpoint %v, want %s", c.resume, summary["checkpoint"], c.want)
		}
		if got, err := train.Inspect(c.want); err != nil || got.Step != i+3 {
			t.Errorf("%s: %+v, %v", c.want, got, err)
		}
	}
	succeed(t, with(tiny, "--steps", "6", "--resume", "run", "--save-every", "1")...)
	o := invoke(t, with(tiny, "--resume", "run", "--device", "null")...)
	if o.status != exitUsage ||
		!strings.Contains(o.stderr, "--device null computes nothing") {
		t.Errorf("%+v", o)
	}
}

// TestEmptyPaths: the variable of a shell that is not set is no path.
func TestEmptyPaths(t *testing.T) {
	dir := inDir(t)
	for _, c := range []struct {
		flag string
		args []string
	}{
		{"--save", tiny}, {"--resume", tiny}, {"--trace", tiny}, {"--data", tiny},
		{"--samples", []string{"train", "--model", "wgan", "--size", "s512"}},
		{"--dump", []string{"plan"}}, {"--graph", []string{"plan"}},
		{"--dump-pass", []string{"plan"}},
		{"--plots", []string{"bench", "thesis"}}, {"--pprof-dir", []string{"version"}},
	} {
		for _, args := range [][]string{with(c.args, c.flag, ""), with(c.args, c.flag+"=")} {
			o := invoke(t, args...)
			if o.status != exitUsage || !strings.Contains(o.stderr, c.flag+": it is empty") ||
				strings.Count(o.stderr, "\n") != 1 || o.stdout != "" {
				t.Errorf("%q: %+v", args, o)
			}
		}
	}
	if left := files(t, dir); left != "pairs.tsv" {
		t.Errorf("left behind: %s", left)
	}
}

// TestOtherData: data that is not what a run learned from is named by its path,
// both what it was and what it is.
func TestOtherData(t *testing.T) {
	inDir(t)
	succeed(t, with(tiny, "--steps", "1", "--save", "run")...)
	pairs, err := os.ReadFile("pairs.tsv")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "others.tsv", string(pairs)+"one\tmore\n")
	o := invoke(t, with(tiny, "--data", "tsv:others.tsv", "--resume", "run")...)
	for _, want := range []string{`was made with data "tsv:pairs.tsv: `,
		`this run has "tsv:others.tsv: `, "600 pairs", "601 pairs"} {
		if o.status != exitFailure || !strings.Contains(o.stderr, want) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%+v does not say %q", o, want)
		}
	}
}

// TestOtherMachine: a checkpoint that was made elsewhere is resumed with a
// warning, for people and for programs.
func TestOtherMachine(t *testing.T) {
	inDir(t)
	succeed(t, with(tiny, "--steps", "1", "--save", "run")...)
	path := filepath.Join("run", "step-00000001.safetensors")
	in, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	metadata := maps.Clone(in.Metadata())
	metadata["gomem.machine"] = "abacus"
	out, err := os.Create("new")
	if err != nil {
		t.Fatal(err)
	}
	err = safetensors.WriteSealed(out, in.Entries(), metadata,
		safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
			v, err := in.Get(e.Name)
			return v.Data, err
		}))
	if err := errors.Join(err, out.Close(), os.Rename("new", path)); err != nil {
		t.Fatal(err)
	}
	want := `run/step-00000001.safetensors was made on "abacus", this is "cpu `
	var stdout, stderr bytes.Buffer
	status := Main(t.Context(), with(tiny, "--steps", "2", "--resume", "run", "--save", "new1",
		"--json"), &stdout, &stderr, Extras{})
	if status != exitOK ||
		!strings.HasPrefix(stderr.String(), "gomem: warning: checkpoint "+want) ||
		strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("status %d, standard error %q", status, stderr.String())
	}
	lines, _ := trainLines(t, stdout.String())
	if lines[0].Type != "start" || lines[1].Type != "resume" || lines[2].Type != "warning" ||
		!strings.Contains(lines[2].Text, want) {
		t.Errorf("%+v", lines[:3])
	}
	o := invoke(t, with(tiny, "--steps", "2", "--resume", "run", "--save", "new2")...)
	if o.status != exitOK || !strings.Contains(o.stderr, want) || strings.Contains(o.stdout, want) {
		t.Errorf("%+v", o)
	}
}

// TestPathsComeFirst: what a run cannot write, or cannot resume, is found before
// it plans and before it reads any data.
func TestPathsComeFirst(t *testing.T) {
	inDir(t)
	if err := errors.Join(os.Symlink("nowhere", "link"),
		os.MkdirAll(filepath.Join("blocked", "latest"), 0o700)); err != nil {
		t.Fatal(err)
	}
	base := []string{"train", "--size", "s512", "--data", "tsv:missing.tsv"}
	for _, c := range []struct{ want, flag, value string }{
		{"checkpoint link: cannot save there: link is a link to a place", "--save", "link"},
		{"latest in it is not a regular file", "--save", "blocked"},
		{"checkpoint pairs.tsv: safetensors", "--resume", "pairs.tsv"},
		{"none/trace.json", "--trace", "none/trace.json"},
	} {
		o := invoke(t, with(base, c.flag, c.value)...)
		if o.status != exitFailure || !strings.Contains(o.stderr, c.want) ||
			strings.Count(o.stderr, "\n") != 1 || o.stdout != "" {
			t.Errorf("%s %s: %+v", c.flag, c.value, o)
		}
	}
	o := invoke(t, "train", "--model", "wgan", "--data", "dir:missing", "--samples", "link")
	if o.status != exitFailure || !strings.Contains(o.stderr, "link: cannot save there") {
		t.Errorf("%+v", o)
	}
}
