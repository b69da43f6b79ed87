package custom_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
	"github.com/gomem/gomem/graph/custom/opstest"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// TestLiSHT: the example is held to all that operations are held to.
func TestLiSHT(t *testing.T) {
	for _, sizes := range [][]int{{3, 17}, {}, {7, 5, 3}} {
		x := graph.Of(graph.F32, sizes...)
		opstest.Check(t, opstest.Sample{Op: lisht{}, In: []graph.Type{x}, Second: true,
			Want: func(in, out []tensor.View) {
				for i, x := range in[0].F32() {
					out[0].F32()[i] = lishtOf(x)
				}
			}})
	}
}

type (
	taken   struct{ lisht }         // has lisht's name
	builtin struct{ lisht }         // has that of graph/ops
	unnamed struct{ lisht }         // has none
	listed  struct{ Numbers []int } // is not comparable
	pointed struct{ lisht }         // is used by its address
	silent  struct{ lisht }         // has no kernel of the CPU
)

func (builtin) Name() string { return "matmul" }
func (unnamed) Name() string { return "" }
func (silent) Name() string  { return "silent" }

func (listed) Name() string                                 { return "listed" }
func (listed) Infer(in []graph.Type) ([]graph.Type, error)  { return in, nil }
func (listed) Cost(_, _ []graph.Type) graph.Cost            { return graph.Cost{} }
func (listed) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }

func nothing[O any](O, *custom.Call) error                        { return nil }
func noLaunch[O any](O, *custom.GPUCall) ([]custom.Launch, error) { return nil, nil }

// TestRefusedRegistrations: names are unique, and an operation has one kernel.
func TestRefusedRegistrations(t *testing.T) {
	for want, register := range map[string]func(){
		`custom_test.taken is called "lisht", as custom_test.lisht is`: func() {
			custom.Register(nothing[taken])
		},
		`custom_test.lisht is called "lisht", as`: func() { custom.Register(nothing[lisht]) },
		`called "matmul", as an operation of graph/ops`: func() {
			custom.Register(nothing[builtin])
		},
		"has no name":              func() { custom.Register(nothing[unnamed]) },
		"listed is no comparable":  func() { custom.Register(nothing[listed]) },
		"pointed is no comparable": func() { custom.Register(nothing[*pointed]) },
		"has no kernel of the CPU": func() { custom.RegisterGPU("", noLaunch[silent]) },
		"lisht registered twice":   func() { custom.RegisterGPU("", noLaunch[lisht]) },
	} {
		func() {
			defer func() {
				p, _ := recover().(string)
				if !strings.Contains(p, want) {
					t.Errorf("want %q, have %q", want, p)
				}
			}()
			register()
		}()
	}
}

// TestGPUCommands: what an operation is on a GPU is launches of its own text.
func TestGPUCommands(t *testing.T) {
	if !strings.Contains(cuda.Source(), lishtGPU) {
		t.Error("the text is not in the source")
	}
	x := cuda.Operand{Addr: 1 << 40, Type: graph.Of(graph.F32, 300)}
	y := cuda.Operand{Addr: 2 << 40, Type: x.Type}
	list, err := cuda.Commands(lisht{}, &cuda.Call{In: []cuda.Operand{x}, Out: []cuda.Operand{y}})
	want := cuda.Add(cuda.Add(cuda.Add(nil, y.Addr), x.Addr), int64(300))
	if k, ok := list[0].(cuda.Kernel); err != nil || len(list) != 1 || !ok || k.Name != "lisht" ||
		k.Grid[0] != 2 || string(k.Args) != string(want) {
		t.Errorf("%+v, %v", list, err)
	}
	if cuda.IsExact(lisht{}) {
		t.Error("it is said to have the host's bits")
	}
}

// TestOutside: a module outside, which can import public packages only, has an operation of its
// own that passes all checks. It needs no network. A workspace has it share what is built here.
func TestOutside(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, from := range map[string]string{"op.go": "testdata/outside/op.go.txt",
		"op_test.go": "testdata/outside/op_test.go.txt"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// Not a workspace: that would ask for modules that nobody here builds.
	const name = "github.com/gomem/gomem"
	module := "module example.com/outside\n\ngo 1.26.0\n\nrequire " + name + " v0.0.0\n\nreplace " +
		name + " => " + strconv.Quote(root) + "\n"
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": module, "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-mod=mod", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
