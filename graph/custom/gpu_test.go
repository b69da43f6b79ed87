//go:build linux && amd64 && !nocuda

package custom_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/custom"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/planner"
)

// drift is x·Rate plus the neighbour that is Step further on, around the end. It takes two
// launches, scratch, shared memory, and arguments of every kind.
type drift struct {
	Rate float32
	Step int32
}

func (drift) Name() string { return "drift" }

func (drift) Infer(in []graph.Type) ([]graph.Type, error) {
	if len(in) != 1 || in[0].DType != graph.F32 {
		return nil, errors.New("want one operand of f32")
	}
	return in[:1:1], nil
}

func (drift) Cost(in, _ []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 4 * in[0].Bytes(), Scratch: in[0].Bytes()}
}

func (drift) VJP(*graph.Node, []graph.Value) []graph.Value { return []graph.Value{{}} }

func driftCPU(o drift, c *custom.Call) error {
	x, y := c.In[0].F32(), c.Out[0].F32()
	c.For(len(y), 1<<12, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = float32(x[i]*o.Rate) + x[(i+int(o.Step))%len(x)]
		}
	})
	return nil
}

const driftGPU = `
extern "C" __global__ void drift_scale(float *y, const float *x, float rate, i64 n) {
	EACH(i, n) y[i] = x[i] * rate;
}

extern "C" __global__ void drift_add(float *y, const float *scaled, const float *x, int step,
		unsigned n) {
	DYNAMIC_SHARED(float, part);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, last = blockDim.x - 1;
	part[last - threadIdx.x] = i < n ? scaled[i] : 0;
	__syncthreads();
	if (i < n) y[i] = part[last - threadIdx.x] + x[(i + step) % n];
}
`

func launchDrift(o drift, c *custom.GPUCall) ([]custom.Launch, error) {
	n := c.In[0].Type.Elems()
	grid, block := [3]uint32{uint32((n + 63) / 64), 1, 1}, [3]uint32{64, 1, 1}
	return []custom.Launch{
		{Kernel: "drift_scale", Grid: grid, Block: block,
			Args: []any{c.Scratch, c.In[0], o.Rate, int64(n)}},
		{Kernel: "drift_add", Grid: grid, Block: block, Shared: 64 * 4,
			Args: []any{c.Out[0], c.Scratch, c.In[0], o.Step, uint32(n)}},
	}, nil
}

func init() {
	custom.Register(driftCPU)
	custom.RegisterGPU(driftGPU, launchDrift)
}

// TestOnGPU: the text of operations compiles with that of this module, and a session on an
// emulated GPU, under several policies, has the results of one on the host: to the bit where
// both only multiply and add, and within rounding for a hyperbolic tangent.
func TestOnGPU(t *testing.T) {
	longtest.Skip(t)
	if dir := emu.Dir(t); dir != "" {
		t.Setenv("GOMEM_CUDA_PATH", dir)
		t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	}
	want := results(t, gomem.Options{Threads: 1})
	for _, policy := range []planner.Policy{planner.Vanilla, planner.Thesis, planner.Auto} {
		got := results(t, gomem.Options{Device: gomem.CUDA, Threads: 1, Policy: policy})
		if !slices.Equal(got[0], want[0]) {
			t.Errorf("%s: drift is %v, want %v", policy, got[0], want[0])
		}
		for i, w := range want[1] {
			if d := math.Abs(float64(got[1][i] - w)); !(d <= 1e-6*(1+math.Abs(float64(w)))) {
				t.Fatalf("%s: element %d of lisht is %g, want %g", policy, i, got[1][i], w)
			}
		}
	}
}

// results are what the operations make of numbers.
func results(t *testing.T, o gomem.Options) (list [][]float32) {
	t.Helper()
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 3, 111))
	fetches := []graph.Value{graph.Apply(drift{0.3, 5}, x).Value(0), LiSHT(x)}
	s, err := gomem.Compile(context.Background(), g, o, gomem.Evaluation(fetches...))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in := gomem.NewTensor(x.Type())
	for i := range in.F32() {
		in.F32()[i] = float32(i%19)/3 - 3
	}
	out, err := s.Step(context.Background(), "eval", gomem.Feeds{x: in})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range out {
		list = append(list, slices.Clone(v.F32()))
	}
	return list
}
