//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/longtest"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/kernels.txt anew")

// gpu is what a multiprocessor of a compute capability has, as NVIDIA's programming guide says.
type gpu struct {
	capability, threads, blocks int
	shared, reserved            int // bytes of shared memory, and those that a block takes besides
}

// gpus are those that kernels are compiled for. The first one has its table in testdata.
var gpus = []gpu{
	{90, 2048, 32, 228 << 10, 1 << 10}, {75, 1024, 16, 64 << 10, 0},
	{80, 2048, 32, 164 << 10, 1 << 10}, {86, 1536, 16, 100 << 10, 1 << 10},
	{89, 1536, 24, 100 << 10, 1 << 10}, {100, 2048, 32, 228 << 10, 1 << 10},
	{120, 1536, 24, 100 << 10, 1 << 10}, {70, 2048, 32, 96 << 10, 0},
}

// usage is what a kernel takes: registers, local memory and what of registers went there of a
// thread, static shared memory of a block. Memory is in bytes. Products are instructions of tensor
// cores in its text.
type usage struct{ registers, local, spilled, shared, products int }

// occupancy is how many of the threads that a multiprocessor can have are there, in percent.
func (g gpu) occupancy(u usage) int {
	const block, file, unit = 256, 64 << 10, 8 // registers come to a thread in eights
	blocks := min(g.blocks, g.threads/block,
		file/(block*((u.registers+unit-1)/unit*unit)))
	if u.shared > 0 {
		blocks = min(blocks, g.shared/(u.shared+g.reserved))
	}
	return 100 * blocks * block / g.threads
}

// local says of which kernels a thread may have local memory, how much, and why.
var local = map[string]struct {
	most int
	why  string
}{
	"chain":                {176, "values by number, in a program that is data"},
	"attention_16":         {64, called},
	"attention_keys_16":    {136, called},
	"attention_queries_16": {136, called},
	"attention_values_16":  {64, called},
}

// called is why where masks and noise are functions that are called.
const called = "what calls keep, before sm_80"

// spill is the most that a kernel's registers may spill: the compiler spills a few beside a loop
// where one block more fits then.
const spill = 48

// TestRealCompiler: to NVIDIA's own compiler, wherever that is, the kernels are CUDA C++ without a
// warning, for every architecture in the long form; none takes local memory that is not meant, nor
// so many registers that a quarter of a GPU's threads does not fit; and what each takes is known.
// It needs no GPU.
func TestRealCompiler(t *testing.T) {
	longtest.Skip(t)
	for _, g := range longtest.Some(1, gpus) {
		t.Run(fmt.Sprintf("sm_%d", g.capability), func(t *testing.T) {
			compiler, err := driver.Options{}.Compiler(13000, g.capability)
			if err != nil {
				t.Skip(err)
			}
			if g.capability < 75 && compiler.Version >= "13" {
				t.Skipf("NVRTC %s knows no sm_%d", compiler.Version, g.capability)
			}
			compiler.Options = append(compiler.Options, "--ptxas-options=-v")
			if _, err := compiler.Compile(kernels.Source(), "kernels"); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(compiler.Log) {
				// that a later compiler will know an architecture no more is not about kernels
				if strings.Contains(line, "warning") && !strings.Contains(line, "deprecated") {
					t.Error(line)
				}
			}
			all := usages(t, compiler.Log)
			entry := regexp.MustCompile(
				`(?m)^extern "C" __global__ void (?:__launch_bounds__\([\d, ]+\) )?(\w+)`)
			if n := len(entry.FindAllString(kernels.Source(), -1)); n != len(all) || n < 50 {
				t.Errorf("%d kernels, %d were compiled", n, len(all))
			}
			lawful(t, g, all)
			if g == gpus[0] {
				countProducts(t, all)
				compare(t, compiler.Version, g, all)
			}
		})
	}
}

// TestRealPTX: for a GPU that NVIDIA's compiler does not know yet it makes PTX of the kernels.
func TestRealPTX(t *testing.T) {
	longtest.Skip(t)
	compiler, err := driver.Options{}.Compiler(13000, 990)
	if err != nil {
		t.Skip(err)
	}
	code, err := compiler.Compile(kernels.Source(), "kernels")
	if err != nil || !strings.Contains(string(code), ".target sm_") ||
		!strings.Contains(string(code), ".entry adam(") {
		t.Errorf("%d bytes, %v", len(code), err)
	}
}

// lawful checks what kernels take.
func lawful(t *testing.T, g gpu, all map[string]usage) {
	for name, u := range all {
		if u.spilled > spill || u.local > local[name].most+(u.spilled+7)/8*8 { // in eights
			t.Errorf("%s: %d bytes of local memory, of which %d are of spilled registers", name,
				u.local, u.spilled)
		}
		if g.occupancy(u) < 25 {
			t.Errorf("%s: %d registers, %d bytes of shared memory: %d%% of threads", name,
				u.registers, u.shared, g.occupancy(u))
		}
	}
}

// usages are what the compiler's log says of every kernel.
func usages(t *testing.T, log string) map[string]usage {
	number := func(s string) int {
		n, err := strconv.Atoi("0" + s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	each := regexp.MustCompile(`Compiling entry function '(\w+)'[^\n]*\n[^\n]*\n` +
		`[^\n]* (\d+) bytes stack frame, (\d+) bytes spill stores[^\n]*\n` +
		`[^\n]*Used (\d+) registers(?:[^\n]* (\d+) bytes smem)?`)
	all := map[string]usage{}
	for _, m := range each.FindAllStringSubmatch(log, -1) {
		all[m[1]] = usage{registers: number(m[4]), local: number(m[2]), spilled: number(m[3]),
			shared: number(m[5])}
	}
	return all
}

// countProducts counts instructions of tensor cores in the text that the compiler makes of kernels
// for a GPU that it does not know. Those of bfloat16 with many products have some, others none.
func countProducts(t *testing.T, all map[string]usage) {
	compiler, err := driver.Options{}.Compiler(13000, 990)
	if err != nil {
		t.Fatal(err)
	}
	code, err := compiler.Compile(kernels.Source(), "kernels")
	if err != nil {
		t.Fatal(err)
	}
	half := regexp.MustCompile(`^(conv_(forward|input|filter)|grouped_(product|outer)|` +
		`attention(_keys|_values|_queries)?)_16$`)
	for _, text := range strings.Split(string(code), ".entry ")[1:] {
		name, _, _ := strings.Cut(text, "(")
		u := all[name]
		u.products = strings.Count(text, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
		all[name] = u
		if half.MatchString(name) != (u.products > 0) {
			t.Errorf("%s has %d products by tensor cores", name, u.products)
		}
	}
}

// compare compares what kernels take with the table, which is of one version of the compiler.
func compare(t *testing.T, version string, g gpu, all map[string]usage) {
	const file = "testdata/kernels.txt"
	head := fmt.Sprintf("# NVRTC %s, sm_%d: what a kernel takes, and mma.sync in it\n", version,
		g.capability)
	text := head + fmt.Sprintf("%-24s %9s %6s %8s %7s %8s %4s\n", "# kernel", "registers", "local",
		"spilled", "shared", "threads", "mma")
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		u := all[name]
		text += fmt.Sprintf("%-24s %9d %6d %8d %7d %7d%% %4d\n", name, u.registers, u.local,
			u.spilled, u.shared, g.occupancy(u), u.products)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(want), head) {
		first, _, _ := strings.Cut(string(want), "\n")
		t.Skipf("NVRTC is %s, the table of another: %s", version, first)
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(text, "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Errorf("%s is %q now (-rewrite writes the table anew)", file, line)
		}
	}
}
