package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// asCommand is the variable that makes this program gomem itself, for tests that
// need a process of its own, and asBallast what has it hold so many MiB beside.
const asCommand, asBallast = "GOMEM_TEST_COMMAND", "GOMEM_TEST_BALLAST"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		mib, _ := strconv.Atoi(os.Getenv(asBallast))
		ballast := bytes.Repeat([]byte{1}, mib<<20)
		status := Main(UntilSignal(context.Background()), os.Args[1:], os.Stdout, os.Stderr,
			Extras{})
		runtime.KeepAlive(ballast)
		os.Exit(status)
	}
	cache, err := os.MkdirTemp("", "gomem-test-*") // of what the machine was measured to take
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", cache)
	os.Setenv("CUDA_VISIBLE_DEVICES", "-1") // the processor, also on a machine with a GPU
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		os.RemoveAll(cache)
		os.Exit(status)
	}))
}

// outcome is what a command line led to.
type outcome struct {
	status         int
	stdout, stderr string
}

func invoke(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := Main(t.Context(), args, &stdout, &stderr, Extras{})
	return outcome{status, stdout.String(), notices.ReplaceAllString(stderr.String(), "")}
}

// notices are said of what takes long, so on a busy machine of anything.
var notices = regexp.MustCompile(`(?m)^gomem: (planning|measuring|learning up to|encoding|` +
	`building the graph|running|a step took|looking for|reading|trying|\w+ \d+: planning it|` +
	`.*planning \d+ under policy) ?.*\n`)

// succeed runs a command line that must work and returns its output.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	o := invoke(t, args...)
	if o.status != exitOK || o.stderr != "" {
		t.Fatalf("gomem %s: status %d, standard error %q", strings.Join(args, " "), o.status,
			o.stderr)
	}
	return o.stdout
}

// inDir makes an empty directory the current one, with a small corpus in it.
func inDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	var pairs strings.Builder
	for i := range 600 {
		fmt.Fprintf(&pairs, "the number %d\tnumber %d is %d\n", i, i, i*i)
	}
	write(t, "pairs.tsv", pairs.String())
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files lists a directory.
func files(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		list[i] = filepath.Base(list[i])
	}
	return strings.Join(list, " ")
}

func TestBadInput(t *testing.T) {
	const ts = "train --size s512 --data tsv:pairs.tsv --steps 2 "
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"", 2, "train"},
		{"fly", 2, "fly"},
		{"train --wings 2", 2, "unknown flag --wings"},
		{"train now", 2, "now"},
		{"--log-level loud version", 2, "loud"},
		{"--pprof heat version", 2, "want cpu, mem, trace, block, mutex or goroutine"},
		{"--pprof cpu --pprof-dir pairs.tsv version", 1, "pairs.tsv"},

		{"train --model bert", 2, `unknown --model "bert": want moe`},
		{"train --model transformer --experts 4", 2,
			"--experts does nothing for --model transformer"},
		{"train --size huge", 2, "base"},
		{"train --moe wide", 2, "dense"},
		{"train --experts -4", 2, "--experts"},
		{"train --experts 1", 2, "experts"},
		{"train --batch 0", 2, "--batch"},
		{"train --length x", 2, "--length"},
		{"train --expert-hidden 1.5", 2, "--expert-hidden"},

		{"train --steps 0", 2, "--steps"},
		{"train --steps -3", 2, "--steps"},
		{"train --steps 99999999999999999999", 2, "--steps"},
		{"train --epochs 0", 2, "--epochs"},
		{"train --epochs nan", 2, "--epochs"},
		{"train --steps 3 --epochs 2", 2, "together"},
		{"train --seed -1", 2, "--seed"},
		{"train --eval-every 0", 2, "--eval-every"},
		{"train --save-every 10", 2, "--save-every needs --save DIR"},
		{"train --mtbf 720h", 2, "--mtbf needs --save DIR"},
		{"train --mtbf 5s --save x", 2, "want a time from 1m to 87600h, such as 720h"},
		{"train --mtbf 720h --save x --save-every 10", 2, "each says when to save"},

		{"train --policy best", 2, `want one of ["vanilla" "thesis" "auto" "grappler"]`},
		{"train --strategy random", 2, "dfs-depth"},
		{"train --partition 0", 2, "--partition"},
		{"train --partition", 2, "--partition"},
		{"train --lookahead 0", 2, "--lookahead"},
		{"train --streams 99", 2, "streams"},
		{"train --device gpu", 2, "want cpu, null, cuda or cuda:NUMBER"},
		{"train --threads -2", 2, "--threads"},
		{"train --copy-gbps 0", 2, "--copy-gbps"},
		{"train --disk-memory 0", 2, "--disk-memory"},
		{"train --disk-memory 1GiB", 2, "--disk-memory needs --disk DIR"},
		{"train --disk /tmp", 2, "--disk needs --disk-memory SIZE"},
		{ts + "--policy thesis --host-memory 400KiB --disk-memory 1GiB --disk nowhere", 1,
			"nowhere"},
		{"train --device-memory lots", 2, "192MiB"},
		{"train --device-memory -1MiB", 2, "192MiB"},
		{"train --host-memory 0", 2, "--host-memory"},
		{"train --policy vanilla --partition 20", 2,
			"--partition does nothing under --policy vanilla"},
		{"plan --policy vanilla --no-swap", 2, "--no-swap does nothing under --policy vanilla"},
		{ts + "--device-memory 1KiB", 1, "bytes) of device memory, the budget is 1KiB"},
		{ts + "--partition 20 --host-memory 1KiB", 1, "--host-memory 1KiB: the process itself "},
		{ts + "--partition 20 --host-memory 95MiB", 1, "of host memory, the budget is 95MiB"},
		{"plan --size s512 --device-memory 1KiB", 1, "of device memory"},

		{ts + "--data ftp:here", 2, "unknown source"},
		{ts + "--data tsv:", 2, "tsv:FILE"},
		{ts + "--data tsv:none.tsv", 1, "none.tsv"},
		{ts + "--data dir:", 2, "--data dir: is not for --model moe: give it to --model resnet " +
			"or wgan"},
		{"train --model resnet --size s512 --data dir:", 2, "no path: give glyphs, dir:PATH"},
		{"train --model deepspeech --data glyphs", 2, "give it to --model resnet or wgan"},
		{ts + "--bleu -1", 2, "--bleu"},
		{ts + "--data text:.", 1, "."},
		{ts + "--save pairs.tsv", 1, "pairs.tsv"},
		{ts + "--resume none", 1, "none"},
		{ts + "--resume .", 1, "checkpoint"},
		{ts + "--trace none/trace.json", 1, "none/trace.json"},
		{"plan --size s512 --dump none/plan.txt", 1, "none/plan.txt"},
		{"plan --size s512 --graph graph.png", 2, ".dot or .txt"},
		{"plan --size s512 --json --steps", 2, "together"},

		{"train --model gpt --blocks bert", 2, `unknown --blocks "bert": want gpt2 or llama`},
		{"train --model gpt --fine", 2, "--fine does nothing for --model gpt"},
		{"train --model gpt --bleu 1", 2, "--bleu does nothing for --model gpt"},
		{"train --model gpt --data tsv:pairs.tsv", 2, "give it to --model moe or transformer"},
		{"train --model gpt --data go:test", 2, "give go:doc, text:PATH or jsonl:FILE"},
		{"train --model gpt --size s512 --data text:none", 1, "none"},
		{"train --model resnet --blocks 3,8,36", 2, "four numbers"},
		{"train --model resnet --blocks 3,8,36,x", 2, "four numbers"},
		{"plan --plan-time soon", 2, `--plan-time: "soon": want a time such as 30s or 1h30m`},
		{"train --model resnet --depth 51", 2, "--depth is 51"},
		{"train --model resnet --depth 50 --blocks 3,8,36,3", 2, "together"},
		{"train --model resnet --version v3", 2, "v1.5"},
		{"train --model resnet --length 3", 2, "--length does nothing for --model resnet"},
		{"train --model deepspeech --rnn rolled", 2, "unrolled"},
		{"train --model wgan --nets vgg", 2, "good"},
		{"train --model wgan --size s512 --steps 2 --samples pairs.tsv", 1,
			"pairs.tsv: cannot save there: not a directory"},
		{"train --model wgan --size s512 --steps 2 --samples pairs.tsv/below", 1,
			"not a directory"},
		{"bench thesis --table 6.1 --size base --plots pairs.tsv", 1, "pairs.tsv"},
		{"train --model resnet --size s512 --data dir:none", 1, "none"},
		{"train --model wgan --pixels 17", 2, "multiple of 16"},
		{"train --samples grids", 2, "--samples does nothing for --model moe"},
		{"train --model wgan --bleu 2", 2, "--bleu does nothing for --model wgan"},
		{"train --model resnet --size s512 --data tsv:pairs.tsv", 2, "--model moe or transformer"},
		{"train --model deepspeech --size s512 --data csv:none.csv", 1, "none.csv"},

		{"plan --device sim:abacus", 2, "titanx-thesis"},
		{"plan --device gpu", 2, "unknown device"},
		{"plan --plot cost.png", 2, "--plot needs --sweep"},
		{"plan --sweep --plot cost.gif", 2, ".png or .svg"},
		{"plan --sweep --steps", 2, "together"},
		{"plan --sweep --dump plan.txt", 2, "leave one out"},
		{"plan --size s512 --sweep --partition 20 --host-memory 1KiB", 1,
			"--host-memory 1KiB: the process itself "},
		{"plan --sweep --points 1", 2, "--points 1: want a number from 2"},
		{"plan --model deepspeech --size s512 --sweep --points 2 --plot none/cost.png", 1,
			"none/cost.png"},

		{"fit now", 2, "now"},
		{"fit --max wings", 2, "--max"},
		{"fit --model bert", 2, "unknown --model"},
		{"fit --size huge", 2, "base"},
		{"fit --model wgan --max depth", 2,
			"--max depth does nothing for --model wgan: want batch"},
		{"fit --model resnet --max experts", 2, "want batch or depth"},
		{"fit --batch 3", 2, "--batch is what --max batch looks for"},
		{"fit --model resnet --max depth --blocks 1,1,1,1", 2, "--blocks is what --max depth"},
		{"fit --model resnet --max depth --depth 50", 2, "--depth is what --max depth"},
		{"fit --model resnet --length 3", 2, "--length does nothing for --model resnet"},
		{"fit --policy best", 2, "thesis"},
		{"fit --device gpu", 2, "unknown device"},
		{"train --moe thick", 2, `--moe must be one of "dense","sparse" but got "thick"`},
		{"fit --device sim:abacus", 2, "titanx-thesis"},
		{"plan --device sim:none.json", 2, `--device "sim:none.json": no such file`},
		{"fit --device sim:none.json", 2, `--device "sim:none.json": no such file`},
		{"profile --device sim:none.json", 2, `--device "sim:none.json": no such file`},
		{"train --device sim:none.json", 2, `--device "sim:none.json": no such file`},
		{"train --device sim:foo", 2, `--device "sim:foo": unknown profile`},
		{"train --device gpu", 2, "--device gpu: unknown device"},
		{"plan --plan-time -1s", 2, "--plan-time -1s: want a time such as 30s"},
		{"plan --plan-time 1s --policy thesis", 2, "does nothing under --policy thesis"},
		{"train --size s512 --disk none --disk-memory 1GiB", 1, "--disk none: no such file"},
		{"train --size s512 --disk pairs.tsv --disk-memory 1GiB", 1, "--disk pairs.tsv: not a dir"},
		{"train --size s512 --disk .", 2, "--disk needs --disk-memory"},
		{"train --size s512 --disk-memory 1GiB", 2, "--disk-memory needs --disk"},
		{"fit --device-memory none", 2, "192MiB"},
		{"fit --model deepspeech --size s512 --device-memory 1KiB", 1,
			"no batch fits: with 1, train needs "},
		{"fit --model deepspeech --size s512 --partition 20 --host-memory 1KiB", 1,
			"no batch fits: with 1, --host-memory 1KiB: the process itself "},
		{"fit --model resnet --size s512 --max depth --policy vanilla --device-memory 1KiB", 1,
			"with 14, train"},

		{"bench", 2, "thesis"},
		{"bench thesis --table 6.3", 2, "unknown table"},
		{"bench thesis --size s512", 2, "base"},
		{"bench thesis --json --csv", 2, "together"},
	} {
		t.Run(c.args, func(t *testing.T) {
			dir := inDir(t)
			o := invoke(t, strings.Fields(c.args)...)
			if o.status != c.status {
				t.Errorf("status %d, want %d", o.status, c.status)
			}
			if !strings.HasPrefix(o.stderr, "gomem: ") || strings.Count(o.stderr, "\n") != 1 ||
				!strings.HasSuffix(o.stderr, "\n") {
				t.Errorf("standard error is not one line of gomem's: %q", o.stderr)
			}
			if !strings.Contains(o.stderr, c.says) {
				t.Errorf("standard error %q does not say %q", o.stderr, c.says)
			}
			if twice := repeated(c.args, o.stderr); twice != "" {
				t.Errorf("standard error %q says %q twice", o.stderr, twice)
			}
			if o.stdout != "" {
				t.Errorf("standard output %q", o.stdout)
			}
			if left := files(t, dir); left != "pairs.tsv" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

// repeated is what a message says twice, of the parts that colons divide and of the paths of its
// command line; or a name of Go's own library, which says nothing to who uses a command. It is ""
// if there is none.
func repeated(args, message string) string {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(strings.TrimSuffix(message, "\n"), ": ") {
		if seen[part] || strings.HasPrefix(part, "strconv.") {
			return part
		}
		seen[part] = true
	}
	for word := range strings.FieldsSeq(args) {
		_, path, _ := strings.Cut(":"+word, ":") // of tsv:FILE, too
		path = path[strings.LastIndex(path, ":")+1:]
		if strings.ContainsAny(path, "./") && len(path) > 1 && strings.Count(message, path) > 1 {
			return path
		}
	}
	return ""
}

// TestRepeated: what the check of messages finds.
func TestRepeated(t *testing.T) {
	for message, want := range map[string]string{
		"gomem: a.tsv: cannot open a.tsv\n":                "a.tsv",
		"gomem: check the path: check the path\n":          "check the path",
		"gomem: --seed: strconv.ParseUint: not a number\n": "strconv.ParseUint",
		"gomem: a.tsv: line 3: two fields: want three\n":   "",
	} {
		if got := repeated("train --data tsv:a.tsv", message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

// TestHelp: every command explains itself, with examples that parse.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"train", "--help"}, {"plan", "-h"},
		{"fit", "-h"},
		{"bench", "--help"}, {"bench", "thesis", "-h"}, {"devices", "--help"},
		{"version", "--help"}, {"train", "--steps", "3", "--help"}} {
		out := succeed(t, args...)
		if !strings.HasPrefix(out, "Usage: gomem") ||
			!strings.Contains(out, "\nExamples:\n  gomem ") {
			t.Errorf("gomem %s:\n%s", strings.Join(args, " "), out)
		}
	}
}

func TestExamplesParse(t *testing.T) {
	for _, e := range []exampler{cli{}, trainCmd{}, planCmd{}, fitCmd{}, benchCmd{}, thesisCmd{},
		devicesCmd{}, versionCmd{}} {
		for line := range strings.Lines(strings.TrimPrefix(e.examples(), "\n")) {
			command, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
			args := append(strings.Fields(command)[1:], "--help")
			succeed(t, args...)
		}
	}
}

func TestVersion(t *testing.T) {
	var v versionInfo
	decode(t, succeed(t, "version", "--json"), &v)
	if text := succeed(t, "version"); !strings.HasPrefix(text, "gomem "+v.Version+" "+v.Go) {
		t.Errorf("version %q, but %+v", text, v)
	}
}

// TestProfile: a profile is written where it was asked for.
func TestProfile(t *testing.T) {
	for kind, want := range map[string]string{"cpu": "cpu.pprof", "mem": "mem.pprof",
		"trace": "trace.out", "block": "block.pprof", "mutex": "mutex.pprof",
		"goroutine": "goroutine.pprof"} {
		dir := filepath.Join(t.TempDir(), "profiles")
		succeed(t, "--pprof", kind, "--pprof-dir", dir, "version")
		if got := files(t, dir); got != want {
			t.Errorf("--pprof %s wrote %q", kind, got)
		}
		if s, err := os.Stat(filepath.Join(dir, want)); err != nil || s.Size() == 0 {
			t.Errorf("%s: %v, %v", want, s, err)
		}
	}
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if d.More() {
		t.Fatalf("more than one value in %s", text)
	}
}
