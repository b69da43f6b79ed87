package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
)

// TestCosts: one line of at most 80 columns, whatever is known.
func TestCosts(t *testing.T) {
	const mib, most = 1 << 20, 1023<<30 + 1<<29
	for _, c := range []struct {
		want string
		report
		cost
	}{
		{"", report{Policy: planner.Vanilla, VanillaDevice: mib}, cost{MinDevice: mib}},
		{"fits without copying from 58.7MiB; at 32MiB about 12% slower; least 6.1MiB",
			report{Policy: planner.Auto, VanillaDevice: 587 * mib / 10, DeviceBudget: 32 * mib,
				SwapIn: 1}, cost{MinDevice: 61 * mib / 10, Slower: 1.12}},
		{"fits without copying from 1MiB; at 2MiB nothing is copied; least 1MiB",
			report{Policy: planner.Auto, VanillaDevice: mib, DeviceBudget: 2 * mib},
			cost{MinDevice: mib, Slower: 1.1}},
		{"vanilla fits from 2MiB; at 1MiB about 50% faster; least 100B",
			report{Policy: planner.Thesis, VanillaDevice: 2 * mib, DeviceBudget: mib, SwapIn: 1},
			cost{MinDevice: 100, Slower: 0.5}},
		{"fits without copying from 2MiB; at 1MiB about 7% slower; least 100B",
			report{Policy: planner.Auto, VanillaDevice: 2 * mib, DeviceBudget: mib},
			cost{MinDevice: 100, Slower: 1.07, Actions: actions{Recomputed: 1}}},
		{"vanilla fits from 2MiB; at 1MiB no slower; least 100B", // the whole graph's, that is
			report{Policy: planner.Auto, VanillaDevice: 2 * mib, DeviceBudget: mib, SwapIn: 1,
				divided: true}, cost{MinDevice: 100, Slower: 1}},
		{"vanilla fits from 2MiB; least 1MiB",
			report{Policy: planner.Grappler, VanillaDevice: 2 * mib}, cost{MinDevice: mib}},
		{"fits without copying from 1024GiB; at 1024GiB 4096.0 times the time; least 1024GiB",
			report{Policy: planner.Auto, VanillaDevice: most, DeviceBudget: most, Stage: 1},
			cost{MinDevice: most, Slower: 4096}},
	} {
		if got := c.costs(c.cost); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if len(c.want) > 82 {
			t.Errorf("%d columns: %s", len(c.want), c.want)
		}
	}
	for ratio, want := range map[float64]string{0.5: "about 50% faster", 0.997: "no slower",
		1: "no slower", 1.004: "no slower", 1.006: "about 1% slower", 1.99: "about 99% slower",
		2.04: "2.0 times the time"} {
		if got := slower(ratio); got != want {
			t.Errorf("%v: %q, want %q", ratio, got, want)
		}
	}
}

// TestShort: three figures and a unit.
func TestShort(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0B", 1: "1B", 1023: "1023B", 1024: "1KiB",
		1536: "1.5KiB", 1<<20 - 1: "1024KiB", 1 << 20: "1MiB", 61 << 20: "61MiB",
		1 << 62: "4096PiB", 12345678: "11.8MiB", 104857600: "100MiB"} {
		if got := short(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}

// TestCostLine: plan and train say what the budget costs, with the numbers of the
// JSON.
func TestCostLine(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for _, policy := range []string{"auto", "thesis", "vanilla"} {
		flags := []string{"--size", "s512", "--policy", policy, "--device-memory", "2MiB"}
		var x explanation
		decode(t, patiently(t, with([]string{"plan", "--json"}, flags...)...), &x)
		line := x.costs(x.cost)
		if strings.HasPrefix(line, "fits without copying") != (policy == "auto") ||
			(line == "") != (policy == "vanilla") {
			t.Errorf("%s: %q", policy, line)
		}
		for _, command := range [][]string{{"plan"}, with(tinyMoE, "--steps", "1")} {
			text := patiently(t, with(command, flags...)...)
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("%s: no line %q in\n%s", policy, line, text)
			}
		}
		_, start := trainLines(t, strings.SplitAfter(patiently(t,
			with(with(tinyMoE, "--steps", "1", "--json"), flags...)...), "\n")[0])
		if start["min_device_bytes"] != float64(x.MinDevice) {
			t.Errorf("start says %v, plan %d", start["min_device_bytes"], x.MinDevice)
		}
	}
}

// TestPredicted: times are of the machine that is named, and no plan is shorter than
// the bound.
func TestPredicted(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	profile, err := machine.Named(machine.GH200)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile("own.json", profile.WriteJSON); err != nil {
		t.Fatal(err)
	}
	took := map[string]float64{}
	for _, name := range []string{"cpu", "sim:titanx", "sim:gh200", "sim:own.json"} {
		for _, policy := range []string{"thesis", "auto", "vanilla"} {
			args := []string{"plan", "--model", "deepspeech", "--size", "s512", "--device", name,
				"--policy", policy}
			var x explanation
			decode(t, patiently(t, with(args, "--json")...), &x)
			if !(x.PredictedMS >= x.LowerBoundMS && x.LowerBoundMS > 0 && x.Slower > 0 &&
				x.Kappa > 0) || policy == "vanilla" && x.Slower != 1 {
				t.Errorf("%s: %+v", name, x.cost)
			}
			took[name+" "+policy] = x.PredictedMS
			if text := patiently(t, args...); !strings.Contains(text,
				fmt.Sprintf("\non %s a step takes %.4g ms by prices", x.Machine, x.PredictedMS)) {
				t.Errorf("no time in\n%s", text)
			}
		}
	}
	if took["sim:gh200 thesis"] != took["sim:own.json thesis"] ||
		took["sim:gh200 auto"] >= took["sim:titanx auto"] {
		t.Errorf("times %v", took)
	}
}
