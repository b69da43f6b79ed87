//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda/driver"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/longtest"
)

// realChains are chains as training has them: a bias and gelu with dropout behind it, in f32 and in
// bfloat16, a residual, an operand held, powers, and noise from an odd place on.
func realChains() []*kernels.Written {
	var list []*kernels.Written
	for _, half := range []bool{false, true} {
		whole := kernels.Spread{Hold: 1, Half: half}
		row := kernels.Spread{Hold: 1, Period: 768, Half: half}
		seed := kernels.Spread{Hold: 1, Period: 1}
		for op := range 8 { // of two operands
			list = append(list, kernels.Chain{N: 1 << 20, Half: half,
				In: []kernels.Spread{whole, row, seed, whole}, Code: []kernels.Instruction{
					{Op: op, A: 0, B: 1, Rounded: half},
					{Op: 17, A: ^0, B: kernels.None, Rounded: half},
					{Op: 46, A: ^1, B: 2, Noise: true, From: uint64(op)},
					{Op: 0, A: ^2, B: 3, Rounded: half}}}.Write())
		}
		for op := 8; op < 18; op++ { // of one
			list = append(list, kernels.Chain{N: 1 << 20, Half: half, In: []kernels.Spread{whole,
				{Hold: 12, Period: 1 << 10}}, Code: []kernels.Instruction{
				{Op: op, A: 0, B: kernels.None}, {Op: 2, A: ^0, B: 1}}}.Write())
		}
		for op := 22; op < 36; op++ {
			list = append(list, kernels.Chain{N: 1 << 20, Half: half, In: []kernels.Spread{whole,
				{Hold: 5, Period: 7}}, Code: []kernels.Instruction{
				{Op: op, A: 0, B: kernels.None}, {Op: 2, A: ^0, B: 1}}}.Write())
		}
	}
	return list
}

// TestRealChains: to NVIDIA's own compiler the kernels of chains are CUDA C++ without a warning and
// without local memory, and read and write 16 bytes at a time.
func TestRealChains(t *testing.T) {
	longtest.Skip(t)
	list := realChains()
	compiler, err := driver.Options{}.Compiler(13000, 90)
	if err != nil {
		t.Skip(err)
	}
	compiler.Options = append(compiler.Options, "--ptxas-options=-v")
	if _, err := compiler.Compile(kernels.WrittenSource(list), "kernels"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(compiler.Log, "warning") {
		t.Error(compiler.Log)
	}
	all := usages(t, compiler.Log)
	if len(all) != len(list) {
		t.Errorf("%d of %d kernels were compiled", len(all), len(list))
	}
	lawful(t, gpus[0], all)
	// of a GPU that is newer than the compiler the code is text
	compiler, err = driver.Options{}.Compiler(13000, 990)
	if err != nil {
		t.Fatal(err)
	}
	ptx, err := compiler.Compile(kernels.WrittenSource(list), "kernels")
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`\sld(\.global)?\.v4\.\w32`)
	write := regexp.MustCompile(`\sst(\.global)?\.v4\.\w32`)
	for _, entry := range strings.Split(string(ptx), ".entry ")[1:] {
		if !read.MatchString(entry) || !write.MatchString(entry) {
			t.Errorf("not 16 bytes at a time: %.60q", entry)
		}
	}
}
