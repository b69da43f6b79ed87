package command

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestLogged: at --log-level info each worker logs that it is in a group, with where it is, and in
// the form that is asked for; and nothing without the flag.
func TestLogged(t *testing.T) {
	inDir(t)
	args := []string{"train", "--local", "2", "--sync", "bosen", "--model", "mlr", "--epochs", "1",
		"--job", "mine"}
	o := gather(t, inMemory{}, append(args, "--log-level", "info", "--log-format", "json")...)
	if o.status != exitOK {
		t.Fatal(o.stderr)
	}
	of := map[float64]int{}
	for line := range strings.Lines(o.stderr) {
		var e struct {
			Msg, Level, Job    string
			Rank, Epoch, Clock float64
		}
		line = strings.TrimPrefix(line, "[worker] ")
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if e.Msg == "group" && e.Level == "INFO" && e.Job == "mine" && e.Epoch == 1 {
			of[e.Rank]++
		}
	}
	if of[0] != 1 || of[1] != 1 {
		t.Errorf("groups by rank: %v in %s", of, o.stderr)
	}
	if o := gather(t, inMemory{}, args...); o.stderr != "" {
		t.Errorf("without the flag: %q", o.stderr)
	}
	if o := gather(t, inMemory{}, append(args, "--log-format", "xml")...); o.status != exitUsage {
		t.Errorf("--log-format xml: status %d", o.status)
	}
}
