//go:build linux && amd64 && !nocuda

package ops

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// ran is a call of commands, with what is around operands, results and scratch.
type ran struct {
	h *host
	memory
	at     uint64
	blocks []spot
}

type spot struct{ from, to uint64 }

// place reserves guarded memory.
func (r *ran) place(n int64) uint64 {
	from := (r.at+guard+63)&^63 + uint64(r.shift)
	r.at = from + uint64(n)
	r.blocks = append(r.blocks, spot{from, r.at})
	return from
}

func (r *ran) data(o cuda.Operand) tensor.View {
	at := o.Addr - r.h.address
	return tensor.View{Type: o.Type, Data: r.h.memory[at : at+uint64(o.Type.Bytes())]}
}

// onCUDA computes a sample by its commands, into poisoned memory that is off the alignment
// of blocks by some bytes. over is the operand whose bytes result 0 takes, if not negative.
func (s Sample) onCUDA(t testing.TB, h *host, in []tensor.View, m memory, over int) []tensor.View {
	t.Helper()
	types, err := s.Op.Infer(s.In)
	if err != nil {
		t.Fatal(err)
	}
	r := &ran{h: h, memory: m, at: h.address}
	room := int64(1 << 12)
	for _, ty := range slices.Concat(s.In, types) {
		room += ty.Bytes() + 4*guard
	}
	room += cuda.ScratchOf(s.Op, s.In, types)
	h.used = room
	for i := range room {
		h.memory[i] = m.poison
	}
	c := cuda.Call{}
	place := func(ty tensor.Type) cuda.Operand {
		return cuda.Operand{Addr: r.place(ty.Bytes()), Type: ty}
	}
	for _, v := range in {
		c.In = append(c.In, place(v.Type))
		copy(r.data(c.In[len(c.In)-1]).Data, v.Data)
	}
	for i, ty := range types {
		if i == 0 && over >= 0 {
			c.Out = append(c.Out, cuda.Operand{Addr: c.In[over].Addr, Type: ty})
			continue
		}
		c.Out = append(c.Out, place(ty))
	}
	c.Scratch = place(tensor.Of(tensor.U8, int(cuda.ScratchOf(s.Op, s.In, types)))).Addr
	if err := h.grant(r.blocks[:len(in)], r.blocks[len(in):]); err != nil {
		t.Fatal(err)
	}
	commands, err := cuda.Commands(s.Op, &c)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		if err := h.run(command); err != nil {
			t.Fatal(err)
		}
	}
	r.checkGuards(t)
	return s.fetched(t, r, c, in, over)
}

// checkGuards: nothing is written between what was placed.
func (r *ran) checkGuards(t testing.TB) {
	t.Helper()
	at := r.h.address
	for _, b := range append(r.blocks, spot{r.at + guard, 0}) {
		for ; at < b.from; at++ {
			if r.h.memory[at-r.h.address] != r.poison {
				t.Fatalf("byte %d outside the results was written", at)
			}
		}
		at = b.to
	}
}

// fetched are copies of the results, or of what an update wrote; other operands are as they
// were.
func (s Sample) fetched(t testing.TB, r *ran, c cuda.Call, in []tensor.View,
	over int) []tensor.View {
	t.Helper()
	for i := s.Update; i < len(in); i++ {
		if i != over && string(in[i].Data) != string(r.data(c.In[i]).Data) {
			t.Fatalf("operand %d was written", i)
		}
	}
	list := c.Out
	if s.Update > 0 {
		list = c.In[:s.Update]
	}
	var out []tensor.View
	for _, o := range list {
		v := r.data(o)
		out = append(out, tensor.View{Type: v.Type, Data: slices.Clone(v.Data)})
	}
	return out
}

// near compares with the host's results: bit for bit if the operation is said to be exact. Of
// others, floating-point numbers are compared within a tolerance relative to the largest of
// them, since elementary functions differ in their last bits, and sums in their order.
func (s Sample) near(t testing.TB, want, got []tensor.View) {
	t.Helper()
	for k, w := range want {
		g := got[k]
		if w.Type.DType == graph.F64 {
			for i, x := range w.F64() {
				y := g.F64()[i]
				if math.Float64bits(x) != math.Float64bits(y) && !(x != x && y != y) {
					t.Fatalf("result %d: element %d is %g and not %g", k, i, y, x)
				}
			}
			continue
		}
		if w.Type.DType != graph.F32 {
			if string(w.Data) != string(g.Data) {
				t.Fatalf("result %d: %v, want %v", k, g.Data, w.Data)
			}
			continue
		}
		most := 0.0
		for _, x := range w.F32() {
			most = max(most, math.Abs(float64(x)))
		}
		for i, x := range w.F32() {
			room := 2e-6*most + 1e-5*math.Abs(float64(x))
			y := g.F32()[i]
			if cuda.IsExact(s.Op) && !sameFloat(x, y) {
				t.Fatalf("result %d: element %d is %g, %#x, and not %g, %#x", k, i, y,
					math.Float32bits(y), x, math.Float32bits(x))
			}
			if x != y && !(x != x && y != y) && !(math.Abs(float64(x-y)) <= room) {
				t.Fatalf("result %d: element %d is %g, want %g", k, i, y, x)
			}
		}
	}
}

// sameFloat compares bits; one NaN is as good as another.
func sameFloat(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// eachCUDA runs a subtest for every sample whose operation has commands.
func eachCUDA(t *testing.T, f func(t *testing.T, h *host, s Sample)) {
	h := needHost(t)
	for _, s := range Samples() {
		if cuda.Supports(s.Op) {
			t.Run(s.name(), func(t *testing.T) { f(t, h, s) })
		}
	}
}

// TestCUDAMatchesCPU: the commands of every operation compute what the host does.
func TestCUDAMatchesCPU(t *testing.T) {
	eachCUDA(t, func(t *testing.T, h *host, s Sample) {
		in := s.operands(1)
		s.near(t, s.compute(t, in, nil), s.onCUDA(t, h, in, memory{poison: 0xff}, -1))
	})
}

// TestCUDADependsOnOperandsAlone: not on addresses, on what is in memory, or on the order in
// which threads run.
func TestCUDADependsOnOperandsAlone(t *testing.T) {
	eachCUDA(t, func(t *testing.T, h *host, s Sample) {
		in := s.operands(2)
		want := s.onCUDA(t, h, in, memory{poison: 0xff}, -1)
		defer func() { h.orders = 0 }()
		h.orders = 1
		if !same(want, s.onCUDA(t, h, in, memory{poison: 0x3e, shift: 8}, -1)) {
			t.Error("backward, elsewhere and on other memory the results differ")
		}
		h.orders = 2
		if !same(want, s.onCUDA(t, h, in, memory{poison: 0xff}, -1)) {
			t.Error("in a scattered order of threads the results differ")
		}
	})
}

// TestCUDAInPlace: a result that takes an operand's bytes is the same.
func TestCUDAInPlace(t *testing.T) {
	eachCUDA(t, func(t *testing.T, h *host, s Sample) {
		op, ok := s.Op.(graph.InPlacer)
		if !ok || s.Update > 0 {
			t.Skip("works out of place only")
		}
		out, _ := s.Op.Infer(s.In)
		in := s.operands(4)
		want := s.onCUDA(t, h, in, memory{poison: 0xff}, -1)
		for _, k := range op.InPlace(s.In, out) {
			if !same(want, s.onCUDA(t, h, in, memory{poison: 0xff}, k)) {
				t.Errorf("over operand %d the result differs", k)
			}
		}
	})
}

// withoutCUDA are the operations that have no commands, and why.
var withoutCUDA = map[string]string{
	"convFilterPart": onHost, "convFilterEnd": onHost,
	"batchMoments": onHost, "batchStatistics": onHost, "batchApply": onHost,
	"batchSums": onHost, "batchEnds": onHost, "batchBack": onHost,
}

const onHost = "graphs are cut for the host's kernels, whose bits parts have"

// TestCUDACovers: every operation has commands, or a reason why not.
func TestCUDACovers(t *testing.T) {
	for _, s := range Samples() {
		name := reflect.TypeOf(s.Op).Name()
		reason := withoutCUDA[name]
		if has := cuda.Supports(s.Op) || isView(s); has == (reason != "") {
			t.Errorf("%s: commands: %v; reason for none: %q", name, has, reason)
		}
	}
}

// TestCUDANothing: what has no elements is no error, and results that have some are written.
func TestCUDANothing(t *testing.T) {
	h := needHost(t)
	count := 0
	for _, whole := range Samples() {
		if isView(whole) || !cuda.Supports(whole.Op) {
			continue
		}
		for _, s := range whole.emptied(t) {
			in := s.operands(1)
			want, err := s.run(t, in, nil, memory{poison: 0xff})
			if err != nil { // indices into nothing
				continue
			}
			count++
			t.Run(s.name(), func(t *testing.T) {
				s.near(t, want, s.onCUDA(t, h, in, memory{poison: 0xff}, -1))
			})
		}
	}
	if count < 300 {
		t.Errorf("only %d cases", count)
	}
}
