package ops

import (
	"math"
	"runtime"
	"testing"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/longtest"
)

// TestLaunchesAllocateLittle: what a kernel allocates does not grow with its
// operands, which is for its scratch to do. The functions that it hands to the
// pool are objects, and so are buffers that stay in the first-level cache. An operation on
// bfloat16 launches another for each of its blocks, of which there are no more than mostTiles.
func TestLaunchesAllocateLittle(t *testing.T) {
	longtest.Skip(t)
	const mostBytes = 12 << 10
	eachSample(t, func(t *testing.T, s Sample) {
		mostObjects := uint64(40)
		if _, ok := s.Op.(inBF16); ok {
			mostObjects = 10 * mostTiles
		}
		for _, s := range []Sample{s, s.enlarged()} {
			if objects, bytes := s.allocations(t); objects > mostObjects || bytes > mostBytes {
				t.Errorf("with operands %v: %d objects of %d bytes in all", s.In, objects, bytes)
			}
		}
	})
}

// allocations are the objects and bytes that a launch allocates on one thread.
func (s Sample) allocations(t *testing.T) (objects, bytes uint64) {
	out, err := s.Op.Infer(s.In)
	if err != nil {
		t.Fatal(err)
	}
	fn, err := kernel.Lookup(kernel.CPU, s.Op)
	if err != nil {
		t.Fatal(err)
	}
	c := kernel.Call{In: s.operands(6),
		Scratch: tensor.New(tensor.Of(tensor.U8, int(s.Op.Cost(s.In, out).Scratch))).Data}
	for _, ty := range out {
		c.Out = append(c.Out, tensor.New(ty))
	}
	objects, bytes = math.MaxUint64, math.MaxUint64
	for range 4 { // the first launch may fill caches that others use
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := fn(s.Op, &c)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		objects = min(objects, after.Mallocs-before.Mallocs)
		bytes = min(bytes, after.TotalAlloc-before.TotalAlloc)
	}
	return objects, bytes
}
