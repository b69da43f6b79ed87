package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

func ctcCUDA(_ ctc, c *cuda.Call) ([]cuda.Command, error) {
	s := ctcSizeOf(c.In[0].Type, c.In[1].Type)
	return only(launched(kernelOf("ctc", c.In[0]), s.b, c.Out[0], c.In[0], c.In[1], c.In[2],
		c.In[3], c.Scratch, s.t, s.b, s.v, s.l))
}

func ctcGradCUDA(_ ctcGrad, c *cuda.Call) ([]cuda.Command, error) {
	s := ctcSizeOf(c.In[0].Type, c.In[1].Type)
	return only(launched(kernelOf("ctc_grad", c.In[0]), s.b, c.Out[0], c.In[0], c.In[1], c.In[2],
		c.In[3], c.In[4], c.Scratch, s.t, s.b, s.v, s.l))
}

func ctcReadableCUDA(_ ctcReadable, c *cuda.Call) ([]cuda.Command, error) {
	b, l := c.In[0].Type.Size(0), c.In[0].Type.Size(1)
	return only(overElements("ctc_readable", b, c.Out[0], c.In[0], c.In[1], c.In[2], b, l))
}

func init() {
	cuda.Register(ctcCUDA, func(_ ctc, in, _ []graph.Type) int64 {
		s := ctcSizeOf(in[0], in[1])
		return 16 * int64(s.b) * int64(s.states())
	})
	cuda.Register(ctcGradCUDA, func(_ ctcGrad, in, _ []graph.Type) int64 {
		s := ctcSizeOf(in[0], in[1])
		return 8 * int64(s.b) * int64(s.gradScratch())
	})
	cuda.Register(ctcReadableCUDA, nil)
}
