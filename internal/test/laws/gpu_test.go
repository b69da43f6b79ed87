//go:build linux && amd64 && !nocuda

package laws_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// emulated has sessions find an emulated GPU.
func emulated(t testing.TB) {
	t.Helper()
	if dir := emu.Dir(t); dir != "" {
		t.Setenv("GOMEM_CUDA_PATH", dir)
		t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	}
}

// TestShareGPUs: processes of a machine have its GPUs in turn, and where none is found, the name
// by which Open says why.
func TestShareGPUs(t *testing.T) {
	emulated(t)
	for _, c := range []struct {
		gpus, process int
		want          string
	}{{1, 0, "cuda"}, {1, 3, "cuda"}, {2, 0, "cuda"}, {2, 1, "cuda:1"}, {2, 2, "cuda"},
		{3, 5, "cuda:2"}, {0, 1, "cuda"}} {
		t.Setenv("EMU_COUNT", strconv.Itoa(c.gpus))
		if got := gomem.ShareGPUs(c.process); got != c.want {
			t.Errorf("process %d, %d GPUs: %s, want %s", c.process, c.gpus, got, c.want)
		}
	}
	t.Setenv("EMU_VERSION", "11080")
	if got := gomem.ShareGPUs(1); got != gomem.CUDA {
		t.Errorf("with an old driver: %s", got)
	}
}

// perceptron is a network of some layers.
func perceptron() *nn.Model {
	const batch = 8
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, batch, 20), m.Input("y", graph.I32, batch)
	net := func(c *nn.Ctx) graph.Value {
		h := x
		for _, name := range []string{"a", "b", "c"} {
			h = nn.Relu(nn.Linear(c.In(name), h, 24))
		}
		return nn.Linear(c.In("out"), h, 5)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), y), nn.Adam{})
	logits := net(m.Evaluation())
	m.Evaluate(nn.CrossEntropy(logits, y), nn.Accuracy(logits, y))
	return m
}

// learnt is the losses of some steps of a model, and its variables after them.
func learnt(m *nn.Model, o gomem.Options, n int) ([]float32, []gomem.Tensor, error) {
	o.Seed = 3
	s, err := gomem.Compile(context.Background(), m.Graph, o, train.Targets(m)...)
	if err != nil {
		return nil, nil, err
	}
	return stepOnGPU(s, m, n)
}

// stepOnGPU runs a session of a model, and closes it. Variables that are divided are not among all.
func stepOnGPU(s *gomem.Session, m *nn.Model, n int) (losses []float32, all []gomem.Tensor,
	err error) {
	defer func() { err = errors.Join(err, s.Close()) }()
	return openOnGPU(s, m, n)
}

// openOnGPU runs a session of a model, and leaves it open.
func openOnGPU(s *gomem.Session, m *nn.Model, n int) (losses []float32, all []gomem.Tensor,
	err error) {
	feeds := gomem.Feeds{m.LearningRate: gomem.Scalar(0.01)}
	for _, v := range []graph.Value{m.Seed, m.Step} {
		feeds[v] = gomem.NewTensor(v.Type())
	}
	for _, n := range m.Graph.Inputs() {
		if v := n.Value(0); !feeds[v].Type.Equal(v.Type()) {
			feeds[v] = example(v.Type())
		}
	}
	for step := range n {
		feeds[m.Seed] = gomem.Pair(3, int32(step))
		feeds[m.Step] = gomem.Scalar(float32(step + 1))
		for _, objective := range m.Objectives {
			out, err := s.Step(context.Background(), objective.Name, feeds)
			if err != nil {
				return nil, nil, err
			}
			losses = append(losses, out[0].F32()[0])
		}
	}
	for _, v := range s.Variables() {
		x, err := s.Get(v)
		if errors.Is(err, gomem.ErrApart) {
			continue
		} else if err != nil {
			return nil, nil, err
		}
		all = append(all, x)
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted || u.Actual == 0 {
			return nil, nil, errors.New(u.Space + " is used otherwise than predicted")
		}
	}
	return losses, all, nil
}

// example is numbers around zero, or small indices.
func example(ty graph.Type) gomem.Tensor {
	x := gomem.NewTensor(ty)
	for i := range ty.Elems() {
		if ty.DType == tensor.F32 {
			x.F32()[i] = float32((i*7+3)%11)/5 - 1
		} else if ty.DType == tensor.I32 {
			x.I32()[i] = int32(i % 5)
		}
	}
	return x
}

// TestPerceptronOnGPU: ten steps on an emulated GPU come to what the processor comes to, up
// to rounding, and to the same bits under every policy, in any order of threads and with
// any pauses.
func TestPerceptronOnGPU(t *testing.T) {
	longtest.Skip(t)
	emulated(t)
	want, weights, err := learnt(perceptron(), gomem.Options{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if want[9] > want[0]*0.9 {
		t.Errorf("losses %v: nothing is learnt", want)
	}
	var first []float32
	for _, c := range []struct{ order, jitter string }{{"0", "0"}, {"1", "300"}, {"2", "30"}} {
		t.Setenv("EMU_ORDER", c.order)
		t.Setenv("EMU_JITTER_US", c.jitter)
		for _, o := range []gomem.Options{{}, {NoCUDAGraphs: true}, {Partition: 2},
			{NoFusion: true}, {Policy: planner.Auto, DeviceBytes: cuda.Workspace + 12000},
			{Partition: 3, Streams: 2}} {
			o.Device, o.Threads = gomem.CUDA, 1
			got, all, err := learnt(perceptron(), o, 10)
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			if first == nil {
				first = got
				for i, x := range all {
					near(t, x.F32(), weights[i].F32(), 1e-4)
				}
			}
			near(t, got, want, 1e-5)
			for i := range got {
				if got[i] != first[i] {
					t.Fatalf("%+v: loss %d is %v, %v at first", o, i, got[i], first[i])
				}
			}
		}
	}
}

// TestTF32OnGPU: with TF32 steps come to other bits than without, close by, and to the same
// under every policy.
func TestTF32OnGPU(t *testing.T) {
	emulated(t)
	exact, _, err := learnt(perceptron(), gomem.Options{Device: gomem.CUDA, Threads: 1}, 5)
	if err != nil {
		t.Fatal(err)
	}
	var first []float32
	for _, o := range []gomem.Options{{}, {Partition: 2}, {NoFusion: true},
		{Policy: planner.Vanilla}} {
		o.Device, o.Threads, o.Precision = gomem.CUDA, 1, precision.TF32
		got, _, err := learnt(perceptron(), o, 5)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if first == nil {
			first = got
			near(t, got, exact, 2e-3)
		}
		if slices.Equal(got, exact) || !slices.Equal(got, first) {
			t.Errorf("%+v: losses %v, %v at first and %v in f32", o, got, first, exact)
		}
	}
}

// TestBF16OnGPU: steps in bfloat16 come near to the processor's, which multiplies the same numbers
// in another order before it rounds, and to the same bits under every policy.
func TestBF16OnGPU(t *testing.T) {
	emulated(t)
	want, _, err := learnt(perceptron(), gomem.Options{Precision: precision.BF16}, 5)
	if err != nil {
		t.Fatal(err)
	}
	var first []float32
	for _, o := range []gomem.Options{{}, {Partition: 2}, {NoFusion: true},
		{Policy: planner.Vanilla}} {
		o.Device, o.Threads, o.Precision = gomem.CUDA, 1, precision.BF16
		got, _, err := learnt(perceptron(), o, 5)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		if first == nil {
			first = got
			near(t, got, want, 1e-2)
		}
		if !slices.Equal(got, first) {
			t.Errorf("%+v: losses %v, %v at first", o, got, first)
		}
	}
}

// near reports numbers that differ by more than a part of their size.
func near(t *testing.T, got, want []float32, part float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= part*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// TestGPUOptions: what a GPU cannot be asked for is refused.
func TestGPUOptions(t *testing.T) {
	for device, want := range map[string]int{"cuda": 0, "cuda:0": 0, "cuda:3": 3, "cuda:": -1,
		"cuda:-1": -1, "cuda:x": -1, "cpu": -1, "cuda:99999": -1, "CUDA": -1} {
		if n, ok := gomem.GPU(device); ok != (want >= 0) || ok && n != want {
			t.Errorf("%s is GPU %d, %v", device, n, ok)
		}
	}
	for text, o := range map[string]gomem.Options{
		"speed of its copies":          {Device: "cuda", CopyBytesPerSecond: 1},
		"matrix products":              {Device: "cuda", DeviceBytes: 1 << 20},
		"unknown device":               {Device: "cuda:x"},
		"want device cuda":             {Precision: precision.TF32},
		"no CUDA graphs to do without": {Device: gomem.Null, NoCUDAGraphs: true},
		"compiles no chains":           {Device: gomem.CPU, InterpretChains: true},
		"unknown precision":            {Precision: "f8"},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	o := gomem.Options{Device: "cuda", DeviceBytes: 100 << 20, Streams: 2}
	if p := o.Planning(); p.DeviceBytes != 36<<20 || o.With(p).DeviceBytes != o.DeviceBytes {
		t.Errorf("plans have %d bytes, and back that is %d", p.DeviceBytes,
			o.With(p).DeviceBytes)
	}
}

// TestNoGPU: without a driver, and with too little memory, a session is refused in one line.
func TestNoGPU(t *testing.T) {
	emulated(t)
	t.Setenv("EMU_MEM", "1048576")
	_, _, err := learnt(perceptron(), gomem.Options{Device: gomem.CUDA}, 1)
	if e, ok := errors.AsType[*gomem.ErrGPUMemory](err); !ok || e.Bytes != cuda.Workspace ||
		e.GPU == "" || e.Free > e.Total || e.Total != 1<<20 ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("with a MiB: %v", err)
	}
	if made := (&gomem.ErrGPUMemory{GPU: "H1", Bytes: 3, Free: 1, Total: 2}).Error(); made !=
		"H1 has 1 of 2 bytes free, and 3 are needed" {
		t.Error(made)
	}
	_, _, err = learnt(perceptron(), gomem.Options{Device: "cuda:1"}, 1)
	if err == nil || !strings.Contains(err.Error(), "no GPU 1: the machine has 1") {
		t.Errorf("with a GPU that is not there: %v", err)
	}
}

// TestLibrariesTakeMemory: what a context and libraries take themselves is missing when a session
// is opened, and before what plans take, rather than in a step. One after the other there are, in
// MiB, a context (1), cuDNN's handle to ask with (1), the stream's workspace (32), its handles of
// cuBLAS and of cuDNN (1 each), what cuBLAS loads for the first product (2), and the plan's memory,
// which is more than the KiB that the GPU has beside so many MiB.
func TestLibrariesTakeMemory(t *testing.T) {
	emulated(t)
	for name, value := range map[string]string{"CONTEXT": "1048576", "HANDLE": "1048576",
		"FIRST": "2097152"} {
		t.Setenv("EMU_"+name, value)
	}
	for mebibytes, want := range map[int]string{0: "too little free for a context",
		1: "CUDNN_STATUS_NOT_INITIALIZED", 33: "32.0 MiB are needed",
		34: "CUBLAS_STATUS_NOT_INITIALIZED", 35: "CUDNN_STATUS_NOT_INITIALIZED",
		36: "CUBLAS_STATUS_ALLOC_FAILED", 38: "are needed", 39: ""} {
		t.Setenv("EMU_MEM", fmt.Sprint(mebibytes<<20+1<<10))
		_, _, err := learnt(perceptron(), gomem.Options{Device: gomem.CUDA}, 1)
		e, ok := errors.AsType[*gomem.ErrGPUMemory](err)
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%d MiB: %v", mebibytes, err)
			}
		case !ok || e.Total != int64(mebibytes)<<20+1<<10 || strings.Contains(err.Error(), "\n") ||
			!strings.Contains(err.Error(), want):
			t.Errorf("%d MiB: %v, want %s", mebibytes, err, want)
		}
	}
}

// TestWrongProduct: where the library loses terms of a product of the plans, there is no session.
func TestWrongProduct(t *testing.T) {
	emulated(t)
	t.Setenv("EMU_LOSES", "20")
	_, _, err := learnt(perceptron(), gomem.Options{Device: gomem.CUDA}, 1)
	if e, ok := errors.AsType[*cuda.ProductError](err); !ok || e.Err.Want != 20 || e.Err.Got != 16 {
		t.Errorf("a library that loses terms: %v", err)
	}
}

// TestUnpinned: where the host's memory cannot be pinned, or a part of it, copies are slow and bits
// are the same.
func TestUnpinned(t *testing.T) {
	emulated(t)
	o := gomem.Options{Device: gomem.CUDA, Threads: 1, Partition: 2, Seed: 3}
	want, _, err := learnt(perceptron(), o, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("EMU_JITTER_US", "200")
	t.Setenv("EMU_PINS", fmt.Sprint(1<<20)) // what copies go through then
	got, _, err := learnt(perceptron(), o, 8)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v: want %v", got, err, want)
	}
	t.Setenv("EMU_PINS", fmt.Sprint(1<<19))
	if _, _, err = learnt(perceptron(), o, 8); err == nil ||
		!strings.Contains(err.Error(), "cannot be pinned") || strings.Contains(err.Error(), "\n") {
		t.Errorf("nothing to copy through: %v", err)
	}
}

// TestMissingWaitIsCaught: a plan that lacks one wait, for the first copy of a variable to
// the device, computes something else within some steps, since streams pause at random; also where
// its launches are replayed as graphs, in which nothing waits.
func TestMissingWaitIsCaught(t *testing.T) {
	emulated(t)
	t.Setenv("EMU_JITTER_US", "2000")
	o := gomem.Options{Device: gomem.CUDA, Threads: 1, Partition: 2, Seed: 3}
	want, _, err := learnt(perceptron(), o, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, o.NoCUDAGraphs = range []bool{false, true} {
		caught := false
		for seed := 1; seed <= 5 && !caught; seed++ {
			t.Setenv("EMU_SEED", strconv.Itoa(seed))
			m := perceptron()
			p, err := gomem.Plan(context.Background(), m.Graph, o, train.Targets(m)...)
			if err != nil {
				t.Fatal(err)
			}
			forget(t, p.Results[0].Plan)
			s, err := gomem.Open(p, o)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := stepOnGPU(s, m, 8)
			caught = err != nil || !slices.Equal(got, want)
		}
		if !caught {
			t.Errorf("a missing wait makes no difference, one by one %v", o.NoCUDAGraphs)
		}
	}
}

// forget removes the wait of the first launch that waits for a copy to the device.
func forget(t *testing.T, p *plan.Plan) {
	t.Helper()
	for i, s := range p.Steps {
		if _, ok := s.Do.(plan.Launch); !ok {
			continue
		}
		for k, w := range s.Wait {
			if p.Streams[p.Steps[w].Stream].Engine == space.CopyIn {
				p.Steps[i].Wait = slices.Delete(slices.Clone(s.Wait), k, k+1)
				return
			}
		}
	}
	t.Fatal("no launch waits for a copy")
}
