package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLDAWithinMemory: documents on a disk come to what documents in memory come to, of which
// nothing is left there; what they take is shown, and a budget that is too small is refused with
// one that will do.
func TestLDAWithinMemory(t *testing.T) {
	dir, run := t.TempDir(), filepath.Join(t.TempDir(), "run")
	file := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(file, []byte(strings.Repeat(pets, 400)), 0o666); err != nil {
		t.Fatal(err)
	}
	command := []string{"train", "--model", "lda", "--topics", "2", "--data", "text:" + file,
		"--eval-data", "text:" + file, "--block-tokens", "500", "--json"}
	whole := invoke(t, append(command, "--epochs", "4")...)
	if whole.status != exitOK {
		t.Fatalf("%+v", whole)
	}
	disk := append(command, "--disk", dir)
	half := invoke(t, append(disk, "--epochs", "2", "--save", run)...)
	rest := invoke(t, "train", "--resume", run, "--epochs", "4", "--host-memory", "64MiB", "--json")
	if got := append(epochLines(half.stdout)[:2], epochLines(rest.stdout)...); !slices.Equal(got,
		epochLines(whole.stdout)) {
		t.Errorf("on the disk %+v, then %+v; in memory %v", half, rest, epochLines(whole.stdout))
	}
	var plan struct {
		Type  string `json:"type"`
		Total int64  `json:"total_bytes"`
		Disk  int64  `json:"disk_bytes"`
		Dir   string `json:"disk"`
	}
	first, _, _ := strings.Cut(half.stdout, "\n")
	if err := json.Unmarshal([]byte(first), &plan); err != nil || plan.Type != "memory" ||
		plan.Total < 1<<24 || plan.Disk != 6*400*20 || plan.Dir != dir {
		t.Errorf("plan %q: %+v, %v", first, plan, err)
	}
	o := invoke(t, "train", "--model", "lda", "--disk", dir, "--host-memory", "1GiB", "--epochs",
		"1")
	if o.status != exitOK || !strings.Contains(o.stdout, "of 1GiB at most") {
		t.Errorf("%+v", o)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}

func TestLDARefusesBudgets(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	for want, args := range map[string][]string{
		"--host-memory 1MiB is too little for 20 topics of 1,000 words: want 35MiB": {
			"--host-memory", "1MiB"},
		"or --block-tokens ": {"--topics", "400", "--host-memory", "41MiB"},
		"without --save":     {"--host-memory", "1MiB", "--save", run},
		"--disk nowhere":     {"--disk", "nowhere"},
	} {
		args = append([]string{"train", "--model", "lda", "--epochs", "1"}, args...)
		if o := invoke(t, args...); o.status == exitOK || !strings.Contains(o.stderr, want) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%v: %+v, want %q", args, o, want)
		}
	}
	if o := invoke(t, "train", "--model", "mf", "--disk", "."); o.status != exitUsage ||
		!strings.Contains(o.stderr, "--disk does nothing for --model mf") {
		t.Errorf("%+v", o)
	}
}
