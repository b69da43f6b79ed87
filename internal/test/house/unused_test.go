package house_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forUsers are the packages that programs of others are made with: what they export is enough if
// a test or an example shows it.
var forUsers = []string{".", "data/...", "distrib", "distrib/collective", "distrib/memnet",
	"distrib/orion", "front/...", "graph", "graph/autodiff", "graph/control",
	"graph/custom/...", "graph/ops", "graph/tensor", "mesh", "models", "nn", "plan/...", "predict",
	"train"}

// forTests are the packages that tests are made with: a use by one of them is one by a test.
var forTests = []string{"distrib/transporttest", "examples/internal/check", "graph/custom/opstest",
	"internal/chaos", "internal/device/cuda/emu", "internal/device/devicetest",
	"internal/longtest", "internal/randgraph", "internal/reference",
	"planner/program/programtest", "internal/test/..."}

// byOthers are methods that packages of others call, of whatever type has them.
var byOthers = map[string]string{
	"As": "errors", "BeforeReset": "kong", "BeforeResolve": "kong", "Clone": "grpc",
	"Collect": "prometheus", "ColorModel": "image", "Describe": "prometheus",
	"Error": "fmt", "GoString": "fmt", "Is": "errors", "Len": "sort", "Less": "sort",
	"Marshal": "grpc", "MarshalJSON": "encoding/json", "MarshalText": "encoding/json",
	"OnWrite": "zap", "Plot": "gonum", "Pop": "container/heap", "Push": "container/heap",
	"RGBA64At": "image", "ServerHandshake": "grpc", "String": "fmt", "Swap": "sort",
	"Thumbnail": "gonum", "Ticks": "gonum", "Unmarshal": "grpc",
	"UnmarshalJSON": "encoding/json", "UnmarshalText": "encoding/json", "Unwrap": "errors",
}

// kept are what no program uses and there is all the same, and why.
var kept = map[string]string{
	"distrib/cluster/control.Control.ShardMap": "who owns a table's rows",
	"distrib/cluster/control.Control.Resume":   "Stop's other side: before a new start",
	"distrib/cluster/control.Control.Stopped":  "Stop's other side: of who does not tick",
	"distrib/cluster/trust.Gate.Refused":       "counts what tests send",
	"distrib/workload.MF.Serial":               "the plain loop that schemes are compared with",
	"distrib/wrap.Faults.Wrap":                 toCome,
	"distrib/wrap.Limit":                       toCome,
	"distrib/wrap.Meter.Refused":               "counts what tests send",
	"graph/fuse.Fuse":                          "For where everything runs",
	"planner.Shrink":                           "one of the changes, all of which are named",
}

// What is kept for what is to be built on it.
const toCome = "networks that are slow or fail, for jobs that are tried on some"

// TestUsed: what a package exports is used somewhere, and what is not for users by a program, not
// by tests alone.
func TestUsed(t *testing.T) {
	atRoot(t)
	read, err := readTree(".")
	if err != nil {
		t.Fatal(err)
	}
	found := read.unused()
	for _, x := range slices.Sorted(maps.Keys(found)) {
		if kept[x] == "" {
			t.Errorf("%s: %s", x, found[x])
		}
	}
	for x, why := range kept {
		if found[x] == "" {
			t.Errorf("%s is used, or is not there: it is no exception any more (%s)", x, why)
		}
	}
}

// unused are what packages export and nobody uses who should, by folder and name, and what is
// missing.
func (t *tree) unused() map[string]string {
	found := map[string]string{}
	dynamic, words := t.dynamic()
	for _, f := range t.folders {
		for _, x := range f.things() {
			if x.method && (dynamic[x.at] || words[x.word] || byOthers[x.word] != "") {
				continue
			}
			name := strings.TrimPrefix(strings.TrimPrefix(f.path, module)+"."+x.name, "/")
			switch byTests, others := t.used(x); {
			case others:
			case !byTests:
				found[name] = t.where(x.at) + " exports it, and nobody uses it"
			case !within(f.path, forUsers) && !within(f.path, forTests):
				found[name] = t.where(x.at) + " exports it, and only tests use it"
			}
		}
	}
	return found
}

// within says whether a package is one of those listed, or below one that ends in "/...".
func within(pkg string, listed []string) bool {
	return slices.ContainsFunc(listed, func(l string) bool {
		tree, below := strings.CutSuffix(l, "/...")
		return pkg == path(tree) || below && strings.HasPrefix(pkg, path(tree)+"/")
	})
}

// TestUsedRule: what the rule sees and what it leaves alone.
func TestUsedRule(t *testing.T) {
	const user = "package b\nimport \"" + module + "/a\"\n"
	for _, c := range []struct {
		what, a, b, test string // test is of package b
		want             []string
	}{
		{"a function", "func F() {}", "", "", []string{"a.F"}},
		{"one that calls itself", "func F() { F() }", "", "", []string{"a.F"}},
		{"one that its package calls", "func F() {}; func f() { F() }", "", "", nil},
		{"one that another calls", "func F() {}", "var _ = a.F", "", nil},
		{"one that tests call", "func F() {}", "", "var _ = a.F", []string{"a.F"}},
		{"one of the same name", "func F() {}", "func F() {}; var _ = F", "", []string{"a.F"}},
		{"a generic one", "func F[T any](T) {}; func G[T any](T) {}", "func f() { a.F(1) }", "",
			[]string{"a.G"}},
		{"a type", "type T int; func (T) String() string { return \"\" }", "", "",
			[]string{"a.T"}},
		{"one that has a value", "type T int; var v T", "", "", nil},
		{"a method", "type T int; func (T) M() {}; func (*T) N() {}",
			"func f() { new(a.T).N() }", "", []string{"a.T.M"}},
		{"one that an interface has",
			"type T int; func (T) M() {}; func (T) N() {}; type I interface { M(); O() }; " +
				"type J interface { N() }; var _ I; var _ J; var _ T", "", "",
			[]string{"a.T.M"}},
		{"one of what is embedded", "type t int; func (t) M() {}; type U struct { t }; var _ U; " +
			"type I interface { M() }; var _ I", "", "", nil},
		{"one that is asked for", "type T int; func (T) M() {}; var _ T",
			"func f(x any) { x.(interface{ M() }).M() }", "", nil},
		{"one of a value of others", "type T int; func (T) M() {}; var _ T",
			"import \"x\"\nfunc f() { x.New().M() }", "", nil},
		{"a function of others", "func F() {}", "import \"x\"\nvar _ = x.F", "",
			[]string{"a.F"}},
		{"a constant and a variable", "const C = 1; var V, W int", "var _ = a.W", "",
			[]string{"a.C", "a.V"}},
	} {
		head := user
		if !strings.Contains(c.b, "a.") {
			head = "package b\n"
		}
		found := planted(t, map[string]string{"a/a.go": "package a\n" + c.a, "b/b.go": head + c.b,
			"b/b_test.go": strings.Replace(user, "b\n", "b_test\n", 1) + c.test}).unused()
		delete(found, "b.F")
		got := slices.Sorted(maps.Keys(found))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	shown := map[string]string{"nn/nn.go": "package nn\nfunc F() {}; func G() {}",
		"nn/nn_test.go":            "package nn\nvar _ = F",
		"internal/test/trial/x.go": "package trial\nfunc F() {}"}
	got := slices.Sorted(maps.Keys(planted(t, shown).unused()))
	if want := []string{"internal/test/trial.F", "nn.G"}; !slices.Equal(got, want) {
		t.Errorf("for users and tests: %q, want %q", got, want)
	}
}

// planted is a module of files.
func planted(t *testing.T, files map[string]string) *tree {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	return read
}
