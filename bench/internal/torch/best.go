package torch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"
)

// Library is one of linear algebra that PyTorch has loaded.
type Library struct {
	Path     string
	Parallel int // whose threads OpenBLAS uses
}

// openMP is the Parallel of an OpenBLAS that uses OpenMP's threads.
const openMP = 2

// AtItsBest refuses a PyTorch whose products are several times slower than they
// need be: a ratio to it would say nothing. One that loads no library of linear
// algebra has its own.
func AtItsBest(blas []Library) error {
	if len(blas) == 0 || slices.ContainsFunc(blas, func(l Library) bool {
		return l.Parallel == openMP
	}) {
		return nil
	}
	return fmt.Errorf("PyTorch multiplies with %s, which is slower by far than OpenBLAS's build "+
		"with OpenMP: `apt-get install libopenblas0-openmp` provides that on Debian", blas[0].Path)
}

// Environment is that in which PyTorch is at its best: the widest vectors, no
// choice of OpenBLAS's kernels by variable, the build of OpenBLAS that shares
// OpenMP's threads, and freed memory that is kept rather than returned to the
// system and cleared again.
func Environment(env []string, threads int) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "OPENBLAS_") || strings.HasPrefix(v, "OMP_") ||
			strings.HasPrefix(v, "LD_LIBRARY_PATH=")
	})
	path := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	if builds, err := filepath.Glob("/usr/lib/*-linux-gnu/openblas-openmp"); err == nil {
		path = append(builds, path...)
	}
	if len(path) > 0 {
		env = append(env, "LD_LIBRARY_PATH="+strings.Join(path, string(filepath.ListSeparator)))
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ {
		env = append(env, "ATEN_CPU_CAPABILITY=avx512")
	}
	return append(env,
		fmt.Sprint("OMP_NUM_THREADS=", threads), fmt.Sprint("OPENBLAS_NUM_THREADS=", threads),
		"MALLOC_MMAP_THRESHOLD_=4294967296", "MALLOC_TRIM_THRESHOLD_=17179869184",
		"MALLOC_TOP_PAD_=67108864")
}
