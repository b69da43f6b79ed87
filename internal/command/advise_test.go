package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/longtest"
)

// refusedFlags is a model in budgets that it does not fit.
var refusedFlags = []string{"plan", "--model", "resnet", "--size", "s512",
	"--device", "sim:titanx", "--policy", "thesis", "--device-memory", "850KiB"}

// TestAdviseRanksWhatWorks: every remedy that is named fits when its flags are given, needs what
// is said, and those that keep the results and the budgets come first; what does not fit is not
// among them.
func TestAdviseRanksWhatWorks(t *testing.T) {
	longtest.Skip(t)
	var x advised
	decode(t, patiently(t, with(refusedFlags, "--advise", "--json")...), &x)
	if x.Type != "advice" || x.Fits || x.Refusal == "" || len(x.Remedies) < 3 ||
		len(x.Untried) > 0 {
		t.Fatalf("%+v", x)
	}
	var kinds []string
	for i, r := range x.Remedies {
		kinds = append(kinds, r.Remedy)
		if r.Ratio <= 0 || r.Device <= 0 || r.Host <= 0 || i > 0 &&
			(rankOf(x.Remedies[i-1]) > rankOf(r) || rankOf(x.Remedies[i-1]) == rankOf(r) &&
				x.Remedies[i-1].Ratio > r.Ratio) {
			t.Errorf("%d: %+v after %+v", i, r, x.Remedies[max(i-1, 0)])
		}
		var p explanation
		decode(t, patiently(t, with(replacing(refusedFlags, strings.Fields(r.Flags)),
			"--json")...), &p)
		if p.DevicePeak != r.Device || p.HostPeak != r.Host {
			t.Errorf("%s: device %d and host %d, the advice has %+v", r.Flags, p.DevicePeak,
				p.HostPeak, r)
		}
	}
	for _, want := range []string{"more device memory", "slices", "a smaller batch"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("nothing of %s in %v", want, kinds)
		}
	}
	for _, flags := range x.Failed {
		o := invoke(t, replacing(refusedFlags, strings.Fields(flags))...)
		if o.status != exitFailure || !strings.Contains(o.stderr, "the budget is") {
			t.Errorf("%s is said not to fit: %+v", flags, o)
		}
	}
}

// replacing are flags with others, which replace those of their names.
func replacing(flags, by []string) []string {
	out := slices.Clone(flags)
	for i := 0; i+1 < len(by); i += 2 {
		if at := slices.Index(out, by[i]); at >= 0 {
			out[at+1] = by[i+1]
			continue
		}
		out = append(out, by[i], by[i+1])
	}
	return out
}

// TestAdviseInWords: a table of at most 80 columns with every remedy once; where it fits, that is
// what is said; and where nothing does, the status is that of a failure.
func TestAdviseInWords(t *testing.T) {
	var x advised
	for i := range 12 {
		x.Remedies = append(x.Remedies, remedy{Flags: fmt.Sprintf("--host-memory %dKiB "+
			"--device-memory %dKiB", 100000+i, 1000000+i), Device: 900 << 20, Host: 1 << 40,
			Ratio: 12.34, Changes: i > 6})
	}
	x.Refusal = "train needs more"
	x.Failed, x.Untried = []string{"--lookahead 1"}, []string{"--a 1"}
	var b strings.Builder
	x.print(&b)
	for line := range strings.Lines(b.String()) {
		if len([]rune(line)) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	for _, r := range x.Remedies {
		for i := range 2 {
			flag := strings.Join(strings.Fields(r.Flags)[2*i:2*i+2], " ")
			if strings.Count(b.String(), flag) != 1 {
				t.Errorf("%s is not there once:\n%s", flag, b.String())
			}
		}
	}
	fits := succeed(t, with(replacing(refusedFlags, []string{"--device-memory", "2MiB"}),
		"--advise")...)
	if !strings.HasPrefix(fits, "It fits, and nothing needs to change: device ") {
		t.Errorf("where it fits: %s", fits)
	}
	for flag, args := range map[string][]string{"sharding": {"--sharding", "--mesh", "batch:2"},
		"dump": {"--dump", "x"}, "graph": {"--graph", "x.dot"}} {
		o := invoke(t, with(refusedFlags, append(args, "--advise")...)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, "--"+flag) {
			t.Errorf("--%s: %+v", flag, o)
		}
	}
}

// TestAdviseOfPrecision: what is in one precision may be tried in the other, since bfloat16 needs
// more than f32 under some policies.
func TestAdviseOfPrecision(t *testing.T) {
	for given, want := range map[precision.Precision]string{
		precision.BF16: "--precision f32", precision.F32: "--precision bf16",
	} {
		a := &advisor{cmd: &planCmd{}, options: gomem.Options{Precision: given}}
		list, err := a.halved()
		if err != nil || len(list) != 1 || list[0].Flags != want || !list[0].Changes {
			t.Errorf("of %s: %+v, %v", given, list, err)
		}
	}
}
