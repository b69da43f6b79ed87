package command

import (
	"strings"
	"testing"
)

// TestTopology: sums come back along trees by a file of where workers are, which names all of them
// and is of a scheme with trees.
func TestTopology(t *testing.T) {
	inDir(t)
	args := []string{"train", "--local", "3", "--model", "mlr", "--epochs", "2", "--topology"}
	write(t, "racks", "\ufeff0-1 hall1/rack1\n2 hall1/rack2\n")
	if o := gather(t, inMemory{}, append(args, "racks", "--sync", "pf")...); o.status != exitOK {
		t.Errorf("status %d: %s", o.status, o.stderr)
	}
	write(t, "two", "0-1 hall1/rack1\n")
	write(t, "bad", "0-1\n")
	for want, more := range map[string][]string{
		"not in it: each needs a line such as '2 rack1'": {"two", "--sync", "pf"},
		"--topology bad: line 1":                         {"bad", "--sync", "pf"},
		"--topology none":                                {"none", "--sync", "pf"},
		"bosen has no use for option topology":           {"racks", "--sync", "bosen"},
		"ring has no use for option topology":            {"racks", "--model", "resnet"},
	} {
		o := gather(t, inMemory{}, append(args, more...)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: status %d, %q, want %q", more, o.status, o.stderr, want)
		}
	}
}
