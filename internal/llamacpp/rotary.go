package llamacpp

import (
	"encoding/binary"
	"math"

	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/libm"
)

// rotary reads how positions turn heads of some width.
func (k *keys) rotary(size int64) {
	k.config["rope_theta"] = float32(10000)
	k.real(k.config, "rope.freq_base", "rope_theta")
	scaling := map[string]any{}
	kind, said := k.get("rope.scaling.type").(string)
	k.real(scaling, "rope.scaling.factor", "factor")
	if k.get("rope.scale_linear") != nil { // of old files
		kind, said = "linear", true
		k.real(scaling, "rope.scale_linear", "factor")
	}
	if n := k.number("rope.scaling.original_context_length", ""); kind == "yarn" && n > 0 {
		scaling["original_max_position_embeddings"] = n
	}
	if kind == "yarn" {
		k.real(scaling, "rope.scaling.yarn_beta_fast", "beta_fast")
		k.real(scaling, "rope.scaling.yarn_beta_slow", "beta_slow")
	}
	for _, key := range []string{"attn_factor", "yarn_attn_factor", "yarn_ext_factor"} {
		if x := k.get("rope.scaling." + key); x != nil && x != float32(1) {
			k.fail("%s.rope.scaling.%s is %s: want 1", k.arch, key, brief(x))
		}
	}
	switch {
	case !said || kind == "none":
	case kind == "linear" || kind == "yarn":
		scaling["rope_type"] = kind
		k.config["rope_scaling"] = scaling
	default:
		k.fail("%s.rope.scaling.type is %s: want none, linear or yarn", k.arch, brief(kind))
	}
	if factors, ok := k.file.Tensor(ropeFactors); ok && k.err == nil {
		k.factors(factors, int(size))
	}
}

// ropeFactors is the tensor of what the rate of every pair of a head is divided by.
const ropeFactors = "rope_freqs.weight"

// The scaling of LLaMA 3, but for its factor and the positions of the training before, is this in
// all of its models.
const (
	slowTurns  = 1.0
	quickTurns = 4.0
	usualPast  = 8192
)

// factors finds the scaling of LLaMA 3 of which the factors of pairs come. They are all that a file
// says of it.
func (k *keys) factors(t gguf.Tensor, size int) {
	if t.Type != gguf.F32 || len(t.Sizes) != 1 || t.Sizes[0] != size/2 {
		k.fail("tensor %s is %s %v: want F32 [%d]", t.Name, t.Type, t.Sizes, size/2)
		return
	}
	raw := make([]byte, t.Bytes())
	if err := k.file.ReadPart(t.Name, raw, 0); err != nil {
		k.fail("%w", err)
		return
	}
	have := make([]float64, size/2)
	most := 1.0
	for i := range have {
		have[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		most = max(most, have[i])
	}
	base := 10000.0
	if x, ok := k.config["rope_theta"].(float32); ok {
		base = float64(x)
	}
	past := pastOf(have, base, most)
	for i, want := range factorsOf(base, most, past, size) {
		if !(math.Abs(have[i]-want) <= 1e-4*want) {
			k.fail("tensor %s has %v for pair %d: want %v, as the scaling of LLaMA 3 by %v has "+
				"it, since no other is known", t.Name, have[i], i, want, most)
			return
		}
	}
	if most > 1 {
		k.config["rope_scaling"] = map[string]any{"rope_type": "llama3", "factor": most,
			"low_freq_factor": slowTurns, "high_freq_factor": quickTurns,
			"original_max_position_embeddings": past}
	}
}

// rateOf is how far pair i of a head turns from one position to the next.
func rateOf(base float64, i, size int) float64 {
	return libm.Pow(base, -2*float64(i)/float64(size))
}

// pastOf is the positions of the training before, by a pair that is neither quick nor slow. If
// there is none, those of all of LLaMA's models.
func pastOf(factors []float64, base, most float64) int {
	for i, f := range factors {
		if f <= 1 || f >= most {
			continue
		}
		share := (1/f - 1/most) / (1 - 1/most)
		turns := float64(share*(quickTurns-slowTurns)) + slowTurns
		if past := math.Round(turns * 2 * math.Pi / rateOf(base, i, 2*len(factors))); past < 1<<30 {
			return int(past)
		}
	}
	return usualPast
}

// factorsOf are the factors of the pairs of heads, by llama.cpp's conversion of LLaMA 3.
func factorsOf(base, factor float64, past, size int) []float64 {
	all := make([]float64, size/2)
	for i := range all {
		turns := rateOf(base, i, size) * float64(past) / (2 * math.Pi)
		share := min(max((turns-slowTurns)/(quickTurns-slowTurns), 0), 1)
		all[i] = 1 / (float64((1-share)/factor) + share)
	}
	return all
}
