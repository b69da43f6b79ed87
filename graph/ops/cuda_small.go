package ops

import (
	"math"

	"github.com/gomem/gomem/internal/kernel/cuda"
)

func fillCUDA(f fill, c *cuda.Call) ([]cuda.Command, error) {
	return only(cuda.Fill{Addr: c.Out[0].Addr, Words: int64(elems(c.Out[0])),
		Word: math.Float32bits(f.Value)})
}

func noiseCUDA(o noise, c *cuda.Call) ([]cuda.Command, error) {
	return o.drawn(cudaWalk{axes: []strided{{elems(c.Out[0]), each{1}}}}, c)
}

// drawn draws elements that are at the places of a walk.
func (o noise) drawn(w cudaWalk, c *cuda.Call) ([]cuda.Command, error) {
	return only(overElements("draw", elems(c.Out[0]), w.args(c.Out[0], c.In[0], o.Salt,
		o.Normal)...))
}

func noisePartCUDA(o noisePart, c *cuda.Call) ([]cuda.Command, error) {
	return o.Noise.drawn(o.Win.walk(), c)
}

func foldInCUDA(_ foldIn, c *cuda.Call) ([]cuda.Command, error) {
	return only(overElements("fold_in", 1, c.Out[0], c.In[0], c.In[1]))
}

func paddingMaskCUDA(_ paddingMask, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return only(overElements("padding_mask", n, c.Out[0], c.In[0], n))
}

func causalMaskCUDA(o causalMask, c *cuda.Call) ([]cuda.Command, error) {
	return only(overElements("causal_mask", elems(c.Out[0]), c.Out[0], o.Length))
}

func causalMaskAtCUDA(o causalMaskAt, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return only(overElements("causal_mask_at", n, c.Out[0], c.In[0], n, o.Queries, o.Keys))
}

func notZeroCUDA(_ notZero, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return only(overElements("not_zero", n, c.Out[0], c.In[0], n))
}

func notCUDA(_ not, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return only(overElements("not_true", n, c.Out[0], c.In[0], n))
}

func castCUDA(o cast, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.Out[0])
	return only(overElements("convert", n, c.Out[0], c.In[0], n, int32(o.To),
		int32(c.In[0].Type.DType)))
}

func compareCUDA(o compare, c *cuda.Call) ([]cuda.Command, error) {
	w := broadcastWalk(c.Out[0].Type, typesOf(c.In))
	return only(overElements("compare", elems(c.Out[0]),
		w.args(c.Out[0], c.In[0], c.In[1], int32(o.Kind),
			int32(c.In[0].Type.DType))...))
}

func numericCUDA(o numeric, c *cuda.Call) ([]cuda.Command, error) {
	in := []cuda.Operand{c.In[0], c.In[len(c.In)-1]}
	w := broadcastWalk(c.Out[0].Type, typesOf(in))
	return only(overElements("numbers", elems(c.Out[0]), w.args(c.Out[0], in[0], in[1],
		int32(o.Op.point().kind), int32(c.Out[0].Type.DType))...))
}

func logicCUDA(o logic, c *cuda.Call) ([]cuda.Command, error) {
	w := broadcastWalk(c.Out[0].Type, typesOf(c.In))
	return only(overElements("logic", elems(c.Out[0]),
		w.args(c.Out[0], c.In[0], c.In[1], int32(o.Kind))...))
}

func whereCUDA(_ where, c *cuda.Call) ([]cuda.Command, error) {
	w := broadcastWalk(c.Out[0].Type, typesOf(c.In))
	return only(overElements("where", elems(c.Out[0]),
		w.args(c.Out[0], c.In[0], c.In[1], c.In[2], size(c.Out[0]))...))
}

func triangleCUDA(o triangle, c *cuda.Call) ([]cuda.Command, error) {
	t, n := c.In[0].Type, elems(c.In[0])
	return only(overElements("triangle", n, c.Out[0], c.In[0], n, t.Size(-2), t.Size(-1),
		o.Diagonal, o.Upper, size(c.In[0])))
}

// passCUDA gives operand 0 on, unless it is in place already.
func passCUDA[O any](_ O, c *cuda.Call) ([]cuda.Command, error) {
	if c.In[0].Addr == c.Out[0].Addr {
		return nil, nil
	}
	return only(copiedWhole(c.Out[0], c.In[0]))
}

// sendPartCUDA copies the operand to every part.
func sendPartCUDA(o sendPart, c *cuda.Call) ([]cuda.Command, error) {
	n := elems(c.In[0])
	w := cudaWalk{axes: []strided{{o.Parts, each{0, n}}, {n, each{1, 1}}}}
	return only(w.copied(c.Out[0], c.In[0]))
}

func init() {
	cuda.Register(fillCUDA, nil)
	cuda.Register(noiseCUDA, nil)
	cuda.Register(noisePartCUDA, nil)
	cuda.Register(foldInCUDA, nil)
	cuda.Register(paddingMaskCUDA, nil)
	cuda.Register(causalMaskCUDA, nil)
	cuda.Register(causalMaskAtCUDA, nil)
	cuda.Register(notZeroCUDA, nil)
	cuda.Register(notCUDA, nil)
	cuda.Register(castCUDA, nil)
	cuda.Register(compareCUDA, nil)
	cuda.Register(numericCUDA, nil)
	cuda.Register(logicCUDA, nil)
	cuda.Register(whereCUDA, nil)
	cuda.Register(triangleCUDA, nil)
	cuda.Register(passCUDA[send], nil)
	cuda.Register(passCUDA[await], nil)
	cuda.Register(sendPartCUDA, nil)
}
