package command

import (
	"strings"
	"testing"

	"github.com/gomem/gomem/planner"
)

// TestPoliciesAreDescribed: a policy cuts partitions, or there are words for what
// it does instead.
func TestPoliciesAreDescribed(t *testing.T) {
	for _, p := range planner.Policies() {
		if _, ok := uncut[p]; ok == p.Partitioned() {
			t.Errorf("%s: partitioned %t, described %t", p, p.Partitioned(), ok)
		}
	}
}

// TestPolicyByDefault: a policy that is named is taken; a flag that says how to cut
// partitions is for the thesis'.
func TestPolicyByDefault(t *testing.T) {
	for _, c := range []struct {
		flags string
		want  planner.Policy
	}{
		{"", byDefault},
		{"--no-swap --no-placement --streams 2 --device-memory 20MiB", byDefault},
		{"--partition 50", planner.Thesis},
		{"--strategy depth", planner.Thesis},
		{"--lookahead 3", planner.Thesis},
		{"--policy auto", planner.Auto},
		{"--policy auto --partition 50", planner.Auto},
		{"--policy thesis", planner.Thesis},
		{"--policy vanilla", planner.Vanilla},
		{"--policy grappler", planner.Grappler},
	} {
		var x explanation
		decode(t, patiently(t, with([]string{"plan", "--size", "s512", "--model", "deepspeech",
			"--json"}, strings.Fields(c.flags)...)...), &x)
		if x.Policy != c.want {
			t.Errorf("%s: policy %s, want %s", c.flags, x.Policy, c.want)
		}
	}
	help := strings.Join(strings.Fields(succeed(t, "plan", "--help")), " ")
	if want := "(default: " + string(byDefault) + "; thesis where"; !strings.Contains(help, want) {
		t.Errorf("no %q in the help", want)
	}
}
