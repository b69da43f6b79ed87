package command

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
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

// limits are those of Go's memory, the least and the most, at the times of writing.
type limits struct{ least, most int64 }

func (l *limits) Write(p []byte) (int, error) {
	now := debug.SetMemoryLimit(-1)
	l.least, l.most = min(l.least, now), max(l.most, now)
	return len(p), nil
}

// TestBudgetIsKept: whoever runs within a budget of the whole process keeps Go's memory within it
// until the last word is said, and no longer. Several devices have no such limit.
func TestBudgetIsKept(t *testing.T) {
	inDir(t)
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "1", "--save", "run")
	write(t, "a.txt", "the number")
	free := &limits{math.MaxInt64, 0}
	fmt.Fprint(free, "as it is")
	const budget = 400 << 20
	train := with(tiny, "--steps", "1", "--eval-batches", "1", "--json")
	for _, args := range [][]string{
		train,
		{"predict", "--from", "run", "--tokens", "1", "a.txt"},
		{"eval", "--from", "run"},
		{"profile", "--size", "s512", "--policy", "vanilla", "--steps-to-run", "1"},
		with(train, "--device", "cpu,cpu"),
	} {
		var errs bytes.Buffer
		kept := limits{math.MaxInt64, 0}
		status := Main(t.Context(), with(args, "--host-memory", fmt.Sprint(budget)), &kept, &errs,
			Extras{})
		several := args[len(args)-1] == "cpu,cpu"
		if status != exitOK || several != (kept.most > budget) ||
			several != (kept.least > budget) {
			t.Errorf("%v: status %d, %+v, %s", args, status, kept, errs.String())
		}
		if now := debug.SetMemoryLimit(-1); now != free.most {
			t.Errorf("%v left a limit of %d, which was %d", args, now, free.most)
		}
	}
	c := &trainCmd{fleet: newFleet([]string{"cpu", "cpu"})}
	defer c.planningWithin(gomem.Options{HostBytes: budget, ProcessBytes: 1})()
	if now := debug.SetMemoryLimit(-1); now != free.most {
		t.Errorf("one of two devices plans within %d", now)
	}
}

// TestNamesRoom: the budget that is named to who has too little memory is of the whole process, as
// the flag is: what the machine has but for the device's part, which on a GPU is not of it.
func TestNamesRoom(t *testing.T) {
	b, err := modelFlags{Model: "transformer", Size: "s512"}.build(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planAll(t.Context(), io.Discard, b, gomem.Options{Policy: planner.Vanilla})
	if err != nil {
		t.Fatal(err)
	}
	const have = 64 << 20
	device := p.Peak(space.Device)
	for name, room := range map[string]int64{"cpu": have - device, "cuda": have} {
		err := enoughOf(have, name, p, account{Program: have}, 1)
		want := fmt.Sprintf("use --host-memory %dMiB, if that is enough", room>>20)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if err := enoughOf(have, name, p, account{Program: room - p.Peak(space.Host)}, 1); err !=
			nil {
			t.Errorf("%s, of just enough: %v", name, err)
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

// TestLeaner: where a machine has less than a process takes with its usual garbage, it lets as much
// lie as there is room for, and no less than it can do with.
func TestLeaner(t *testing.T) {
	const mib = 1 << 20
	a := account{Held: 40 * mib, Passing: 4 * mib, Garbage: 20 * mib, Program: 36 * mib}
	for have, want := range map[int64]int64{500: 20, 100: 20, 99: 19, 85: 5, 84: 4, 83: 4, -5: 4} {
		if b := a.leaner(have * mib); b.Garbage != want*mib || b.total()-a.total() !=
			(want-20)*mib {
			t.Errorf("of %dMiB: %+v, want %dMiB", have, b, want)
		}
	}
}
