package house_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/gomem/gomem"

// rule says what packages may not depend on, and why. "x/..." is x and what is below it, "." is
// the façade, and "" is anything of the module.
type rule struct {
	pkgs, not []string
	why       string
}

// dependencies are the rules about all that a package depends on.
var dependencies = []rule{
	{[]string{"plan/space", "graph/tensor", "internal/chart", "internal/count",
		"internal/fit", "internal/grid", "internal/invariants", "internal/legible", "internal/libm",
		"internal/longtest", "internal/quant", "internal/regular"}, []string{""},
		"the vocabulary imports nothing of ours"},
	{[]string{"internal/arena"}, []string{"graph/tensor", "graph"},
		"packing knows rectangles, not tensors"},
	{[]string{"internal/kernel", "internal/kernel/gemm", "internal/kernel/vec",
		"internal/kernel/fewbits", "internal/kernel/pool"}, []string{"graph", "plan",
		"internal/device"}, "kernels know tensors, not graphs"},
	{[]string{"graph"}, []string{"graph/ops", "internal/kernel", "internal/device",
		"planner/program",
		"plan"}, "the graph must not know the op set or a device"},
	{[]string{"internal/device", "internal/device/cpu", "internal/device/null",
		"internal/device/sim", "internal/device/cuda"},
		[]string{"graph", "planner/program", "plan"},
		"a device runs tasks; it must not see why"},
	{[]string{"internal/device/cuda/driver"}, []string{"internal/device",
		"internal/kernel/cuda"}, "the binding of a library knows no device of ours"},
	{[]string{"cmd/gomem"}, []string{"internal/device/cuda/emu", "graph/custom/opstest",
		"planner/program/programtest", "testing"},
		"the emulated GPU and the checks of operations and schedules are for tests"},
	{[]string{"internal/kernel/cuda"}, []string{"internal/device/cuda",
		"internal/device/cuda/driver"}, "what is launched is data, and needs no driver"},
	{[]string{"graph/ops", "graph/autodiff", "graph/control", "graph/custom"},
		[]string{"planner/program", "plan", "internal/device", "planner"},
		"what is computed must not depend on how it is scheduled"},
	{[]string{"graph/fold", "graph/fuse", "graph/join", "graph/split", "graph/precision", "mesh"},
		[]string{"graph/autodiff", "planner/program", "plan", "internal/device", "planner"},
		"a rewrite comes before decisions, and knows of none"},
	{[]string{"plan"}, []string{"planner/program", "partition", "placement", "swap",
		"planner/schedule",
		"planner/search", "planner/lower", "planner", "internal/arena", "internal/kernel",
		"internal/device"}, "a plan must be readable and verifiable without its planner"},
	{[]string{"planner/machine", "planner/simulate", "planner/candidates", "planner", "executor"},
		[]string{"planner/machine/calibrate"},
		"who decides and who runs does not measure"},
	{[]string{"planner/program"}, []string{"plan", "internal/device", "internal/kernel",
		"graph/ops"},
		"a pass decides; it does not lower or run"},
	{[]string{"planner/machine"}, []string{"planner/program", "plan", "internal/device",
		"internal/kernel"},
		"a price is asked for where decisions are made"},
	{[]string{"partition", "placement", "swap", "planner/schedule"},
		[]string{"plan", "internal/device", "internal/kernel", "graph/ops", "internal/arena"},
		"policies must not depend on how ops are computed or plans are made"},
	{[]string{"planner/candidates", "planner/explain", "planner"},
		[]string{"internal/device", "executor"},
		"nothing above the plan touches a device"},
	{[]string{"planner/search", "planner/order", "planner/bound", "planner/spill"},
		[]string{"plan", "internal/device", "internal/kernel", "graph/ops", "planner"},
		"a planner fills tables; it does not lower or run"},
	{[]string{"planner/lower", "planner/outlook"}, []string{"planner/candidates",
		"planner/search", "planner/order", "planner/machine/calibrate", "graph/ops",
		"internal/device", "internal/kernel"},
		"what is decided is written down by who decides nothing"},
	{[]string{"planner/lower"}, []string{"planner/outlook"},
		"what a schedule comes to is not what a schedule may come to"},
	{[]string{"planner/candidates"}, []string{"planner/explain", "planner", "graph/fold",
		"graph/fuse", "graph/split"},
		"the plans of a graph do not depend on what else could be planned"},
	{[]string{"planner/explain"}, []string{"planner"},
		"a refusal is explained by asking who refused"},
	{[]string{"planner/simulate"}, []string{"planner/program", "planner", "internal/device"},
		"the time of a plan follows from the plan"},
	{[]string{"executor"}, []string{"planner/program", "partition", "placement", "swap",
		"planner/schedule", "planner/spill", "planner/search", "planner/lower",
		"planner/candidates", "planner", "internal/arena"},
		"nothing below the plan makes a choice"},
	{[]string{"nn"}, []string{"models", "planner/program", "plan", "planner", "executor",
		"internal/device", "data", "train"}, "a layer is a part of a graph and nothing else"},
	{[]string{"models"}, []string{"planner/...", "plan", "executor", "internal/device", "data",
		"train", "."}, "a model is a graph and nothing else"},
	{[]string{"front/onnx"}, []string{"models", "planner/...", "plan", "executor",
		"internal/device", "data", "train", "."}, "a network of a file is a graph, no more"},
	{[]string{"internal/gguf", "internal/llamacpp"}, []string{"graph", "graph/tensor", "nn",
		"models", "data", "train"}, "a file is values and bytes; who reads it knows networks"},
	{[]string{"internal/onnx"}, []string{"graph", "nn"}, "a file is messages, not a graph"},
	{[]string{"data", "data/arrays", "data/images", "data/speech"},
		[]string{"graph", "plan", "internal/kernel"}, "data knows no graph"},
	{[]string{"data"}, []string{"data/arrays", "data/images", "data/speech"},
		"what all kinds of data share knows none of them"},
	{[]string{"internal/thesis"}, []string{"internal/command", "train"},
		"experiments run models, not training"},
	{[]string{"train", "predict"}, []string{"internal/command"},
		"the program is on top"},
	{[]string{"distrib"}, []string{""}, "schemes know updates, not graphs, and no network"},
	{[]string{"distrib/orion"}, []string{"distrib/collective", "distrib/memnet", "graph", "plan"},
		"a loop is data, and so is its schedule; workers are whom a group has"},
	{[]string{"distrib/gbt"}, []string{"distrib/memnet", "distrib/workload", "graph", "plan"},
		"numbers and a group; who reads data is above"},
	{[]string{"distrib/strads"}, []string{"distrib/memnet", "distrib/workload", "graph", "plan"},
		"numbers and a group; who reads data is above"},
	{[]string{"distrib/lda"}, []string{"distrib/collective", "distrib/memnet", "distrib/orion",
		"graph", "plan", "data"}, "a topic model knows documents and a group of workers"},
	{[]string{"distrib/collective"}, []string{"graph", "plan", "executor", "internal/device",
		"distrib/memnet", "distrib/cluster/control", "distrib/cluster/wire"},
		"collectives know bytes and a transport"},
	{[]string{"distrib/cluster/control"}, []string{"graph", "plan", "internal/device"},
		"a cluster agrees on nodes and knows no models"},
	{[]string{"distrib/cluster/wire"}, []string{"graph", "plan", "internal/device",
		"distrib/cluster/control"}, "a transport carries bytes between nodes it is told of"},
	{[]string{"distrib/cluster/launch", "distrib/cluster/trust"}, []string{"distrib"},
		"who a process is and who belongs to its job comes before the job"},
	{[]string{"cmd/gomem"}, []string{"distrib/cluster/wire"},
		"the plain command is as quick to build as it was"},
	{[]string{"distrib/cluster/metrics"}, []string{""}, "metrics are names and numbers"},
	{[]string{"distrib/cluster/scratch"}, []string{""}, "a directory is of a process"},
	{[]string{"cmd/gomem"}, []string{"distrib/cluster/control", "distrib/cluster/metrics"},
		"who trains on one machine does not wait for etcd to compile"},
	{[]string{"internal/reference"},
		[]string{"plan", "planner/program", "planner", "executor", "internal/device"},
		"the reference shares nothing with what it checks"},
}

// imports are the rules about what the files of a package import: what sits on the façade does not
// reach past it for decisions; and plans are made without a look at how operations are computed,
// though the rewriting of graphs knows the operations.
var imports = []rule{
	{[]string{"train", "predict", "internal/workers"}, []string{"planner/...", "partition",
		"placement", "swap", "executor", "internal/device/..."},
		"training asks the façade for plans and runs them by it"},
	{[]string{"internal/profile"}, []string{"planner", "planner/program", "planner/search",
		"partition", "placement", "swap", "executor", "internal/device/...", "."},
		"a profile is read from a plan"},
	{[]string{"internal/command"}, []string{"planner/program", "planner/search", "planner/order",
		"planner/schedule", "planner/spill", "planner/lower", "planner/outlook",
		"planner/candidates", "planner/explain", "swap", "executor",
		"internal/device/..."}, "a command asks for plans and explains them"},
	{[]string{"planner/lower", "planner/outlook", "planner/candidates", "planner/explain",
		"planner"}, []string{"graph/ops", "internal/kernel"},
		"decisions know what an operation costs, not how it is computed"},
}

// drivers are the packages that may import a device, and those below them.
var drivers = []string{".", "executor", "planner/machine/calibrate", "bench/gpu",
	"internal/device"}

// TestLayering keeps dependencies pointing one way.
func TestLayering(t *testing.T) {
	atRoot(t)
	deps, direct := list(t, "Deps"), list(t, "Imports")
	for _, said := range append(broken(dependencies, deps), broken(imports, direct)...) {
		t.Error(said)
	}
	for pkg, of := range direct {
		if reaches(of, "internal/device/...") && !driven(pkg) {
			t.Errorf("%s imports a device: only %s do", pkg, drivers)
		}
		if of[path("internal/test/trial")] {
			t.Errorf("%s imports internal/test/trial: it is for tests", pkg)
		}
	}
}

// TestRulesBite: of each rule, each dependency that it forbids is found where it is planted.
func TestRulesBite(t *testing.T) {
	atRoot(t)
	for i, rules := range [][]rule{dependencies, imports} {
		have := list(t, []string{"Deps", "Imports"}[i])
		for _, r := range rules {
			for _, pkg := range r.pkgs {
				for _, bad := range r.not {
					planted := strings.TrimSuffix(bad, "/...")
					if bad == "" {
						planted = "graph"
					}
					full := path(planted)
					if bad == "testing" {
						full = bad
					}
					of := maps.Clone(have[path(pkg)])
					of[full] = true
					if len(broken([]rule{{[]string{pkg}, []string{bad}, r.why}},
						map[string]map[string]bool{path(pkg): of, path(planted): {}})) != 1 {
						t.Errorf("%s may depend on %s", pkg, bad)
					}
				}
			}
		}
	}
}

// broken says which rules packages break, by what each of them depends on.
func broken(rules []rule, deps map[string]map[string]bool) []string {
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	for _, r := range rules {
		for _, pkg := range r.pkgs {
			have, ok := deps[path(pkg)]
			if !ok {
				say("package %s does not exist; the rule %q needs an update", pkg, r.why)
			}
			for _, bad := range r.not {
				_, ok := deps[path(strings.TrimSuffix(bad, "/..."))]
				switch {
				case !ok && bad != "" && bad != "testing":
					say("package %s does not exist; the rule %q needs an update", bad, r.why)
				case reaches(have, bad):
					say("%s depends on %s: %s", pkg, cmp.Or(bad, "the module"), r.why)
				}
			}
		}
	}
	return said
}

// reaches says whether what a rule forbids is among dependencies.
func reaches(deps map[string]bool, bad string) bool {
	switch tree, below := strings.CutSuffix(bad, "/..."); {
	case bad == "":
		return ours(deps) > 0
	case below:
		for d := range deps {
			if d == path(tree) || strings.HasPrefix(d, path(tree)+"/") {
				return true
			}
		}
		return false
	default:
		return deps[path(bad)] || deps[bad]
	}
}

// driven says whether a package may import a device.
func driven(pkg string) bool {
	for _, d := range drivers {
		if pkg == path(d) || d != "." && strings.HasPrefix(pkg, path(d)+"/") {
			return true
		}
	}
	return false
}

// rooms are how many folders the module's root may have, and seats how many files of tests, for
// people to find their way.
const rooms, seats = 20, 10

// TestRoot: the root has what the project is known by and what its users import, and the façade's
// own tests; everything else is below.
func TestRoot(t *testing.T) {
	atRoot(t)
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var folders, tests []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") {
			tests = append(tests, e.Name())
		}
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			folders = append(folders, e.Name())
		}
	}
	if len(folders) > rooms {
		t.Errorf("%d folders at the root, %d are enough: %s", len(folders), rooms, folders)
	}
	if len(tests) > seats {
		t.Errorf("%d files of tests at the root, %d are enough: %s", len(tests), seats, tests)
	}
}

// path is the import path of a package, by its folder; "." is the module's root.
func path(pkg string) string {
	return strings.TrimSuffix(module+"/"+strings.TrimPrefix(pkg, "."), "/")
}

func ours(deps map[string]bool) int {
	n := 0
	for d := range deps {
		if strings.HasPrefix(d, module) {
			n++
		}
	}
	return n
}

// list maps every package of the module to a field of its description: Deps,
// all it depends on, or Imports, what its files import.
func list(t *testing.T, field string) map[string]map[string]bool {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join ."+field+" \" \"}}",
		"./...").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	deps := map[string]map[string]bool{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		deps[words[0]] = map[string]bool{}
		for _, d := range words[1:] {
			deps[words[0]][d] = true
		}
	}
	return deps
}
