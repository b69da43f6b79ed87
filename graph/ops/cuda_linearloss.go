package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// blockCUDA is some rows of an operand, as rowBlock is.
func blockCUDA(o cuda.Operand, lo, hi int, each ...int) cuda.Operand {
	t, row := someRows(o.Type.DType, hi-lo, each)
	return cuda.Operand{Addr: o.Addr + uint64(lo*row), Type: t}
}

// gathered lists the commands that functions make, up to the first error.
type gathered struct {
	list []cuda.Command
	err  error
}

func (g *gathered) add(list []cuda.Command, err error) {
	if g.err == nil {
		g.list, g.err = append(g.list, list...), err
	}
}

// commands makes logits, or, back, rows of their gradient; with scratch to round rows in.
func (o fixedLoss) commands(x, w, out cuda.Operand, scratch uint64, back bool) ([]cuda.Command,
	error) {
	switch {
	case o.Format != 0:
		return o.packed(back).launches(out, x, w, scratch, 0), nil
	case back:
		return o.Of.dx().commands(x, w, out, 0)
	}
	return o.Of.logits().commands(x, w, out, 0)
}

// eachCUDA is the commands of every block of rows: logits, losses, and those of more.
func (o fixedLoss) eachCUDA(c *cuda.Call, b lossBlocks, more func(g *gathered, lo, hi int,
	logits cuda.Operand)) ([]cuda.Command, error) {
	g := &gathered{}
	for lo := 0; lo < b.n; lo += b.rows {
		hi := min(b.n, lo+b.rows)
		logits := cuda.Operand{Addr: c.Scratch, Type: b.logits(hi - lo)}
		g.add(o.commands(blockCUDA(c.In[0], lo, hi, b.d), c.In[1], logits,
			c.Scratch+uint64(b.beside()), false))
		g.add(crossEntropyCUDA(crossEntropy{o.Of.Smoothing}, &cuda.Call{
			In:  []cuda.Operand{logits, blockCUDA(c.In[2], lo, hi)},
			Out: []cuda.Operand{blockCUDA(c.Out[0], lo, hi)}}))
		more(g, lo, hi, logits)
	}
	return g.list, g.err
}

// backwardsCUDA is what makes rows' gradients of logits, which it overwrites with theirs.
func (o fixedLoss) backwardsCUDA(g *gathered, c *cuda.Call, b lossBlocks, lo, hi int,
	logits cuda.Operand) {
	g.add(crossEntropyGradCUDA(crossEntropyGrad{o.Of.Smoothing}, &cuda.Call{
		In: []cuda.Operand{logits, blockCUDA(c.In[2], lo, hi),
			blockCUDA(c.In[3], lo, hi)}, Out: []cuda.Operand{logits}}))
	g.add(o.commands(logits, c.In[1], blockCUDA(c.Out[1], lo, hi, b.d), 0, true))
}

func linearLossCUDA(o linearLoss, c *cuda.Call) ([]cuda.Command, error) {
	return fixedLoss{Of: o}.eachCUDA(c, o.blocks([]graph.Type{c.In[0].Type, c.In[1].Type}),
		func(*gathered, int, int, cuda.Operand) {})
}

func fixedLossCUDA(o fixedLoss, c *cuda.Call) ([]cuda.Command, error) {
	return o.eachCUDA(c, o.blocks([]graph.Type{c.In[0].Type, c.In[1].Type}),
		func(*gathered, int, int, cuda.Operand) {})
}

func linearLossGradCUDA(o linearLossGrad, c *cuda.Call) ([]cuda.Command, error) {
	if c.Out[0].Type.Elems() == 0 {
		return []cuda.Command{wiped(c.Out[2])}, nil
	}
	loss, fixed := o.loss(), fixedLoss{Of: o.loss()}
	b := loss.blocks([]graph.Type{c.In[0].Type, c.In[1].Type})
	return fixed.eachCUDA(c, b, func(g *gathered, lo, hi int, logits cuda.Operand) {
		fixed.backwardsCUDA(g, c, b, lo, hi, logits)
		x, y := factorsOfW(loss, blockCUDA(c.In[0], lo, hi, b.d), logits)
		g.add(loss.dw().commands(x, y, c.Out[2], float32(min(1, lo))))
	})
}

func fixedLossGradCUDA(o fixedLossGrad, c *cuda.Call) ([]cuda.Command, error) {
	loss := o.loss()
	b := loss.blocks([]graph.Type{c.In[0].Type, c.In[1].Type})
	return loss.eachCUDA(c, b, func(g *gathered, lo, hi int, logits cuda.Operand) {
		loss.backwardsCUDA(g, c, b, lo, hi, logits)
	})
}

// scratchOf is what an operation works in on a GPU where that is what it has on the host.
func scratchOf[T graph.Op](o T, in, out []graph.Type) int64 { return o.Cost(in, out).Scratch }

func init() {
	cuda.Register(linearLossCUDA, scratchOf)
	cuda.Register(linearLossGradCUDA, scratchOf)
	cuda.Register(fixedLossCUDA, scratchOf)
	cuda.Register(fixedLossGradCUDA, scratchOf)
}
