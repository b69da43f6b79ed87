package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/libm"
)

// RotaryScaling slows the turning of rotary positions, for contexts longer than those that a
// model was trained with. The zero value does not.
type RotaryScaling struct {
	// Kind is what public checkpoints call it: "linear" (all rates by the factor), "dynamic" (none
	// up to Original positions, which are the most that are taken), "llama3" (slow rates by the
	// factor, quick ones not) or "yarn" (Peng and others 2023); "" for none.
	Kind      string
	Factor    float64
	Original  int     // positions of the training before, of all but linear
	Low, High float64 // turns within Original below which rates are slow, and above which quick
	// Attention is what yarn multiplies queries and keys by.
	Attention float64
}

// validate reports a scaling that cannot be, or not for texts of some length.
func (r RotaryScaling) validate(length int) error {
	switch r.Kind {
	case "":
		return nil
	case "linear", "dynamic", "llama3", "yarn":
	default:
		return fmt.Errorf("rotary scaling is %.20q: want linear, dynamic, llama3 or yarn", r.Kind)
	}
	switch {
	case !(r.Factor >= 1 && r.Factor <= 1e6):
		return fmt.Errorf("rotary scaling has factor %v: want a number from 1", r.Factor)
	case r.Kind != "linear" && r.Original < 1:
		return fmt.Errorf("rotary scaling has %d positions before: want 1 or more", r.Original)
	case r.Kind == "dynamic" && length > r.Original:
		return fmt.Errorf("--length is %d: want %d or less, beyond which dynamic rotary scaling "+
			"turns all positions otherwise", length, r.Original)
	case (r.Kind == "llama3" || r.Kind == "yarn") && !(r.Low > 0 && r.High > r.Low &&
		r.High <= math.MaxFloat32):
		return fmt.Errorf("rotary scaling is between %v and %v turns: want one above the other",
			r.Low, r.High)
	case r.Kind == "yarn" && !(r.Attention > 0 && r.Attention <= 1e6):
		return fmt.Errorf("rotary scaling multiplies by %v: want a number above 0", r.Attention)
	}
	return nil
}

// rates are those of the pairs of heads of some width, by the formulas of transformers 5.24.
func (r RotaryScaling) rates(base float64, width int) []float64 {
	rates := make([]float64, width/2)
	for i := range rates {
		rate := libm.Pow(base, -2*float64(i)/float64(width))
		switch r.Kind {
		case "linear":
			rate /= r.Factor
		case "llama3":
			share := (float64(rate*float64(r.Original))/(2*math.Pi) - r.Low) / (r.High - r.Low)
			rate = between(rate/r.Factor, rate, share)
		case "yarn":
			from := math.Max(math.Floor(r.pair(r.High, base, width)), 0)
			to := math.Min(math.Ceil(r.pair(r.Low, base, width)), float64(width-1))
			if from == to {
				to += 0.001
			}
			rate = between(rate, rate/r.Factor, (float64(i)-from)/(to-from))
		}
		rates[i] = rate
	}
	return rates
}

// pair is where among the pairs there is one that turns so often within the original positions.
func (r RotaryScaling) pair(turns, base float64, width int) float64 {
	return float64(width) * libm.Log(float64(r.Original)/(turns*2*math.Pi)) / (2 * libm.Log(base))
}

// between is a share of the way from a to b, of those between 0 and 1.
func between(a, b, share float64) float64 {
	share = math.Min(math.Max(share, 0), 1)
	return float64((1-share)*a) + float64(share*b)
}

// tempering is what yarn multiplies queries and keys by, by its factor.
func tempering(factor, share float64) float64 {
	if !(factor > 1) {
		return 1
	}
	return float64(0.1*share*libm.Log(factor)) + 1
}

// temper is what logits are multiplied by beside 1/√size.
func (r RotaryScaling) temper() float64 {
	if r.Kind == "yarn" {
		return r.Attention * r.Attention
	}
	return 1
}

// turn gives queries and keys, f32[texts n heads size], their positions in LlamaBlocks.
func (p *gpt) turn(x graph.Value) graph.Value {
	if p.Blocks == GPT2Blocks {
		return x
	}
	at := p.first
	if p.positions.Valid() {
		at = p.positions
	}
	if p.rates.Valid() {
		return ops.RotaryBy(x, at, p.rates, ops.Rotation{Heads: true})
	}
	return ops.Rotary(x, at, ops.Rotation{Base: p.RotaryBase, Heads: true})
}

// scaled are the rates of scaled positions; none if they are not scaled.
func (c GPTConfig) scaled(g *graph.Graph) graph.Value {
	if c.Rotary.Kind == "" || c.Rotary.Kind == "dynamic" {
		return graph.Value{}
	}
	rates := c.Rotary.rates(float64(c.RotaryBase), c.size())
	x := tensor.New(tensor.Of(graph.F64, len(rates)))
	copy(x.F64(), rates)
	return g.Constant("rates", x)
}
