package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// cudaWalk is axes with the strides of up to three operands along them, as kernels that move
// elements take them: element i of the walk is, in operand k, the one at base k plus the index
// along each axis times its stride.
type cudaWalk struct {
	axes []strided // the last varies fastest
	base each
}

// broadcastWalk is that of a result whose operands broadcast; itself is contiguous.
func broadcastWalk(out tensor.Type, in []tensor.Type) cudaWalk {
	return cudaWalk{axes: mergeAxes(out, in)}
}

// elements is how many the walk visits.
func (w cudaWalk) elements() int {
	n := 1
	for _, a := range w.axes {
		n *= a.size
	}
	return n
}

// merged is the walk with neighbours that follow each other as one.
func (w cudaWalk) merged() cudaWalk {
	var out []strided
	for _, a := range w.axes {
		k := len(out) - 1
		switch {
		case a.size == 1:
		case k >= 0 && follows(a, out[k]):
			out[k] = strided{out[k].size * a.size, a.stride}
		default:
			out = append(out, a)
		}
	}
	return cudaWalk{axes: out, base: w.base}
}

// args are the walk's arguments and more.
func (w cudaWalk) args(more ...any) []any {
	list := []any{w.elements(), len(w.axes)}
	for k := range maxRank {
		if k < len(w.axes) {
			list = append(list, w.axes[k].size)
		} else {
			list = append(list, 1)
		}
	}
	for operand := range w.base {
		for k := range maxRank {
			if k < len(w.axes) {
				list = append(list, w.axes[k].stride[operand])
			} else {
				list = append(list, 0)
			}
		}
	}
	for _, b := range w.base {
		list = append(list, b)
	}
	return append(list, more...)
}

// stridesOf are the distances between elements of a value along its axes.
func stridesOf(t tensor.Type) []int {
	strides, step := make([]int, t.Rank()), 1
	for i := t.Rank() - 1; i >= 0; i-- {
		strides[i] = step
		step *= t.Size(i)
	}
	return strides
}

// copied moves the elements of a walk from operand 0 to operand 1: those of both that follow each
// other as a run of bytes.
func (w cudaWalk) copied(to, from cuda.Operand) cuda.Command {
	w = w.merged()
	if len(w.axes) == 0 || len(w.axes) == 1 && w.axes[0].stride == (each{1, 1}) {
		of := to.Type.DType.Size()
		return cuda.Copy{To: to.Addr + uint64(int64(w.base[1])*of),
			From: from.Addr + uint64(int64(w.base[0])*of), Bytes: int64(w.elements()) * of}
	}
	return overElements("copy_walk", w.elements(), w.args(to, from, size(to))...)
}

// wiped sets all elements to zero.
func wiped(o cuda.Operand) cuda.Command {
	if o.Type.Bytes()%4 == 0 {
		return cuda.Fill{Addr: o.Addr, Words: o.Type.Bytes() / 4}
	}
	return overElements("wipe_bytes", int(o.Type.Bytes()), o, int(o.Type.Bytes()))
}

func broadcastCUDA(_ broadcast, c *cuda.Call) ([]cuda.Command, error) {
	w := broadcastWalk(c.Out[0].Type, []graph.Type{c.In[0].Type})
	step := 1
	for k := len(w.axes) - 1; k >= 0; k-- {
		w.axes[k].stride[1] = step
		step *= w.axes[k].size
	}
	return only(w.copied(c.Out[0], c.In[0]))
}

func transposeCUDA(o transpose, c *cuda.Call) ([]cuda.Command, error) {
	from, to := stridesOf(c.In[0].Type), stridesOf(c.Out[0].Type)
	var w cudaWalk
	for i, p := range o.Perm[:o.N] {
		w.axes = append(w.axes, strided{c.In[0].Type.Size(p), each{from[p], to[i]}})
	}
	return only(w.copied(c.Out[0], c.In[0]))
}

// along is the walk over count elements of an axis, and all of the other axes, of whole and
// part: in operand 0 from first on, step apart, and in operand 1 side by side. The two are
// contiguous.
func along(whole tensor.Type, axis, first, step, count int) cudaWalk {
	outer := graph.Type{Shape: whole.Shape[:axis]}.Elems()
	inner := graph.Type{Shape: whole.Shape[axis+1:]}.Elems()
	return cudaWalk{axes: []strided{
		{outer, each{whole.Size(axis) * inner, count * inner}},
		{count, each{step * inner, inner}}, {inner, each{1, 1}},
	}, base: each{first * inner}}
}

// reversed exchanges what is read and what is written.
func (w cudaWalk) reversed() cudaWalk {
	var out cudaWalk
	for _, a := range w.axes {
		out.axes = append(out.axes, strided{a.size, each{a.stride[1], a.stride[0]}})
	}
	out.base = each{w.base[1], w.base[0]}
	return out
}

func concatCUDA(o concat, c *cuda.Call) ([]cuda.Command, error) {
	var list []cuda.Command
	at := 0
	for _, x := range c.In {
		count := x.Type.Size(o.Axis)
		if elems(x) > 0 {
			w := along(c.Out[0].Type, o.Axis, at, 1, count)
			list = append(list, w.reversed().copied(c.Out[0], x))
		}
		at += count
	}
	return list, nil
}

func cutCUDA(o cut, c *cuda.Call) ([]cuda.Command, error) {
	return only(along(c.In[0].Type, o.Axis, o.Lo, 1, o.Hi-o.Lo).copied(c.Out[0], c.In[0]))
}

func strideCUDA(o stride, c *cuda.Call) ([]cuda.Command, error) {
	w := along(c.In[0].Type, o.Axis, o.First, o.Step, o.Count)
	return only(w.copied(c.Out[0], c.In[0]))
}

// among puts the elements of operand 0 among zeros.
func (w cudaWalk) among(c *cuda.Call) ([]cuda.Command, error) {
	list := []cuda.Command{wiped(c.Out[0])}
	if elems(c.In[0]) > 0 {
		list = append(list, w.reversed().copied(c.Out[0], c.In[0]))
	}
	return list, nil
}

func unstrideCUDA(o unstride, c *cuda.Call) ([]cuda.Command, error) {
	s := o.Stride
	return along(c.Out[0].Type, s.Axis, s.First, s.Step, s.Count).among(c)
}

func padCUDA(o pad, c *cuda.Call) ([]cuda.Command, error) {
	return along(c.Out[0].Type, o.Axis, o.Before, 1, c.In[0].Type.Size(o.Axis)).among(c)
}

func init() {
	cuda.Register(broadcastCUDA, nil)
	cuda.Register(transposeCUDA, nil)
	cuda.Register(concatCUDA, nil)
	cuda.Register(cutCUDA, nil)
	cuda.Register(strideCUDA, nil)
	cuda.Register(unstrideCUDA, nil)
	cuda.Register(padCUDA, nil)
}
