package models

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// expertLayout is how a family has experts in place of its feed-forward sublayers: what its
// tensors are called, and what a config.json that does not say it means.
type expertLayout struct {
	place          string // of the layer, with gate and experts
	gate, up, down string // the matrices of an expert
	count          string // the member that says how many experts there are, as it is written
	hidden         string // that of an expert's hidden units
	experts, each  int
	units          int
	renorm         bool // always, else as norm_topk_prob says
}

var (
	mixtralExperts = &expertLayout{place: "block_sparse_moe", gate: "w1", up: "w3", down: "w2",
		count: "num_local_experts", hidden: "intermediate_size", experts: 8, each: 2, units: 14336,
		renorm: true}
	qwenExperts = &expertLayout{place: "mlp", gate: "gate_proj", up: "up_proj", down: "down_proj",
		count: "num_experts", hidden: "moe_intermediate_size", experts: 128, each: 8, units: 768}
)

// experts is how the network has them; nil for none.
func (p *gpt) experts() *expertLayout { return families[p.familyOf()].experts }

// fitsExperts reports numbers of experts that a family does not have.
func fitsExperts(c GPTConfig, f family) error {
	e := f.experts
	switch {
	case e == nil && (c.Experts != 0 || c.PerToken != 0 || c.Renorm):
		return fmt.Errorf("family %s has no experts", c.familyOf())
	case e == nil:
		return nil
	case c.Experts < 1 || c.PerToken < 1 || c.PerToken > c.Experts:
		return fmt.Errorf("%d experts, %d of them for a token: want 1 or more, and as many or "+
			"fewer", c.Experts, c.PerToken)
	case e.renorm && !c.Renorm:
		return fmt.Errorf("gates do not add up to 1: want that they do in family %s", c.familyOf())
	}
	return nil
}

// experts reads how many there are. Layers without experts among others are refused.
func (m *members) experts(c *GPTConfig, e *expertLayout) {
	if e == nil {
		m.demand("", ofDense)
		return
	}
	c.Experts, c.PerToken, c.Hidden, c.Renorm = e.experts, e.each, e.units, e.renorm
	m.take(&c.Experts, "num_experts", "num_local_experts")
	m.take(&c.PerToken, "num_experts_per_tok")
	delete(m.left, "intermediate_size") // of layers without experts
	m.take(&c.Hidden, e.hidden)
	if !e.renorm {
		m.take(&c.Renorm, "norm_topk_prob")
	}
	m.demand("", []demand{{"decoder_sparse_step", []string{"1"}}, {"mlp_only_layers",
		[]string{"[]"}}, {"router_jitter_noise", []string{"0"}}})
}

// publishedExperts is what a config.json says of experts.
type publishedExperts struct {
	Local    int   `json:"num_local_experts,omitempty"`
	Experts  int   `json:"num_experts,omitempty"`
	PerToken int   `json:"num_experts_per_tok,omitempty"`
	Hidden   int   `json:"moe_intermediate_size,omitempty"`
	Renorm   *bool `json:"norm_topk_prob,omitempty"`
}

// publishExperts is that of a network.
func publishExperts(c GPTConfig, e *expertLayout) (p publishedExperts) {
	if e == nil {
		return p
	}
	p.PerToken = c.PerToken
	if e == mixtralExperts {
		p.Local = c.Experts
		return p
	}
	p.Experts, p.Hidden, p.Renorm = c.Experts, c.Hidden, &c.Renorm
	return p
}

// expertParameters are the elements of a layer's experts and their gate.
func expertParameters(c GPTConfig) int64 {
	return int64(c.Experts) * (3*int64(c.Width)*int64(c.Hidden) + int64(c.Width))
}

// learnsExpert reports whether a name within a layer is that of its gate or of an expert's matrix.
func learnsExpert(c GPTConfig, e *expertLayout, part string) bool {
	name, ok := strings.CutPrefix(part, e.place+".")
	if !ok {
		return false
	}
	if name == "gate.weight" {
		return true
	}
	name, ok = strings.CutPrefix(name, "experts.")
	number, matrix, _ := strings.Cut(name, ".")
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i < 0 || i >= c.Experts || number != strconv.Itoa(i) {
		return false
	}
	return slices.Contains([]string{e.gate, e.up, e.down}, strings.TrimSuffix(matrix, ".weight")) &&
		strings.HasSuffix(matrix, ".weight")
}

// mixture sends each token of x, f32[texts n width], to the experts that its gate likes best, and
// adds up what they make of it, by their gates (Shazeer and others 2017; Jiang and others 2024).
// No token is dropped.
func (p *gpt) mixture(c *nn.Ctx, x graph.Value, e *expertLayout) graph.Value {
	if !x.Valid() {
		return x
	}
	shape := x.Type().Sizes()
	leave := c.Enter()
	x = ops.ReshapeSizes(x, shape[0]*shape[1], p.Width)
	leave()
	gates, choices := p.choose(c.In("gate"), x)
	leave = c.Enter()
	rows, inv, offsets := ops.RouteChoices(choices, p.Experts)
	x = ops.GatherRows(x, rows, inv)
	gate := p.byExperts(c, x, e.gate, offsets, p.Hidden)
	y := ops.Mul(ops.Silu(gate), p.byExperts(c, x, e.up, offsets, p.Hidden))
	y = ops.CombineRows(p.byExperts(c, y, e.down, offsets, p.Width), gates, inv, rows)
	leave()
	return ops.ReshapeSizes(y, shape...)
}

// choose is the gates of each token's experts, f32[T k], and which they are, i32[T k]. The gate's
// matrix has no adapters: peft has none for it either.
func (p *gpt) choose(c *nn.Ctx, x graph.Value) (gates, choices graph.Value) {
	defer c.Enter()()
	w := c.Param("weight", nn.Normal(0.02), p.Experts, p.Width)
	gates, choices = ops.TopK(ops.Softmax(ops.MatMulT(x, w, false, true)), p.PerToken)
	if p.Renorm {
		gates = ops.Div(gates, ops.SumKeep(gates, 1))
	}
	return gates, choices
}

// byExperts is the products of packed rows with one matrix of their experts.
func (p *gpt) byExperts(c *nn.Ctx, x graph.Value, name string, offsets graph.Value,
	out int) graph.Value {
	deviation, in := 0.02, p.Hidden
	if out == p.Hidden {
		in = p.Width
	} else {
		deviation /= math.Sqrt(2 * float64(p.Layers))
	}
	var weights []graph.Value
	format := ""
	for i := range p.Experts {
		at := c.Of(fmt.Sprintf("experts/%d/%s", i, name))
		w, packed := nn.Packed(at, "weight", out, in)
		if format = packed; format == "" {
			w = at.ParamOf("weight", nn.Normal(deviation), tensor.Of(graph.F32, out, in))
		}
		weights = append(weights, w)
	}
	if format != "" {
		return ops.ExpertMatMulPacked(x, weights, offsets, format)
	}
	return ops.ExpertMatMulT(x, weights, offsets)
}
