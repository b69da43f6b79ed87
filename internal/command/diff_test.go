package command

import (
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/profile"
)

// TestDiff: 0 for the same, 1 for what differs, 2 for what cannot be compared; as
// text and as JSON.
func TestDiff(t *testing.T) {
	inDir(t)
	succeed(t, "plan", "--size", "s512", "--partition", "20", "--dump", "a.plan")
	succeed(t, "plan", "--size", "s512", "--partition", "50", "--dump", "b.plan")
	if o := invoke(t, "diff", "a.plan", "a.plan"); o != (outcome{}) {
		t.Errorf("a plan and itself: %+v", o)
	}
	o := invoke(t, "diff", "a.plan", "b.plan")
	if o.status != exitFailure || o.stderr != "" {
		t.Errorf("plans that differ: %+v", o)
	}
	for _, want := range []string{"partition=20", "partition=50", "device peak", "copied for stage",
		profile.Remains} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
	var d profile.Diff
	o = invoke(t, "diff", "--json", "a.plan", "b.plan")
	decode(t, o.stdout, &d)
	if o.status != exitFailure || d.Type != "diff" || d.Same || !d.SameGraph ||
		d.A.Partitions <= d.B.Partitions {
		t.Errorf("%+v", o)
	}
	for _, c := range []struct{ args, says string }{
		{"a.plan", "<b>"},
		{"a.plan none.plan", "none.plan: no such file"},
		{"pairs.tsv a.plan", "pairs.tsv: plan line 1"},
		{"a.plan b.plan c.plan", "c.plan"},
		{". a.plan", ".: "},
	} {
		o := invoke(t, append([]string{"diff"}, strings.Fields(c.args)...)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, c.says) || o.stdout != "" ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", c.args, o)
		}
	}
}
