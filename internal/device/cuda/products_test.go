//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/plan/space"
)

// TestProductsAreTried: a library that loses the end of sums of some number of terms is found out
// before the first step, and the error names the product and the library; of others nothing is
// said. The memory is zero then.
func TestProductsAreTried(t *testing.T) {
	const m, n, batch = 3, 5, 2
	for _, half := range []bool{false, true} {
		for _, k := range []int{21, 1005} {
			for _, loses := range []int{0, k} {
				t.Setenv("EMU_LOSES", fmt.Sprint(loses))
				r := newRig(t, options(t, source))
				for form := range 4 {
					launchProduct(r, kernels.Gemm{TransA: form&1 != 0, TransB: form&2 != 0, M: m,
						N: n, K: k, Alpha: 0.5, Beta: float32(form), Batch: batch, HalfIn: half,
						HalfOut: half})
				}
				tried(t, r.Try(), half, k, loses)
				data := make([]byte, 1<<20)
				if err := r.near.Read(0, data); err != nil ||
					strings.Trim(string(data), "\x00") != "" {
					t.Errorf("the memory is not zero: %v", err)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// tried looks at what is said of a product of so many terms, whose last ones are lost or not.
func tried(t *testing.T, err error, half bool, k, loses int) {
	t.Helper()
	e, wrong := errors.AsType[*cuda.ProductError](err)
	if (err != nil) != (loses > 0) || wrong != (loses > 0) {
		t.Errorf("bfloat16 %v, %d terms, the last of %d lost: %v", half, k, loses, err)
	}
	if !wrong {
		return
	}
	for _, part := range []string{fmt.Sprintf("2 times 3×5 of %d terms, ", k), "cuBLAS 13.0.0 (",
		"libcublas.so.13"} {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("%v does not say %s", e, part)
		}
	}
}

// launchProduct makes the task of a product whose operands and results are side by side.
func launchProduct(r *rig, g kernels.Gemm) {
	r.t.Helper()
	g.LdA, g.LdB, g.LdC = g.K, g.N, g.N
	if g.TransA {
		g.LdA = g.M
	}
	if g.TransB {
		g.LdB = g.K
	}
	g.StrideA, g.StrideB, g.StrideC = int64(g.M*g.K), int64(g.K*g.N), int64(g.M*g.N)
	element := tensor.F32
	if g.HalfIn {
		element = tensor.BF16
	}
	place := func(off int64, n int) device.Operand {
		ty := tensor.Of(element, n)
		return device.Operand{Region: device.Region{Mem: r.near, Off: off, Bytes: ty.Bytes()},
			Type: ty}
	}
	c := func(call *kernels.Call) ([]kernels.Command, error) {
		g.A, g.B, g.C = call.In[0].Addr, call.In[1].Addr, call.Out[0].Addr
		return []kernels.Command{g}, nil
	}
	off := int64(0)
	if g.HalfIn {
		off = 2 // as a part of a value may be
	}
	_, err := r.Launch(device.Launch{Engine: space.Compute, Name: "node", What: "test",
		Op: commands{&c}, Out: []device.Operand{place(1<<19, g.Batch*g.M*g.N)},
		In: []device.Operand{place(off, g.Batch*g.M*g.K), place(1<<18, g.Batch*g.K*g.N)}})
	if err != nil {
		r.t.Fatal(err)
	}
}
