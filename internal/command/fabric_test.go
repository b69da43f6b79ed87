package command

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestSimulate: the tables are there, the same each time but for what is measured here, and links
// from a file change them; a figure is drawn.
func TestSimulate(t *testing.T) {
	inDir(t)
	write(t, "links.csv", "# second, machine, Gbit/s out and in\n0,0,1,1\n0.5,1,0.5,2\n")
	run := []string{"fabric", "simulate", "--setting", "C1N1", "--workers", "6", "--aggregators",
		"2", "--updates", "30", "--json"}
	tables := func(more ...string) (rows []string) {
		for line := range strings.Lines(succeed(t, with(run, more...)...)) {
			var x struct {
				ID   string
				Rows [][]string
			}
			if err := json.Unmarshal([]byte(line), &x); err != nil || len(x.Rows) == 0 {
				t.Fatalf("%s: %v", line, err)
			}
			if x.ID != "7.4" { // of this machine
				rows = append(rows, line)
			}
		}
		return rows
	}
	first := tables("--figure", "f.svg")
	if len(first) != 5 || strings.Join(first, "") != strings.Join(tables(), "") {
		t.Errorf("%d tables, which differ: %v", len(first), first)
	}
	if text, err := os.ReadFile("f.svg"); err != nil || !strings.Contains(string(text), "<svg") {
		t.Errorf("no figure: %v", err)
	}
	if strings.Join(first, "") == strings.Join(tables("--trace", "links.csv"), "") {
		t.Error("slow links change nothing")
	}
}

// TestBadSimulations: what cannot be played is refused, each in a line.
func TestBadSimulations(t *testing.T) {
	inDir(t)
	for name, text := range map[string]string{"none": "", "few": "1,2\n", "far": "1,99,1,1\n",
		"back": "5,0,1,1\n1,0,1,1\n", "nan": "1,0,NaN,1\n", "dead": "0,0,0,0\n",
		"half": "1,0.5,1,1\n", "minus": "-1,0,1,1\n"} {
		write(t, name, text)
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"--trace none", "no lines of seconds, machine"}, {"--trace few", "wrong number of fields"},
		{"--trace far", "there is no machine 99 of 15"}, {"--trace back", "before the line above"},
		{"--trace nan", `"NaN" is no number from 0`}, {"--trace minus", `"-1" is no number`},
		{"--trace dead", "nothing would arrive"}, {"--trace half", "there is no machine 0.5"},
		{"--trace /dev/zero", "not a regular file"}, {"--trace .", "not a regular file"},
		{"--setting C9N1", `there is no setting "C9N1"`}, {"--updates 59", "two of each of 30"},
		{"--setting=", "want C1 to C3"}, {"--figure f.gif", "a .png or a .svg"},
		{"--workers 3 --aggregators 9", "3 workers are on 2 machines"},
	} {
		o := invoke(t, with([]string{"fabric", "simulate"}, strings.Fields(c.args)...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, c.want) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %d, %q, want %q", c.args, o.status, o.stderr, c.want)
		}
	}
}
