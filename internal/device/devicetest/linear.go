package devicetest

import (
	"encoding/binary"
	"testing"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/plan/space"
)

// Source is the kernels for a GPU of the operations that the tests run.
const Source = `
extern "C" __global__ void devicetest_linear(int *y, const int *x, int a, int b, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) y[i] = (int)((unsigned)a * (unsigned)x[i] + (unsigned)b);
}
`

// linear is an operation that computes the same on every device, y = a·x + b of integers
// that wrap: of several, the order matters. Without a result it is written to the
// operand.
type linear struct{ a, b int32 }

func registerLinear() {
	kernel.Register(kernel.CPU, func(l linear, c *kernel.Call) error {
		y := c.In[0].I32()
		if len(c.Out) > 0 {
			y = c.Out[0].I32()
		}
		for i, x := range c.In[0].I32() {
			y[i] = l.a*x + l.b
		}
		return nil
	})
	cuda.Register(func(l linear, c *cuda.Call) ([]cuda.Command, error) {
		y, n := c.In[0], c.In[0].Type.Bytes()/4
		if len(c.Out) > 0 {
			y = c.Out[0]
		}
		args := cuda.Add(cuda.Add(cuda.Args{}, y.Addr), c.In[0].Addr)
		args = cuda.Add(cuda.Add(cuda.Add(args, l.a), l.b), int32(n))
		return []cuda.Command{cuda.Kernel{Name: "devicetest_linear", Args: args,
			Grid: [3]uint32{uint32(n+63) / 64, 1, 1}, Block: [3]uint32{64, 1, 1}}}, nil
	}, nil)
}

// launch makes a task of the operation, in place if x is y.
func (l linear) launch(t *testing.T, d device.Device, e space.Engine, x,
	y device.Operand) device.Task {
	t.Helper()
	c := device.Launch{Engine: e, Step: 7, Name: "node", What: "linear", Op: l,
		In: []device.Operand{x}}
	if y.Region != x.Region {
		c.Out = []device.Operand{y}
	}
	task, err := d.Launch(c)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// put writes numbers into a memory, get reads one.
func put(t *testing.T, m device.Memory, off int64, x ...int32) {
	t.Helper()
	var b []byte
	for _, v := range x {
		b = binary.NativeEndian.AppendUint32(b, uint32(v))
	}
	if err := m.Write(off, b); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, m device.Memory, off int64) int32 {
	t.Helper()
	b := make([]byte, 4)
	if err := m.Read(off, b); err != nil {
		t.Fatal(err)
	}
	return int32(binary.NativeEndian.Uint32(b))
}

// testOperations: operations of one stream run in order, more of them than any queue
// holds, and each sees what the one before it wrote.
func testOperations(t *testing.T, d device.Device, _ opener) {
	m := memory(t, d, space.Device, 1024)
	s := stream(t, d, space.Compute)
	a, b := operand(m, 0, 100), operand(m, 512, 100)
	want := int32(0)
	for i := range int32(3000) {
		s.Run(linear{3, i}.launch(t, d, space.Compute, a, b),
			linear{5, 7}.launch(t, d, space.Compute, b, a))
		want = 5*(3*want+i) + 7
	}
	sync1(t, s)
	for _, i := range []int64{0, 50, 99} {
		if got := get(t, m, 4*i); got != want {
			t.Errorf("element %d is %d, want %d", i, got, want)
		}
	}
	if s.Begun() != 6000 {
		t.Errorf("%d tasks began", s.Begun())
	}
}

// testEngines: a value goes round by the device, the host and the copies between them; each
// waits for the one before, and the first for the last.
func testEngines(t *testing.T, d device.Device, _ opener) {
	near, far := memory(t, d, space.Device, 64), memory(t, d, space.Host, 64)
	x, y := operand(near, 0, 4), operand(far, 16, 4)
	move := func(e space.Engine, dst, src device.Operand) device.Task {
		c, err := d.Copy(device.Copy{Engine: e, Dst: dst.Region, Src: src.Region})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	put(t, near, 0, 1, 2, 3, 4)
	engines := []space.Engine{space.Compute, space.CopyOut, space.HostCompute, space.CopyIn}
	tasks := []device.Task{linear{3, 1}.launch(t, d, space.Compute, x, x),
		move(space.CopyOut, y, x), linear{5, 2}.launch(t, d, space.HostCompute, y, y),
		move(space.CopyIn, x, y)}
	var streams []device.Stream
	for _, e := range engines {
		streams = append(streams, stream(t, d, e))
	}
	want := int32(4)
	const rounds = 40
	for round := range rounds {
		for i, s := range streams {
			if before := streams[(i+3)%4]; round+i > 0 {
				s.Wait(before.Record())
			}
			s.Run(tasks[i])
		}
		want = 5*(3*want+1) + 2
	}
	for _, s := range streams {
		sync1(t, s)
	}
	if got := get(t, near, 12); got != want || get(t, far, 28) != want {
		t.Errorf("after %d rounds %d, want %d", rounds, got, want)
	}
}

// testEmpty: an operation whose result has no elements is run as any other.
func testEmpty(t *testing.T, d device.Device, _ opener) {
	m := memory(t, d, space.Device, 64)
	s := stream(t, d, space.Compute)
	s.Run(linear{1, 1}.launch(t, d, space.Compute, operand(m, 4, 0), operand(m, 8, 0)))
	if err := s.Sync(); err != nil || s.Begun() != 1 {
		t.Errorf("%d began, %v", s.Begun(), err)
	}
}
