package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// group makes a control group whose processes may have so many bytes of memory, and returns a
// shell's words that put it into one. Where none can be made, the test is skipped.
func group(t *testing.T, bytes int64) (wrapper string) {
	t.Helper()
	why := "no group can be made"
	for _, at := range []struct{ root, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		dir := filepath.Join(at.root, fmt.Sprintf("gomem-test-%d", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) }) // once the process has ended
		err := os.WriteFile(filepath.Join(dir, at.file), []byte(fmt.Sprint(bytes)), 0o644)
		if err == nil {
			return "echo $$ >" + filepath.Join(dir, "cgroup.procs") + " || exit 99;"
		}
		why = err.Error()
	}
	t.Skipf("no memory of a process can be limited by a control group here: %s", why)
	return ""
}

// accountOf are the bytes of the plan and of what is beside it, by the first line of a run in a
// process of its own: this one holds what other tests left.
func accountOf(t *testing.T, args []string) (plan int64, beside account) {
	t.Helper()
	p := start(t, "", args...)
	p.lines.Scan()
	line := p.lines.Text()
	if status := p.end(t); status.ExitStatus() != exitOK {
		t.Fatalf("%v, %s", status, p.stderr.String())
	}
	var x struct {
		Device int64   `json:"device_peak_bytes"`
		Host   int64   `json:"host_peak_bytes"`
		Beside account `json:"beside"`
	}
	if err := json.Unmarshal([]byte(line), &x); err != nil {
		t.Fatal(err)
	}
	return x.Device + x.Host, x.Beside
}

// TestKeepsToItsAccount: a process that may have what its plan takes and what it says that it has
// beside it, and 4 MiB by which that varies, reads weights, trains, evaluates and saves. One that
// may have less is refused before its first step, in a line that says what it takes.
func TestKeepsToItsAccount(t *testing.T) {
	longtest.Skip(t)
	weights, err := filepath.Abs("../../train/testdata/gguf/llama.gguf")
	if err != nil {
		t.Fatal(err)
	}
	inDir(t)
	public := []string{"train", "--model", "gpt", "--network", weights, "--init", weights,
		"--data", "text:pairs.tsv", "--batch", "2", "--length", "16", "--steps", "20",
		"--eval-every", "10", "--eval-batches", "2", "--json"}
	for name, args := range map[string][]string{
		"plain": public,
		"qlora": with(public, "--lora", "rank=2", "--store", "q4_k"),
	} {
		plan, a := accountOf(t, args)
		if n := a.least().total(); n > 64<<20 { // what it keeps to where it may have no more
			t.Errorf("%s: %s beside the plan", name, size(n))
		}
		beside := a.total()
		t.Run(name, func(t *testing.T) {
			p := start(t, group(t, plan+beside+4<<20), with(args, "--save", "run "+name,
				"--save-every", "10")...)
			if status := p.end(t); status.ExitStatus() != exitOK {
				t.Errorf("within %s and %s: %v, %s", size(plan), size(beside), status,
					p.stderr.String())
			}
		})
		t.Run(name+" refused", func(t *testing.T) {
			p := start(t, group(t, plan+beside*3/4), args...)
			if status := p.end(t); status.ExitStatus() != exitFailure ||
				!strings.Contains(p.stderr.String(), " beside the plan: data") {
				t.Errorf("%v, %s", status, p.stderr.String())
			}
		})
	}
}

// TestKeepsToHostMemory: a process that may have its device's budget and that of --host-memory, and
// 4 MiB by which that varies, reads weights, trains, evaluates and saves, with the bits that it has
// without a budget. The budget is the least, as a refusal names it, or a larger one.
func TestKeepsToHostMemory(t *testing.T) {
	longtest.Skip(t)
	weights, err := filepath.Abs("../../train/testdata/gguf/llama.gguf")
	if err != nil {
		t.Fatal(err)
	}
	inDir(t)
	args := []string{"train", "--model", "gpt", "--network", weights, "--init", weights, "--data",
		"text:pairs.tsv", "--batch", "2", "--length", "16", "--steps", "20", "--eval-every", "10",
		"--eval-batches", "2", "--policy", "thesis", "--device-memory", "2MiB", "--json"}
	out, _ := byItself(t, args...)
	_, free := trainLines(t, out)
	refused := invoke(t, with(args, "--host-memory", "1MiB")...)
	least, err := strconv.ParseInt(namedBudget(t, refused.stderr), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, budget := range []int64{least, least + 8<<20} {
		p := start(t, group(t, 2<<20+budget+4<<20), with(args, "--save", fmt.Sprint(budget),
			"--save-every", "10", "--host-memory", fmt.Sprint(budget))...)
		status, out := p.written(t)
		if status.ExitStatus() != exitOK {
			t.Fatalf("within %s: %v, %s", size(budget), status, p.stderr.String())
		}
		lines, summary := trainLines(t, out)
		var x report
		decode(t, strings.SplitAfter(out, "\n")[0], &x)
		if x.HostPeak+x.Beside.total() > budget || x.HostBudget != budget {
			t.Errorf("within %s: %+v and %+v", size(budget), x, x.Beside)
		}
		if summary["weights_sha256"] != free["weights_sha256"] || len(lines) == 0 {
			t.Errorf("within %s: other weights", size(budget))
		}
	}
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
	run := func(ballast string) (x report, summary map[string]any) {
		t.Setenv(asBallast, ballast)
		out, _ := byItself(t, with([]string{"train", "--disk", ".", "--steps", "1",
			"--eval-batches", "1", "--json", "--host-memory",
			fmt.Sprint(expected + roomy.HostPeak)}, large...)...)
		decode(t, strings.SplitAfter(out, "\n")[0], &x)
		_, summary = trainLines(t, out)
		return x, summary
	}
	first, want := run("0")
	if first.HostPeak != roomy.HostPeak || first.DiskPeak > 0 {
		t.Errorf("as expected: %+v", first)
	}
	for _, ballast := range []string{"20", "56"} {
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

// TestDataAreOfTheAccount: data that are evaluated on are counted before there are plans.
func TestDataAreOfTheAccount(t *testing.T) {
	inDir(t)
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "1", "--save", "run")
	write(t, "large.txt", strings.Repeat("the number 1 is a number\n", 2<<20))
	p := start(t, "", "eval", "--from", "run", "--data", "text:large.txt", "--eval-batches", "1",
		"--host-memory", "100MiB")
	if status := p.end(t); status.ExitStatus() != exitFailure ||
		!strings.Contains(p.stderr.String(), "the process itself takes ") {
		t.Errorf("%v, %s", status, p.stderr.String())
	}
}

// TestExpected: the account before there are plans and data is no less than the one that there is
// then, and not much more.
func TestExpected(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for _, model := range []string{"transformer", "resnet"} {
		args := []string{"--model", model, "--size", "s512"}
		var x report
		decode(t, succeed(t, with([]string{"plan", "--json"}, args...)...), &x)
		if model == "transformer" {
			args = append(args, "--data", "tsv:pairs.tsv")
		}
		_, beside := accountOf(t, with([]string{"train"}, with(args, "--steps", "1",
			"--eval-batches", "1", "--json")...))
		all, is := x.Beside.total(), beside.total()
		if is > all || is < all-48<<20 {
			t.Errorf("%s: %s is expected, there is %s", model, size(all), size(is))
		}
	}
}

// TestProgram: code, stacks and what libraries map take no more than the account has for them.
func TestProgram(t *testing.T) {
	inDir(t)
	p := start(t, "", with([]string{"--log-level", "debug"}, with(tiny, "--steps", "1")...)...)
	p.end(t)
	entry := regexp.MustCompile(`when=(returned|trained) resident_bytes=(\d+) .* ` +
		`total_bytes=(\d+) returned_bytes=(\d+)`)
	all := entry.FindAllStringSubmatch(p.stderr.String(), -1)
	if len(all) != 2 {
		t.Fatalf("no two accounts in %s", p.stderr.String())
	}
	for _, found := range all {
		var n [3]int64
		for i := range n {
			n[i], _ = strconv.ParseInt(found[2+i], 10, 64)
		}
		if program := n[0] - (n[1] - n[2]); program > programBytes || program < programBytes/4 {
			t.Errorf("once it has %s, the program has %s, the account %s", found[1], size(program),
				size(programBytes))
		}
	}
}

// TestGroupLimit: the least limit counts of a group and those around it, of both versions, seen
// from within a container or not.
func TestGroupLimit(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("memory/a/memory.limit_in_bytes", "7000")
	write("memory/a/b/memory.limit_in_bytes", "9000")
	write("memory/memory.limit_in_bytes", "9223372036854771712")
	write("memory.max", "max")
	write("two/memory.max", "5000")
	for groups, want := range map[string]int64{
		"":                            0,
		"5:cpu,cpuacct:/a\n":          0,
		"5:memory:/a/b\n":             7000,
		"5:cpu,memory:/a/b/c\n":       7000,
		"5:memory:/elsewhere\n":       0,
		"0::/two/three\n":             5000,
		"4:memory:/a\n0::/two\n":      5000,
		"0::/\n":                      0,
		"7:memory:/\n1:name=s:/two\n": 0,
	} {
		if got := groupLimit(root, groups); got != want {
			t.Errorf("%q: %d, want %d", groups, got, want)
		}
	}
}
