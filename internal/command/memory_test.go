package command

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestMemoryIsLogged: at --log-level debug a run says who has memory once its plans are made, once
// what they left is returned, and at its end; at info it does not.
func TestMemoryIsLogged(t *testing.T) {
	args := []string{"train", "--size", "s512", "--policy", "vanilla", "--steps", "1",
		"--eval-batches", "1"}
	o := invoke(t, append([]string{"--log-level", "debug"}, args...)...)
	last := 0
	for _, when := range []string{"planned", "returned", "trained"} {
		at := strings.Index(o.stderr[last:], "msg=memory when="+when+" ")
		if at < 0 {
			t.Fatalf("no entry of memory when %s, or in another order:\n%s", when, o.stderr)
		}
		last += at
	}
	if !strings.Contains(o.stderr[last:], " objects_bytes=") {
		t.Errorf("no account of objects:\n%s", o.stderr[last:])
	}
	if o := invoke(t, append([]string{"--log-level", "info"}, args...)...); strings.Contains(
		o.stderr, "msg=memory") {
		t.Errorf("logged at info:\n%s", o.stderr)
	}
}

// above is a budget of so much host memory for a plan, with what its process takes besides.
func above(t *testing.T, bytes int64, args ...string) string {
	t.Helper()
	var x report
	decode(t, succeed(t, with([]string{"plan", "--policy", "vanilla", "--json"}, args...)...), &x)
	return fmt.Sprint(bytes + x.Beside.total())
}

// namedBudget is the budget of host memory that a refusal says would do.
func namedBudget(t *testing.T, refusal string) string {
	t.Helper()
	found := regexp.MustCompile(`--host-memory \S+ \(([\d,]+) bytes\) would do`).FindStringSubmatch(
		refusal)
	if found == nil {
		t.Fatalf("no budget is named: %s", refusal)
	}
	return strings.ReplaceAll(found[1], ",", "")
}

// TestMoreThanExpected: where the process has more beside the plan than was expected, a run is
// refused before its first step, and the budget that is named then is enough.
func TestMoreThanExpected(t *testing.T) {
	inDir(t)
	ballast := make([]byte, 96<<20)
	for i := range ballast {
		ballast[i] = 1
	}
	budget := above(t, 4<<20, "--model", "transformer", "--size", "s512")
	args := with(tiny, "--policy", "thesis", "--steps", "1", "--json")
	refused := invoke(t, with(args, "--host-memory", budget)...)
	if refused.status != exitFailure || refused.stdout != "" {
		t.Fatalf("%+v", refused)
	}
	out := succeed(t, with(args, "--host-memory", namedBudget(t, refused.stderr))...)
	var x report
	decode(t, strings.SplitAfter(out, "\n")[0], &x)
	if x.Beside.Held < int64(len(ballast)) {
		t.Errorf("held are %s", size(x.Beside.Held))
	}
	runtime.KeepAlive(ballast)
}

// TestPlansForWhatIsLeft: where data turn out to be larger than was expected, a run plans again for
// what they leave of its budget, with more on the disk, and comes to the same weights.
func TestPlansForWhatIsLeft(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	large := []string{"--model", "moe", "--size", "s512", "--expert-hidden", "8192", "--policy",
		"thesis", "--device-memory", "24MiB", "--disk-memory", "1GiB"}
	var roomy report
	decode(t, succeed(t, with([]string{"plan", "--host-memory", "1GiB", "--json"}, large...)...),
		&roomy)
	expected := roomy.Beside.total()
	if roomy.DiskPeak > 0 || roomy.HostPeak < 64<<20 {
		t.Fatalf("%+v", roomy)
	}
	run := func(ballast int) (x report, summary map[string]any) {
		b := bytes.Repeat([]byte{1}, ballast)
		out := succeed(t, with([]string{"train", "--disk", ".", "--steps", "1", "--eval-batches",
			"1", "--json", "--host-memory", fmt.Sprint(expected + roomy.HostPeak)}, large...)...)
		runtime.KeepAlive(b)
		decode(t, strings.SplitAfter(out, "\n")[0], &x)
		_, summary = trainLines(t, out)
		return x, summary
	}
	first, want := run(0)
	if first.HostPeak != roomy.HostPeak || first.DiskPeak > 0 {
		t.Errorf("as expected: %+v", first)
	}
	for _, ballast := range []int{36 << 20, 60 << 20} {
		again, got := run(ballast)
		if again.HostPeak >= first.HostPeak || again.DiskPeak == 0 ||
			again.HostPeak+again.Beside.total() > again.HostBudget {
			t.Errorf("more than expected: %+v, %v", again, again.Beside)
		}
		if got["weights_sha256"] != want["weights_sha256"] ||
			got["actual_host_peak_bytes"].(float64) > float64(again.HostPeak) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestGarbageFits: a process lets as much garbage lie as it holds, where its budget has room for
// that, else as much as there is room for, and is refused where that is next to nothing.
func TestGarbageFits(t *testing.T) {
	const mib = 1 << 20
	a := account{Held: 40 * mib, Passing: 4 * mib, Program: 36 * mib}
	a.Garbage = garbage(a.Held)
	for budget, want := range map[int64]int64{500: 40, 120: 40, 110: 30, 90: 10, 84: 4, 83: 0} {
		b, ok := a.fitted(budget * mib)
		if ok != (want > 0) || ok && (b.Garbage != want*mib || b.total() > budget*mib) {
			t.Errorf("within %dMiB: %+v, %v, want %dMiB", budget, b, ok, want)
		}
	}
}
