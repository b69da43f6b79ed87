//go:build linux && amd64 && !nocuda

package cuda_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda"
	kernels "github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan/space"
)

// written is a task that doubles a number and adds x, by a kernel of the source, or adds x by the
// one that is written for it.
func (r *rig) written(y device.Operand, x float32, text string) device.Task {
	r.t.Helper()
	return r.writtenAs(y, x, "test_written", text)
}

// writtenAs is one whose kernel has a name.
func (r *rig) writtenAs(y device.Operand, x float32, name, text string) device.Task {
	r.t.Helper()
	do := func(c *kernels.Call) ([]kernels.Command, error) {
		one := [3]uint32{1, 1, 1}
		return []kernels.Command{kernels.Kernel{Name: "test_more", Grid: one, Block: one,
			Args:    kernels.Add(kernels.Add(nil, c.In[0].Addr), x),
			Written: &kernels.Written{Name: name, Text: text}}}, nil
	}
	task, err := r.Launch(device.Launch{Engine: space.Compute, Name: "as " + name, What: "test",
		Op: commands{&do}, In: []device.Operand{y}})
	if err != nil {
		r.t.Fatal(err)
	}
	return task
}

const writtenText = `extern "C" __global__ void test_written(float *y, float x) { y[0] += x; }`

// TestWritten: a launch is of the kernel that was written for it once that is compiled, also in a
// graph; what is compiled is kept, and not compiled where kernels are not wanted.
func TestWritten(t *testing.T) {
	longtest.Skip(t)
	cache := t.TempDir()
	for _, c := range []struct {
		interpret bool
		want      float32
		files     int
	}{{true, 2*(2*(2*(2*1+3)+3)+3) + 3, 1}, {false, 2*1 + 3 + 3*3, 2}, {false, 14, 2}} {
		r, _ := replaying(t, func(o *cuda.Options) { o.Cache, o.Interpret = cache, c.interpret })
		y := f32(r.near, 256, 1)
		r.write(y, []float32{1})
		task := r.written(y, 3, writtenText)
		run := func(tasks ...device.Task) {
			r.compute.Run(tasks...)
			if err := r.compute.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		run(task)
		if err := r.Compile(); err != nil {
			t.Fatal(err)
		}
		run(task)
		other := r.written(y, 3, writtenText) // its kernel is there
		if err := r.Compile(); err != nil {
			t.Fatal(err)
		}
		run(other, task)
		if got := r.read(y)[0]; got != c.want {
			t.Errorf("interpreted %v: %v, want %v", c.interpret, got, c.want)
		}
		if files, err := filepath.Glob(filepath.Join(cache, "*")); len(files) != c.files {
			t.Errorf("%d files, want %d: %v", len(files), c.files, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWrittenBadly: a kernel that does not compile is an error that says what does without, and
// which it is.
func TestWrittenBadly(t *testing.T) {
	r, _ := replaying(t, nil)
	r.written(f32(r.near, 256, 1), 3, writtenText)
	r.writtenAs(f32(r.near, 256, 1), 3, "worse", "no kernel")
	if err := r.Compile(); err == nil || !strings.Contains(err.Error(),
		"the kernel worse of the chain as worse (test), which can be interpreted") {
		t.Error(err)
	}
}
