package command

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan"
)

// planKeys are what scripts may rely on.
var planKeys = []string{
	"model", "size", "parameters", "policy", "strategy", "partition", "partitions", "lookahead",
	"nodes",
	"device_budget_bytes", "device_peak_bytes", "host_peak_bytes", "vanilla_device_peak_bytes",
	"min_device_bytes",
	"swap_out_bytes", "swap_in_bytes", "stage_bytes", "plan_ms",
}

func TestPlanJSON(t *testing.T) {
	out := succeed(t, "plan", "--size", "s512", "--partition", "50", "--lookahead", "1", "--json")
	var keys map[string]json.RawMessage
	decode(t, out, &keys)
	for _, k := range planKeys {
		if _, ok := keys[k]; !ok {
			t.Errorf("no key %s in %s", k, out)
		}
	}
	var x explanation
	decode(t, out, &x)
	switch {
	case x.Model != "moe" || x.Size != "s512" || x.Policy != "thesis" || x.Strategy != "dfs" ||
		x.Partition != 50 || x.Lookahead != 1:
		t.Errorf("options are not those given: %s", out)
	case x.MinDevice > x.DevicePeak || x.DevicePeak > x.DeviceBudget ||
		x.DevicePeak >= x.VanillaDevice:
		t.Errorf("want smallest budget <= peak <= budget and peak < vanilla's: %s", out)
	case x.Stage == 0 || x.SwapIn == 0 || x.SwapOut == 0 || x.Gradients == 0 || x.Partitions < 2:
		t.Errorf("nothing is staged or swapped: %s", out)
	case x.AtDevice.Live > x.AtDevice.Bytes || x.AtDevice.Live < x.AtDevice.Largest[0].Bytes:
		t.Errorf("peak %+v", x.AtDevice)
	}
}

// TestPlanVanilla: the baseline has no budget unless it is given one, moves only
// inputs and results, and is what thesis plans are compared with.
func TestPlanVanilla(t *testing.T) {
	var vanilla, thesis explanation
	decode(t, succeed(t, "plan", "--size", "s512", "--policy", "vanilla", "--json"), &vanilla)
	decode(t, succeed(t, "plan", "--size", "s512", "--json"), &thesis)
	if vanilla.DeviceBudget != 0 || vanilla.DevicePeak != vanilla.VanillaDevice ||
		vanilla.DevicePeak != thesis.VanillaDevice {
		t.Errorf("vanilla %+v, under thesis %d", vanilla.report, thesis.VanillaDevice)
	}
	if vanilla.Stage+vanilla.SwapIn+vanilla.SwapOut+vanilla.Gradients != 0 {
		t.Errorf("vanilla copies: %+v", vanilla.report)
	}
	if o := invoke(t, "plan", "--size", "s512", "--policy", "vanilla", "--device-memory",
		"1MiB"); o.status != exitFailure || !strings.Contains(o.stderr, "--policy thesis") {
		t.Errorf("vanilla under a tight budget: %+v", o)
	}
}

// TestVanillaIsOneNumber: the baseline printed beside another policy is what
// --policy vanilla says, and needs no column of its own there.
func TestVanillaIsOneNumber(t *testing.T) {
	longtest.Skip(t)
	for _, flags := range [][]string{{}, {"--model", "wgan"}, {"--model", "wgan", "--no-fuse"},
		{"--streams", "2"}} {
		flags = append([]string{"plan", "--size", "s512", "--json"}, flags...)
		var beside, alone, bounded explanation
		decode(t, succeed(t, flags...), &beside)
		decode(t, succeed(t, append(flags, "--policy", "vanilla")...), &alone)
		decode(t, succeed(t, append(flags, "--policy", "vanilla", "--device-memory", "1GiB")...),
			&bounded)
		if alone.DevicePeak != beside.VanillaDevice || alone.DevicePeak != alone.VanillaDevice ||
			bounded.DevicePeak != bounded.VanillaDevice {
			t.Errorf("%v: %d beside, %d alone, %d under a budget where vanilla is %d", flags,
				beside.VanillaDevice, alone.DevicePeak, bounded.DevicePeak, bounded.VanillaDevice)
		}
	}
	text := succeed(t, "plan", "--size", "s512", "--policy", "vanilla")
	if regexp.MustCompile(`vanilla +vanilla`).MatchString(text) {
		t.Errorf("vanilla beside itself:\n%s", text)
	}
}

// TestScratchHasAnOwner: what an operation scribbles on is named after it.
func TestScratchHasAnOwner(t *testing.T) {
	inDir(t)
	succeed(t, "plan", "--model", "resnet", "--size", "s512", "--dump", "plan.txt")
	f, err := os.Open("plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := plan.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range p.Steps {
		if do, ok := s.Do.(plan.Launch); ok && do.Scratch != plan.NoSlot {
			found++
			if got := p.Slots[do.Scratch].Value; got != "scratch of "+s.Name {
				t.Errorf("%s has %q", s.Name, got)
			}
		}
	}
	if found == 0 {
		t.Error("no operation has scratch")
	}
}

// TestPlanText: the explanation has the numbers of the JSON.
func TestPlanText(t *testing.T) {
	var x explanation
	decode(t, succeed(t, "plan", "--size", "s512", "--json"), &x)
	text := succeed(t, "plan", "--size", "s512")
	for _, want := range []string{
		grouped(x.Parameters) + " parameters", exact(x.MinDevice), exact(x.DeviceBudget),
		size(x.DevicePeak), size(x.VanillaDevice), size(x.HostPeak),
		size(x.Stage), size(x.SwapIn), size(x.SwapOut),
		fmt.Sprintf("%.2f times", x.ratio()), x.AtDevice.Largest[0].Value, x.AtHost.At,
		size(x.Floor.Operation), size(x.Floor.Overlapped), x.Floor.At, x.fastest(),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	narrow(t, text)
	if floor, plan := strings.Index(text, "\nfloor"), strings.Index(text, "\nplan "); floor < 0 ||
		floor > plan {
		t.Errorf("the floors are not the first:\n%s", text)
	}
}

// TestFloor: no plan is below the floor, whatever the policy and the budget.
func TestFloor(t *testing.T) {
	for _, flags := range [][]string{
		{"--policy", "vanilla"}, {"--partition", "5"}, {"--partition", "5", "--no-swap"},
		{"--policy", "auto", "--model", "deepspeech", "--device-memory", "400KiB"},
	} {
		var x explanation
		decode(t, patiently(t, with([]string{"plan", "--size", "s512", "--json"}, flags...)...), &x)
		f := x.Floor
		if f.At == "" || f.Operation <= 0 || f.Operation > f.Overlapped ||
			f.Operation > x.DevicePeak {
			t.Errorf("%v: floor %+v, peak %d", flags, f, x.DevicePeak)
		}
		if away := x.Actions.Swapped + x.Actions.Recomputed; f.Absent > away+x.Feeds {
			t.Errorf("%v: %d bytes are away, at least %d must be", flags, away, f.Absent)
		}
		if tight := x.Policy == "auto"; tight != (f.Absent > 0) {
			t.Errorf("%v: %d bytes must be away", flags, f.Absent)
		}
	}
}

// TestSplitActions: what is made in parts counts as that.
func TestSplitActions(t *testing.T) {
	longtest.Skip(t)
	var x explanation
	decode(t, patiently(t, "plan", "--model", "transformer", "--size", "s512", "--json",
		"--policy", "auto", "--device", "sim:titanx", "--device-memory", "100KiB"), &x)
	a := x.Actions
	if a.Split == 0 || a.Kept == 0 || a.Swapped == 0 || !strings.Contains(x.Floor.At, "of") {
		t.Errorf("%+v, the floor is at %s", a, x.Floor.At)
	}
}

// TestPlanBase: the largest size is planned without its memory.
func TestPlanBase(t *testing.T) {
	longtest.Skip(t)
	var x explanation
	decode(t, succeed(t, "plan", "--size", "base", "--partition", "200", "--json"), &x)
	if x.Parameters != 860_700_672 {
		t.Errorf("%d parameters, want 860,700,672", x.Parameters)
	}
}

func TestPlanDump(t *testing.T) {
	dir := inDir(t)
	succeed(t, "plan", "--size", "s512", "--dump", "plan.txt", "--graph", "graph.dot")
	f, err := os.Open("plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := plan.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	steps := strings.Split(strings.TrimSpace(succeed(t, "plan", "--size", "s512", "--steps",
		"--graph", "graph.txt")), "\n")
	if len(steps) != len(p.Steps) || steps[0] != p.StepString(0) {
		t.Errorf("%d steps are listed, the dump has %d; the first is %q", len(steps), len(p.Steps),
			steps[0])
	}
	dot, err := os.ReadFile("graph.dot")
	if err != nil || !strings.HasPrefix(string(dot), "digraph") {
		t.Errorf("graph.dot: %.20q, %v", dot, err)
	}
	if got := files(t, dir); got != "graph.dot graph.txt pairs.tsv plan.txt" {
		t.Errorf("files %s", got)
	}
}

// TestSmallestBudget: the budget that plan and an error name works, for plan and
// for train, and one byte less does not.
func TestSmallestBudget(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for i, flags := range [][]string{
		{}, {"--partition", "5"}, {"--policy", "thesis", "--no-placement"},
		{"--policy", "thesis", "--no-swap"},
		{"--moe", "sparse", "--strategy", "depth"}, {"--policy", "vanilla"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			if i%4 != 0 && !longtest.Enabled() {
				t.Skip("left to the long form")
			}
			flags := slices.Concat([]string{"--size", "s512"}, flags)
			with := func(command string, bytes int64, more ...string) outcome {
				return invoke(t, slices.Concat([]string{command}, flags,
					[]string{"--device-memory", fmt.Sprint(bytes)}, more)...)
			}
			var x explanation
			decode(t, succeed(t, slices.Concat([]string{"plan", "--json", "--device-memory",
				"1GiB"}, flags)...), &x)
			if o := with("plan", x.MinDevice); o.status != exitOK {
				t.Errorf("plan with %d bytes: %+v", x.MinDevice, o)
			}
			if o := with("train", x.MinDevice, "--data", "tsv:pairs.tsv", "--steps", "1",
				"--eval-batches", "1"); o.status != exitOK {
				t.Errorf("train with %d bytes: %+v", x.MinDevice, o)
			}
			for _, command := range []string{"plan", "train"} {
				o := with(command, x.MinDevice-1)
				if o.status != exitFailure || !strings.Contains(o.stderr,
					fmt.Sprintf("(%d bytes)", x.MinDevice)) {
					t.Errorf("%s with %d bytes: %+v", command, x.MinDevice-1, o)
				}
			}
			o := with("plan", 1)
			need := regexp.MustCompile(`\((\d+) bytes\)`).FindStringSubmatch(o.stderr)
			if need == nil || need[1] != fmt.Sprint(x.MinDevice) {
				t.Errorf("with a budget of one byte: %+v, want %d", o, x.MinDevice)
			}
		})
	}
}

// TestPlanFuse: fusion is on unless it is turned off, and raises no peak.
func TestPlanFuse(t *testing.T) {
	var fused, plain, negated explanation
	decode(t, succeed(t, "plan", "--size", "s512", "--json"), &fused)
	decode(t, succeed(t, "plan", "--size", "s512", "--json", "--fuse=false"), &plain)
	decode(t, succeed(t, "plan", "--size", "s512", "--json", "--no-fuse"), &negated)
	if fused.Launches >= plain.Launches || fused.Nodes >= plain.Nodes ||
		fused.MinDevice > plain.MinDevice || fused.VanillaDevice > plain.VanillaDevice {
		t.Errorf("with fusion %+v, without %+v", fused.report, plain.report)
	}
	if negated.Launches != plain.Launches {
		t.Errorf("--no-fuse: %+v", negated.report)
	}
}

// TestPlanSteps: conditions choose among the steps, before or behind other flags.
func TestPlanSteps(t *testing.T) {
	plan := []string{"plan", "--size", "s512", "--policy", "thesis"}
	all := succeed(t, append(plan, "--steps")...)
	for _, flags := range [][]string{
		{"--steps", "op=swap-*,part=3-20"}, {"--steps=op=swap-*,part=3-20"},
		{"--steps", "part=3-20,op=swap-*", "--model", "moe"},
	} {
		some := succeed(t, append(plan, flags...)...)
		if some == "" || strings.Count(some, " swap-") != strings.Count(some, "\n") {
			t.Errorf("%v:\n%s", flags, some)
		}
		for line := range strings.Lines(some) {
			if !strings.Contains(all, line) {
				t.Errorf("%v: %s", flags, line)
			}
		}
	}
	if o := invoke(t, append(plan, "--steps", "--model=moe")...); o.stdout != all {
		t.Errorf("a flag behind --steps is taken for a condition: %+v", o)
	}
	if o := invoke(t, append(plan, "--steps", "value=none")...); o.status != exitOK ||
		o.stdout != "" || !strings.Contains(o.stderr, "none of 1,485 steps") {
		t.Errorf("no step: %+v", o)
	}
	if o := invoke(t, append(plan, "--steps", "time=0-")...); o.stdout != all {
		t.Errorf("a step is at no time: %+v", o)
	}
	first := strings.Count(succeed(t, append(plan, "--steps", "time=0")...), "\n")
	if first == 0 || first >= strings.Count(all, "\n") {
		t.Errorf("%d steps at the beginning", first)
	}
	if o := invoke(t, append(plan, "--steps", "time=99999999-")...); o.stdout != "" ||
		!strings.Contains(o.stderr, "none of 1,485 steps, which take ") {
		t.Errorf("after the end: %+v", o)
	}
	for conditions, says := range map[string]string{
		"part=x": `part="x"`, "colour=red": "want value, op, part, step or time",
		"step=5-3": "range", "time=x": "milliseconds",
		"--steps=": "want conditions", "many": "many",
	} {
		args := []string{"--steps", conditions}
		if strings.HasPrefix(conditions, "--") {
			args = []string{conditions}
		}
		o := invoke(t, append(plan, args...)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: %+v", conditions, o)
		}
	}
	if o := invoke(t, append(plan, "--steps", "op=add", "--json")...); o.status != exitUsage {
		t.Errorf("--steps and --json: %+v", o)
	}
}
