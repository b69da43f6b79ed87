package ops

import (
	"math"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

func top2CUDA(o top2, c *cuda.Call) ([]cuda.Command, error) {
	return o.choosing(cudaWalk{axes: []strided{{elems(c.Out[0]), each{1}}}}, c)
}

// choosing chooses for tokens that are at the places of a walk.
func (o top2) choosing(w cudaWalk, c *cuda.Call) ([]cuda.Command, error) {
	tokens, experts := lastRows(c.In[0])
	return only(overElements("top_two", tokens, w.args(c.Out[0], c.Out[1], c.In[0], c.In[1],
		o.Salt, experts, o.Threshold)...))
}

func top2WindowCUDA(o top2Window, c *cuda.Call) ([]cuda.Command, error) {
	return o.Top2.choosing(o.Win.walk(), c)
}

// minusOne sets all elements, i32, to −1.
func minusOne(o cuda.Operand) cuda.Command {
	return cuda.Fill{Addr: o.Addr, Words: int64(elems(o)), Word: math.MaxUint32}
}

func routeCUDA(o route, c *cuda.Call) ([]cuda.Command, error) {
	return routedBy(o, c, c.In[1].Addr, 2), nil
}

func routeChoicesCUDA(o routeChoices, c *cuda.Call) ([]cuda.Command, error) {
	return routedBy(route(o), c, 0, c.In[0].Type.Size(1)), nil
}

// routedBy packs choices: first ones in operand 0 and second ones at an address, or, if that is 0,
// all of them in operand 0, so many of each token.
func routedBy(o route, c *cuda.Call, second uint64, each int) []cuda.Command {
	n := elems(c.In[0])
	return []cuda.Command{minusOne(c.Out[0]), minusOne(c.Out[1]),
		launched("route_counts", o.Experts, c.Scratch, c.In[0], second, n, o.Experts),
		launched("route", o.Experts, c.Out[0], c.Out[1], c.Out[2], c.Scratch, c.In[0], second, n,
			each, o.Experts)}
}

func positionsCUDA(o positions, c *cuda.Call) ([]cuda.Command, error) {
	groups, tokens := c.In[0].Type.Size(0), c.In[0].Type.Size(1)
	return []cuda.Command{minusOne(c.Out[0]), minusOne(c.Out[1]),
		launched("positions", groups*o.Experts, c.Out[0], c.Out[1], c.In[0], c.In[1], groups,
			tokens, o.Experts, o.Capacity)}, nil
}

// inSlots is what tokens have in slots from first on: 1, or gates, whose addresses are not 0.
func inSlots(c *cuda.Call, ga, gb uint64, first int) ([]cuda.Command, error) {
	tokens, slots := lastRows(c.Out[0])
	return only(overElements("slots", tokens*slots, c.Out[0], c.In[0], c.In[1], ga, gb, tokens,
		slots, first))
}

func (dispatch) from(c *cuda.Call, first int) ([]cuda.Command, error) {
	return inSlots(c, 0, 0, first)
}

func (combine) from(c *cuda.Call, first int) ([]cuda.Command, error) {
	return inSlots(c, c.In[2].Addr, c.In[3].Addr, first)
}

func gatherRowsCUDA(_ gatherRows, c *cuda.Call) ([]cuda.Command, error) {
	return tableOf(c.In[0], c.In[1], 0).take(c.Out[0], c.In[0], c.In[1], true)
}

// choicesSummed adds up each token's packed rows, by its gates unless their address is 0.
func choicesSummed(c *cuda.Call, gates uint64, inv cuda.Operand) ([]cuda.Command, error) {
	tokens, n := lastRows(c.Out[0])
	return only(overElements("sum_choices", tokens*n, c.Out[0], c.In[0], gates, inv, tokens,
		inv.Type.Size(1), n))
}

func sumRowsCUDA(_ sumRows, c *cuda.Call) ([]cuda.Command, error) {
	return choicesSummed(c, 0, c.In[1])
}

func combineRowsCUDA(_ combineRows, c *cuda.Call) ([]cuda.Command, error) {
	return choicesSummed(c, c.In[1].Addr, c.In[2])
}

func spreadRowsCUDA(_ spreadRows, c *cuda.Call) ([]cuda.Command, error) {
	tokens, n := lastRows(c.In[0])
	return only(overElements("spread_choices", elems(c.Out[0]), c.Out[0], c.In[0], c.In[1],
		c.In[2], c.In[3], tokens, c.In[1].Type.Size(1), n))
}

func dotRowsCUDA(_ dotRows, c *cuda.Call) ([]cuda.Command, error) {
	tokens, n := lastRows(c.In[0])
	return only(overRows("dot_choices", elems(c.Out[0]), n, c.Out[0], c.In[0], c.In[1], c.In[2],
		tokens, c.Out[0].Type.Size(1), n))
}

// groups is packed rows that are multiplied by the weights of experts, of which the offsets
// are on the device: the launch has blocks for the most tiles that there may be.
type groups struct{ experts, rows, k, n int }

func (g groups) product(out, x, w cuda.Operand, offsets uint64, trans bool) cuda.Command {
	most := g.rows/tileSide + g.experts
	return launched(kernelOf("grouped_product", x), most*tilesOf(g.n), out, x, w, offsets,
		g.experts, g.rows, g.k, g.n, most, trans)
}

func (g groups) outer(out, a, b cuda.Operand, offsets uint64) cuda.Command {
	return launched(kernelOf("grouped_outer", a), g.experts*tilesOf(g.k)*tilesOf(g.n), out, a, b,
		offsets, g.experts, g.rows, g.k, g.n)
}

func groupedMatMulCUDA(o groupedMatMul, c *cuda.Call) ([]cuda.Command, error) {
	return o.with(c, 0)
}

func groupedMatMulPartCUDA(o groupedMatMulPart, c *cuda.Call) ([]cuda.Command, error) {
	return o.Of.with(c, o.First)
}

// with multiplies by the weights of experts from first on; rows of others are zero.
func (o groupedMatMul) with(c *cuda.Call, first int) ([]cuda.Command, error) {
	g := groups{c.In[1].Type.Size(0), c.In[0].Type.Size(0), c.In[0].Type.Size(1),
		c.Out[0].Type.Size(1)}
	return []cuda.Command{wiped(c.Out[0]),
		g.product(c.Out[0], c.In[0], c.In[1], c.In[2].Addr+4*uint64(first), o.Trans)}, nil
}

func groupedOuterCUDA(_ groupedOuter, c *cuda.Call) ([]cuda.Command, error) {
	return outerFrom(c, 0)
}

func groupedOuterPartCUDA(o groupedOuterPart, c *cuda.Call) ([]cuda.Command, error) {
	return outerFrom(c, o.First)
}

// outerFrom is the products of experts from first on.
func outerFrom(c *cuda.Call, first int) ([]cuda.Command, error) {
	g := groups{c.Out[0].Type.Size(0), c.In[0].Type.Size(0), c.In[0].Type.Size(1),
		c.In[1].Type.Size(1)}
	return only(g.outer(c.Out[0], c.In[0], c.In[1], c.In[2].Addr+4*uint64(first)))
}

func expertMatMulCUDA(o expertMatMul, c *cuda.Call) ([]cuda.Command, error) {
	x := c.In[1].Type
	g := groups{1, x.Size(0), x.Size(1), c.Out[0].Type.Size(1)}
	list := []cuda.Command{g.product(c.Out[0], c.In[1], c.In[2],
		c.In[3].Addr+4*uint64(o.Expert), o.Trans)}
	if c.In[0].Addr != c.Out[0].Addr {
		list = append([]cuda.Command{copiedWhole(c.Out[0], c.In[0])}, list...)
	}
	return list, nil
}

func expertOuterCUDA(o expertOuter, c *cuda.Call) ([]cuda.Command, error) {
	a, b := c.In[0].Type, c.In[1].Type
	g := groups{1, a.Size(0), a.Size(1), b.Size(1)}
	return only(g.outer(c.Out[0], c.In[0], c.In[1], c.In[2].Addr+4*uint64(o.Expert)))
}

func init() {
	cuda.Register(top2CUDA, nil)
	cuda.Register(top2WindowCUDA, nil)
	cuda.Register(routeCUDA, func(o route, _, _ []tensor.Type) int64 {
		return 4 * int64(o.Experts)
	})
	cuda.Register(routeChoicesCUDA, func(o routeChoices, _, _ []tensor.Type) int64 {
		return 4 * int64(o.Experts)
	})
	cuda.Register(positionsCUDA, nil)
	cuda.Register(inRowsCUDA[dispatch], nil)
	cuda.Register(inRowsCUDA[combine], nil)
	cuda.Register(gatherRowsCUDA, nil)
	cuda.Register(sumRowsCUDA, nil)
	cuda.Register(combineRowsCUDA, nil)
	cuda.Register(spreadRowsCUDA, nil)
	cuda.Register(dotRowsCUDA, nil)
	cuda.Register(groupedMatMulCUDA, nil)
	cuda.Register(groupedMatMulPartCUDA, nil)
	cuda.Register(groupedOuterCUDA, nil)
	cuda.Register(groupedOuterPartCUDA, nil)
	cuda.Register(expertMatMulCUDA, nil)
	cuda.Register(expertOuterCUDA, nil)
}
