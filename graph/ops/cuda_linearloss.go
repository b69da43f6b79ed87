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

// eachCUDA is the commands of every block of rows: logits, losses, and those of more.
func (o linearLoss) eachCUDA(c *cuda.Call, more func(g *gathered, b lossBlocks, lo, hi int,
	logits cuda.Operand)) ([]cuda.Command, error) {
	b, g := o.blocks([]graph.Type{c.In[0].Type, c.In[1].Type}), &gathered{}
	for lo := 0; lo < b.n; lo += b.rows {
		hi := min(b.n, lo+b.rows)
		logits := cuda.Operand{Addr: c.Scratch, Type: b.logits(hi - lo)}
		g.add(o.logits().commands(blockCUDA(c.In[0], lo, hi, b.d), c.In[1], logits, 0))
		g.add(crossEntropyCUDA(crossEntropy{o.Smoothing}, &cuda.Call{
			In:  []cuda.Operand{logits, blockCUDA(c.In[2], lo, hi)},
			Out: []cuda.Operand{blockCUDA(c.Out[0], lo, hi)}}))
		more(g, b, lo, hi, logits)
	}
	return g.list, g.err
}

func linearLossCUDA(o linearLoss, c *cuda.Call) ([]cuda.Command, error) {
	return o.eachCUDA(c, func(*gathered, lossBlocks, int, int, cuda.Operand) {})
}

func linearLossGradCUDA(o linearLossGrad, c *cuda.Call) ([]cuda.Command, error) {
	if c.Out[0].Type.Elems() == 0 {
		return []cuda.Command{wiped(c.Out[2])}, nil
	}
	loss := o.loss()
	return loss.eachCUDA(c, func(g *gathered, b lossBlocks, lo, hi int, logits cuda.Operand) {
		g.add(crossEntropyGradCUDA(crossEntropyGrad{o.Smoothing}, &cuda.Call{
			In: []cuda.Operand{logits, blockCUDA(c.In[2], lo, hi),
				blockCUDA(c.In[3], lo, hi)}, Out: []cuda.Operand{logits}}))
		g.add(loss.dx().commands(logits, c.In[1], blockCUDA(c.Out[1], lo, hi, b.d), 0))
		x, y := factorsOfW(loss, blockCUDA(c.In[0], lo, hi, b.d), logits)
		g.add(loss.dw().commands(x, y, c.Out[2], float32(min(1, lo))))
	})
}

func init() {
	cuda.Register(linearLossCUDA, func(o linearLoss, in, out []graph.Type) int64 {
		return o.Cost(in, out).Scratch
	})
	cuda.Register(linearLossGradCUDA, func(o linearLossGrad, in, out []graph.Type) int64 {
		return o.Cost(in, out).Scratch
	})
}
