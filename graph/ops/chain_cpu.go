package ops

import (
	"sync"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// spread is how an operand repeats along a result: element i of the result
// meets element (i/hold) mod period of the operand.
type spread struct{ hold, period int }

// spreadOver finds how t is broadcast to out; ok is false unless the axes along
// which t varies are neighbours.
func spreadOver(t, out graph.Type) (s spread, ok bool) {
	s = spread{1, 1}
	ended := false
	for i := out.Rank() - 1; i >= 0; i-- {
		size, k := out.Shape[i].Size, i-(out.Rank()-t.Rank())
		varies := k >= 0 && t.Shape[k].Size > 1
		switch {
		case size == 1:
		case varies && ended:
			return s, false
		case varies:
			s.period *= size
		case s.period > 1:
			ended = true
		default:
			s.hold *= size
		}
	}
	return s, true
}

// meet sets dst to what the elements of the result from at on meet in x.
func meet[T float32 | uint16](s spread, dst, x []T, at int) {
	k, held := at/s.hold%s.period, at%s.hold
	for len(dst) > 0 {
		if s.hold == 1 {
			dst, k = dst[copy(dst, x[k:s.period]):], 0
			continue
		}
		n := min(len(dst), s.hold-held)
		repeat(dst[:n], x[k])
		dst, held = dst[n:], 0
		if k++; k == s.period {
			k = 0
		}
	}
}

// tileSize is the number of elements that a chain computes at a time: 4 KiB,
// so that a few tiles fit into the first-level cache.
const tileSize = 1 << 10

// workspace has the tiles of one thread: intermediate results, and operands
// spread to the size of the result.
type workspace struct {
	results [maxInstructions][tileSize]float32
	spread  [maxChainOperands][tileSize]float32
	half    [tileSize]uint16
}

// workspaces keeps the workspaces of threads that are done: they are of one
// size, whatever the operands, so they are no part of a plan.
var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// program is a chain with its operands in memory.
type program struct {
	chain
	in  [maxChainOperands]chainOperand
	out []float32
	// of bfloat16, instead: the last instruction has rounded it
	half []uint16
	n    int // elements of the result
}

// chainOperand is an operand's elements, or a seed's.
type chainOperand struct {
	spread
	data []float32
	half []uint16 // of bfloat16, instead
	seed []int32
	full bool // as large as the result
}

// newProgram prepares a chain; the first of its operands are given.
func newProgram(c chain, in []tensor.View, out tensor.View) *program {
	p := &program{chain: c, n: out.Type.Elems()}
	if out.Type.DType == graph.BF16 {
		p.half = out.U16()
	} else {
		p.out = out.F32()
	}
	for i, v := range in {
		if v.Type.DType == graph.I32 {
			p.in[i].seed = v.I32()
			continue
		}
		s, _ := spreadOver(v.Type, out.Type)
		o := chainOperand{spread: s, full: s.period == p.n}
		if v.Type.DType == graph.BF16 {
			o.half = v.U16()
		} else {
			o.data = v.F32()
		}
		p.in[i] = o
	}
	return p
}

// run computes the result on the pool's threads.
func (p *program) run(threads *pool.Pool) {
	threads.For(p.n, grain/max(1, int(p.N)), p.elements)
}

// elements computes elements lo … hi of the result.
func (p *program) elements(lo, hi int) {
	w := workspaces.Get().(*workspace)
	for at := lo; at < hi; at += tileSize {
		p.tile(w, at, min(tileSize, hi-at), at == lo)
	}
	workspaces.Put(w)
}

// tile computes n elements of the result. A single number is spread once, in
// the first tile of a range, which no later one exceeds.
func (p *program) tile(w *workspace, at, n int, first bool) {
	var args [maxChainOperands][]float32
	for i := range p.in[:p.Operands] {
		args[i] = p.in[i].tile(w, i, at, n, first)
	}
	value := func(r reference) []float32 {
		if r < 0 {
			return w.results[^r][:n]
		}
		return args[r]
	}
	for i, ins := range p.Code[:p.N] {
		dst := w.results[i][:n]
		last := i == int(p.N)-1
		if last && p.half == nil {
			dst = p.out[at : at+n]
		}
		var y []float32
		var seed []int32
		if ins.Arity > 1 {
			y = value(ins.In[1])
			if r := ins.In[1]; r >= 0 {
				seed = p.in[r].seed
			}
		}
		ins.Op.tile(dst, value(ins.In[0]), y, seed, at)
		if last && p.half != nil {
			vec.BF16FromF32(p.half[at:at+n], dst)
		}
	}
}

// tile is operand i as n elements of the result meet it; a seed has none.
func (o *chainOperand) tile(w *workspace, i, at, n int, first bool) []float32 {
	dst := w.spread[i][:n]
	switch stale := first || o.period > 1; {
	case o.full && o.half != nil:
		vec.F32FromBF16(dst, o.half[at:at+n])
	case o.full:
		return o.data[at : at+n]
	case o.half != nil && stale:
		meet(o.spread, w.half[:n], o.half, at)
		vec.F32FromBF16(dst, w.half[:n])
	case o.data != nil && stale:
		meet(o.spread, dst, o.data, at)
	case o.seed != nil:
		return nil
	}
	return dst
}

func chainCPU(o chain, c *kernel.Call) error {
	newProgram(o, c.In, c.Out[0]).run(c.Pool)
	return nil
}

// one is an instruction on one operand.
func one(op elementwise, x reference) instruction {
	return instruction{Op: op, In: [2]reference{x}, Arity: 1}
}

// two is an instruction on two operands.
func two(op elementwise, x, y reference) instruction {
	return instruction{Op: op, In: [2]reference{x, y}, Arity: 2}
}

// code is the chain of some instructions.
func code(operands int8, list ...instruction) chain {
	c := chain{N: int8(len(list)), Operands: operands}
	copy(c.Code[:], list)
	return c
}

func init() {
	kernel.Register(kernel.CPU, chainCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	seed := tensor.Of(graph.I32, 2)
	long := make([]instruction, maxInstructions)
	for i := range long {
		long[i] = one(unary{tanh}, ^reference(i-1))
	}
	long[0].In[0] = 0
	register(
		Sample{Op: code(2, two(binary{add}, 0, 1), one(unary{tanh}, ^0)),
			In: []graph.Type{f(3, 17), f(17)}, Second: true},
		Sample{Op: code(3, two(dropout{Rate: 0.4, Salt: 7}, 0, 1), two(binary{add}, ^0, 2)),
			In: []graph.Type{f(3, 17), seed, f(3, 17)}, NoGrad: []int{1}, Second: true},
		Sample{Op: code(3, two(binary{mul}, 0, 1), two(binary{sub}, 2, ^0),
			two(binary{mul}, ^1, 0)), In: []graph.Type{f(2, 3, 5), f(3, 1), f()}, Second: true},
		Sample{Op: code(2, one(affine{Factor: 0.5}, 0), two(slope{gelu}, 1, ^0)),
			In: []graph.Type{f(17), f(17)}},
		Sample{Op: code(2, two(binary{mul}, 0, 0), two(jitter{Eps: 0.01, Salt: 5}, ^0, 1),
			one(affine{Factor: 1, Shift: 2}, ^1)), In: []graph.Type{f(1, 5),
			seed}, NoGrad: []int{1}, Second: true},
		Sample{Op: code(1, long...), In: []graph.Type{f(3, 5)}, Second: true},
	)
}
