package command

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWatchedRun: a run with patience that keeps its best and writes its numbers, and goes on
// from its best; both pointers are as good as the file's name everywhere.
func TestWatchedRun(t *testing.T) {
	inDir(t)
	args := append(tiny, "--eval-every", "1", "--bleu", "0", "--save", "run",
		"--metrics", "numbers")
	out := succeed(t, append(args, "--steps", "3", "--keep-best", "--patience", "2")...)
	for _, want := range []string{"  rate 0.0", "\nbest            after step "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	rows := func() (rows [][]string) {
		t.Helper()
		f, err := os.Open(filepath.Join("numbers", "metrics.csv"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if rows, err = csv.NewReader(f).ReadAll(); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if n := len(rows()); n != 4 {
		t.Errorf("%d rows", n)
	}
	for _, from := range []string{"run/best", "run/latest"} {
		if out := succeed(t, "eval", "--from", from, "--eval-batches", "1", "--bleu",
			"0"); !strings.Contains(out, "after step") {
			t.Errorf("%s: %s", from, out)
		}
	}
	out = succeed(t, append(args, "--steps", "5", "--keep-best", "--resume", "run/best")...)
	if !strings.Contains(out, "resumed after step") || len(rows()) != 6 {
		t.Errorf("%d rows after\n%s", len(rows()), out)
	}
}

// TestNothingIsKept: a run that saves nothing says so at its end, and one that does does not.
func TestNothingIsKept(t *testing.T) {
	inDir(t)
	const words = "the weights are not kept"
	args := append(tiny, "--bleu", "0", "--steps", "1")
	if out := succeed(t, args...); !strings.Contains(out, words) {
		t.Errorf("it says\n%s", out)
	}
	if out := succeed(t, append(args, "--save", "run")...); strings.Contains(out, words) {
		t.Errorf("it says\n%s", out)
	}
}

// TestWatchFlags that no run can have.
func TestWatchFlags(t *testing.T) {
	inDir(t)
	write(t, "file", "")
	for args, want := range map[string]string{
		"--keep-best":                        "--keep-best needs --save DIR",
		"--patience 0":                       "--patience",
		"--metrics a --metrics b":            "one directory",
		"--metrics :90 --metrics 0.0.0.0:91": "one address",
		"--metrics :9464":                    "--metrics needs gomem-cluster",
		"--metrics file":                     "metrics: file: not a directory",
		"--model mlr --patience 3":           "--patience does nothing",
		"--model mlr --metrics d":            "--metrics does nothing",
	} {
		o := invoke(t, with(tiny, strings.Fields(args)...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, want) {
			t.Errorf("%s: %q, want %q", args, o.stderr, want)
		}
	}
}
