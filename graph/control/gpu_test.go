//go:build linux && amd64 && !nocuda

package control_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	"github.com/gomem/gomem/planner"
)

// stepped is what two steps of the network of a scan give on a device, within the least memory.
func stepped(t *testing.T, device string, policy planner.Policy) (losses [][]byte) {
	t.Helper()
	r := newRecurrent(6)
	w := r.g.Variable("weights", f32(9, 5), graph.Init{Dist: graph.Normal, Scale: 0.4})
	r.w = w
	r.scanned(control.Options{})
	loss := ops.Mean(ops.Square(r.ys))
	ops.SGD(w, autodiff.Grad(loss, w)[0], ops.Full(r.g, f32(), 0.5))
	target := gomem.Training(r.g, loss)
	o := gomem.Options{Policy: policy, Partition: 2, Device: device, Seed: 5}
	least, err := gomem.MinDevice(t.Context(), r.g, o, target)
	if err != nil {
		t.Fatal(err)
	}
	o.DeviceBytes = least
	s, err := gomem.Compile(t.Context(), r.g, o, target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	feeds := gomem.Feeds{}
	for k, n := range r.g.Inputs() {
		x := tensor.New(n.Out[0])
		for i := range x.F32() {
			x.F32()[i] = float32((7*i+k)%11)/6 - 1
		}
		feeds[n.Value(0)] = x
	}
	delete(feeds, r.g.Inputs()[0].Value(0)) // the weights are a variable
	for range 3 {
		out, err := s.Step(t.Context(), target.Name, feeds)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, bytes.Clone(out[0].Data))
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			t.Errorf("%s: %d bytes of %s are used, %d were predicted", policy, u.Actual, u.Space,
				u.Predicted)
		}
	}
	return losses
}

// TestOnGPU: a scan with its gradient comes to the processor's losses on an emulated GPU, up to
// rounding, and to the same bits under every policy.
func TestOnGPU(t *testing.T) {
	dir := emu.Dir(t)
	if dir == "" {
		return
	}
	t.Setenv("GOMEM_CUDA_PATH", dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	want := stepped(t, gomem.CPU, planner.Thesis)
	thesis := stepped(t, gomem.CUDA, planner.Thesis)
	auto := stepped(t, gomem.CUDA, planner.Auto)
	for i := range want {
		near(t, "loss", thesis[i], want[i], 1e-5)
		if !bytes.Equal(thesis[i], auto[i]) {
			t.Errorf("step %d: policies differ", i)
		}
	}
}
