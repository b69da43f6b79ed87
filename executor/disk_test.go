package executor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomem/gomem/executor"
	"github.com/gomem/gomem/executor/trace"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device/cpu"
	"github.com/gomem/gomem/plan"
)

// onDisk is a plan with a variable on a disk, which is updated on the device, and one
// in host memory, which is updated there when the first has been read.
const onDisk = `plan by hand
graph DIGEST
parts 1
space device 208 of 208 align 64
space host 272 of 272 align 64
space disk 16 of 16 align 64
stream compute0 runs in device
stream in copies host to device
stream out copies device to host
stream host runs in host
stream load copies disk to host
stream store copies host to disk
slot 0 disk+0 16 fixed f32[4] : v0
slot 1 host+0 16 fixed f32[4] : v1
slot 2 host+64 16 0-4 f32[4] : x
slot 3 host+128 16 0-6 f32[4] : v0
slot 4 device+0 16 2-5 f32[4] : v0
slot 5 device+64 16 3-7 f32[4] : x
slot 6 device+192 16 7-8 f32[4] : affine
slot 7 host+256 16 8-8 f32[4] : affine
feed #0 2 : x
variable #1 0 : v0
variable #2 1 : v1
step 0 p0 load #1 copy 3 <- 0 16 stage : v0
step 1 p0 host #4 launch bump <- 1 2 mutates 1 wait 0 : bump
step 2 p0 in #1 copy 4 <- 3 16 stage wait 0 : v0
step 3 p0 in #0 copy 5 <- 2 16 feed : x
step 4 p0 compute0 #5 launch bump <- 4 5 mutates 1 wait 3 : bump_2
step 5 p0 out #1 copy 3 <- 4 16 write-back wait 2 4 : v0
step 6 p0 store #1 copy 0 <- 3 16 write-back wait 5 : v0
step 7 p0 compute0 #3 launch affine 6 <- 5 : affine
step 8 p0 out #3 copy 7 <- 6 16 fetch wait 7 : affine
fetch 7 f32[4] : affine
end 8 9 1
`

// newDeep runs that plan on a device with a disk.
func newDeep(t *testing.T, listen trace.Listener) *trainer {
	t.Helper()
	g := graph.New()
	ty := tensor.Of(graph.F32, 4)
	x := g.Input("x", ty)
	v0, v1 := g.Variable("v0", ty, graph.Init{}), g.Variable("v1", ty, graph.Init{})
	y := g.Apply(affine{N: 7}, x)
	u1 := g.Update(bump{N: 8}, []graph.Value{v1}, x)
	u0 := g.Update(bump{N: 9}, []graph.Value{v0}, x)
	return byHand(t, cpu.Options{DiskDir: t.TempDir(), Listener: listen}, onDisk, g, y, u0, u1)
}

// TestDisk: a variable on a disk is trained as one in memory is, and the peak of
// every space is the one predicted.
func TestDisk(t *testing.T) {
	r := newDeep(t, nil)
	zero := map[string][]byte{"v0": make([]byte, 16), "v1": make([]byte, 16)}
	r.set(t, zero)
	for range 5 {
		if _, err := r.step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	five := tensor.FromF32([]float32{5, 10, 15, 20}, 4).Data
	r.mustEqual(t, map[string][]byte{"v0": five, "v1": five})
	if want := []int64{208, 272, 16}; !slices.Equal(r.exec.Peak(), want) {
		t.Errorf("peaks are %v, want %v", r.exec.Peak(), want)
	}
}

// TestDiskCut: when the file is cut, the step fails with its name; what was not on the
// disk is as it was, unless it is named as torn.
func TestDiskCut(t *testing.T) {
	r := newDeep(t, nil)
	before, _ := r.baseline(t)
	if err := cut(); err != nil {
		t.Skip(err)
	}
	for range 3 {
		_, err := r.step(context.Background())
		run, ok := errors.AsType[*executor.RunError](err)
		pe, named := errors.AsType[*plan.Error](err)
		if !ok || !named || pe.Step != 0 || len(run.Torn) > 0 ||
			!errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), ".disk") {
			t.Fatalf("error is %v: %+v", err, run)
		}
		got := make([]byte, 16)
		if err := r.exec.Read(r.plan.Variables[1], got); err != nil ||
			!bytes.Equal(got, before["v1"]) {
			t.Errorf("the variable in host memory is %v, %v", got, err)
		}
		if err := r.exec.Read(r.plan.Variables[0], got); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the variable on the disk is read: %v", err)
		}
	}
}

// TestDiskFailsAtTheEnd: when a variable cannot go back to the disk, it is torn, and
// so is what was updated before.
func TestDiskFailsAtTheEnd(t *testing.T) {
	var wrong atomic.Pointer[error]
	var armed, updated atomic.Bool
	r := newDeep(t, func(e trace.Event) {
		switch {
		case e.Step == 1: // it runs beside the others, and may not have begun yet
			updated.Store(true)
		case e.Step == 5 && armed.Load():
			err := cut()
			wrong.Store(&err)
		}
	})
	r.baseline(t)
	updated.Store(false)
	armed.Store(true)
	_, err := r.step(context.Background())
	if cutErr := *wrong.Load(); cutErr != nil {
		t.Skip(cutErr)
	}
	torn := []string{"v0"}
	if updated.Load() {
		torn = append(torn, "v1")
	}
	run, ok := errors.AsType[*executor.RunError](err)
	pe, named := errors.AsType[*plan.Error](err)
	if !ok || !named || pe.Step != 6 || !slices.Equal(run.Torn, torn) {
		t.Errorf("error is %v: %+v", err, run)
	}
}

// cut cuts the files that are open under a disk's name.
func cut() error {
	fds, _ := filepath.Glob("/proc/self/fd/*")
	err := errors.New("this system does not say what files are open")
	for _, fd := range fds {
		if name, linkErr := os.Readlink(fd); linkErr == nil && strings.Contains(name, ".disk") {
			err = os.Truncate(fd, 8)
		}
	}
	return err
}
