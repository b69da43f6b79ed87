//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/plan/space"
)

const counting = source + `
extern "C" __global__ void test_more(float *y, float x) { y[0] = 2 * y[0] + x; }
`

// more is a task that doubles a number and adds x, calls times.
func (r *rig) more(y device.Operand, calls int, x float32) device.Task {
	r.t.Helper()
	do := func(c *kernels.Call) ([]kernels.Command, error) {
		one := [3]uint32{1, 1, 1}
		k := kernels.Kernel{Name: "test_more", Grid: one, Block: one,
			Args: kernels.Add(kernels.Add(nil, c.In[0].Addr), x)}
		var all []kernels.Command
		for range calls {
			all = append(all, k)
		}
		return all, nil
	}
	task, err := r.Launch(device.Launch{Engine: space.Compute, Name: fmt.Sprint("more ", x),
		What: "test", Op: commands{&do}, In: []device.Operand{y}})
	if err != nil {
		r.t.Fatal(err)
	}
	return task
}

// replaying is a rig that replays unless it is told otherwise, and what it logs.
func replaying(t *testing.T, change func(*cuda.Options)) (*rig, *bytes.Buffer) {
	var log bytes.Buffer
	o := options(t, counting)
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if change != nil {
		change(&o)
	}
	return newRig(t, o), &log
}

// after closes the device and returns its last word of graphs.
func (r *rig) after(log *bytes.Buffer) string {
	r.t.Helper()
	if err := r.Close(); err != nil {
		r.t.Error(err)
	}
	_, text, _ := strings.Cut(log.String(), `"cuda graphs" stream=compute `)
	return strings.TrimSpace(text)
}

// TestReplay: what a stream is given again is given as a graph from the second time on, in its
// place among other tasks, and all of it has begun; a single call is not, nor are copies.
func TestReplay(t *testing.T) {
	t.Setenv("EMU_JITTER_US", "100")
	r, log := replaying(t, nil)
	y := f32(r.near, 256, 1)
	r.write(y, []float32{0})
	a, b, c := r.more(y, 1, 1), r.more(y, 2, 3), r.more(y, 1, 5)
	in, err := r.Copy(device.Copy{Engine: space.CopyIn, Name: "x", What: "stage", Step: 1,
		Dst: f32(r.near, 0, 1).Region, Src: device.Region{Mem: r.far, Bytes: 4}})
	if err != nil {
		t.Fatal(err)
	}
	want, tasks := float32(0), uint64(0)
	give := func(given ...device.Task) {
		t.Helper()
		for _, task := range given {
			tasks++
			switch task {
			case a:
				want = 2*want + 1
			case b:
				want = 2*(2*want+3) + 3
			case c:
				want = 2*want + 5
			}
		}
		r.compute.Run(given...)
		r.in.Run(in, in)
		if err := errors.Join(r.compute.Sync(), r.in.Sync()); err != nil {
			t.Fatal(err)
		}
		if got := r.read(y)[0]; got != want || r.compute.Begun() != tasks {
			t.Fatalf("%v after %d of %d tasks, want %v", got, r.compute.Begun(), tasks, want)
		}
	}
	for range 3 {
		give(a, b) // eager, captured, replayed
		give(c)    // one call: always eager
		give(b)    // the same in one task
	}
	give(a, c) // another run that begins alike: eager again
	if got := r.after(log); got != "graphs=2 replayed=4 refused=0 bytes=20480" {
		t.Error(log)
	}
}

// TestReplayAround: what looks at data is given by itself, and the log says so; what comes before
// and after it in a run is given as graphs.
func TestReplayAround(t *testing.T) {
	r, log := replaying(t, nil)
	y, n := f32(r.near, 256, 1), f32(r.near, 512, 1)
	n.Type.DType = tensor.I32
	r.write(y, []float32{0})
	do := func(c *kernels.Call) ([]kernels.Command, error) {
		return []kernels.Command{kernels.Branch{Addr: c.In[0].Addr, Type: tensor.I32,
			Lists:  [][]kernels.Command{{kernels.Fill{Addr: c.In[1].Addr, Words: 1}}},
			Choose: func(n int32) (lo, hi int, err error) { return 0, int(n), nil }}}, nil
	}
	look, err := r.Launch(device.Launch{Engine: space.Compute, Name: "loop", What: "while",
		Op: commands{&do}, In: []device.Operand{n, y}})
	if err != nil {
		t.Fatal(err)
	}
	a, b, want := r.more(y, 2, 1), r.more(y, 3, 3), float32(0)
	for i := range 4 {
		times := float32(i % 2) // of the fill
		r.write(n, []float32{times})
		r.compute.Run(a, look, b)
		if err := r.compute.Sync(); err != nil {
			t.Fatal(err)
		}
		if want = 2*(2*want+1) + 1; times > 0 {
			want = 0
		}
		if want = 2*(2*(2*want+3)+3) + 3; r.read(y)[0] != want {
			t.Fatalf("time %d: %v, want %v", i, r.read(y)[0], want)
		}
	}
	if got := r.after(log); got != "graphs=2 replayed=6 refused=0 bytes=20480" ||
		!strings.Contains(log.String(), `data says what runs" operation=while name=loop`) {
		t.Error(log)
	}
}

// TestNoReplay: where nothing can be captured, or somebody listens, the results are the same, and
// one line says why it is as slow as it is.
func TestNoReplay(t *testing.T) {
	for name, c := range map[string]struct{ refuse, memory, want string }{
		"driver": {"begin", "", "NOT_SUPPORTED"},
		"task":   {"work", "", `"more 1 (test): kernel test_more: cuLaunchKernel: CUDA_ERROR`},
		"memory": {"", fmt.Sprint(1<<20 + 1<<16 + 4096), "OUT_OF_MEMORY"},
		"trace":  {},
		"eager":  {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("EMU_CAPTURE", c.refuse)
			t.Setenv("EMU_MEM", c.memory)
			r, log := replaying(t, func(o *cuda.Options) {
				if o.Eager = name == "eager"; name == "trace" {
					o.Listener = (&trace.Recorder{}).Listen
				}
			})
			y := f32(r.near, 256, 1)
			r.write(y, []float32{0})
			a, b, want := r.more(y, 1, 1), r.more(y, 1, 3), float32(0)
			for range 4 {
				r.compute.Run(a, b)
				r.compute.Run(b, a)
				if err := r.compute.Sync(); err != nil {
					t.Fatal(err)
				}
				if want = 2*(2*(2*(2*want+1)+3)+3) + 1; r.read(y)[0] != want {
					t.Fatalf("%v, want %v", r.read(y)[0], want)
				}
			}
			last := r.after(log)
			switch n := strings.Count(log.String(), "level=WARN"); {
			case c.want == "" && (n > 0 || last != "" || name == "trace" !=
				strings.Contains(log.String(), "given one by one: a trace is told of each")):
				t.Error(log)
			case c.want != "" && (n != 1 || !strings.Contains(log.String(), c.want) ||
				last != "graphs=0 replayed=0 refused=2 bytes=0"):
				t.Error(log)
			}
		})
	}
}

// TestReplayFails: an error of a kernel in a graph is that of the last task given, in one line, and
// what comes after it is skipped; the tasks of the graph have begun.
func TestReplayFails(t *testing.T) {
	t.Setenv("EMU_FAIL", "8") // the third time, the second of three
	r, _ := replaying(t, nil)
	y := f32(r.near, 256, 1)
	a, b := r.more(y, 1, 1), r.more(y, 2, 3)
	for i := range 3 {
		r.compute.Run(a, b)
		if err := r.compute.Sync(); (err != nil) != (i == 2) {
			t.Fatalf("time %d: %v", i, err)
		}
	}
	e, ok := errors.AsType[*device.Error](r.Err())
	if !ok || e.Name != "more 3" || strings.Contains(e.Error(), "\n") ||
		!strings.Contains(e.Error(), "CUDA_ERROR_LAUNCH_FAILED") || r.compute.Begun() != 6 {
		t.Errorf("%v, %d tasks begun", r.Err(), r.compute.Begun())
	}
	r.compute.Run(a, b)
	if r.compute.Sync() == nil || r.compute.Begun() != 6 {
		t.Errorf("%d tasks begun after the error", r.compute.Begun())
	}
}
