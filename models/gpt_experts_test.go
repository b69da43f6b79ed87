package models

import (
	"maps"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph/ops"
)

var (
	configMixtral = strings.NewReplacer(`"llama"`, `"mixtral"`, "Llama", "Mixtral").Replace(
		with(configLlama, `"num_local_experts":2,"num_experts_per_tok":1`))
	configQwenExperts = strings.NewReplacer(`"llama"`, `"qwen3_moe"`, "Llama", "Qwen3Moe").Replace(
		with(configLlama, `"num_experts":2,"num_experts_per_tok":2,"moe_intermediate_size":96`))

	publicMixtral = withExperts("model.layers.0.block_sparse_moe.", 5632, "w1", "w3", "w2",
		nil)
	publicQwenExperts = withExperts("model.layers.0.mlp.", 96, "gate_proj", "up_proj", "down_proj",
		map[string][]int{"model.layers.0.self_attn.q_norm.weight": {64},
			"model.layers.0.self_attn.k_norm.weight": {64}})
)

// withExperts are the tensors of LLaMA with two experts in place of a feed-forward sublayer, and
// more.
func withExperts(place string, hidden int, gate, up, down string,
	more map[string][]int) map[string][]int {
	all := maps.Clone(publicLlama)
	maps.DeleteFunc(all, func(name string, _ []int) bool { return strings.Contains(name, ".mlp.") })
	maps.Copy(all, more)
	all[place+"gate.weight"] = []int{2, 2048}
	for _, expert := range []string{"experts.0.", "experts.1."} {
		all[place+expert+gate+".weight"] = []int{hidden, 2048}
		all[place+expert+up+".weight"] = []int{hidden, 2048}
		all[place+expert+down+".weight"] = []int{2048, hidden}
	}
	return all
}

// TestMixtralByDefault: what a config.json does not say is what MixtralConfig has.
func TestMixtralByDefault(t *testing.T) {
	c := parsed(t, `{"model_type":"mixtral"}`)
	if n := c.Parameters(); n != 46_702_792_704 || c.Window != 0 || c.RotaryBase != 1e6 ||
		c.Eps != 1e-5 || c.PerToken != 2 || !c.Renorm {
		t.Errorf("%d parameters: %+v", n, c)
	}
}

// TestExpertParameters: the graph has as many parameters as the formula says, and with few bits
// all matrices but gates are packed.
func TestExpertParameters(t *testing.T) {
	for _, text := range []string{configMixtral, configQwenExperts} {
		c := parsed(t, text)
		c.Layers, c.Texts, c.Length, c.Vocab, c.Width, c.Heads, c.KeyHeads = 2, 1, 8, 64, 64, 4, 2
		c.Hidden, c.Experts, c.PerToken = 96, 5, 3
		if got := buildGPT(t, c).Graph.Parameters(); got != c.Parameters() {
			t.Errorf("%s: %d parameters, by formula %d", c.Family, got, c.Parameters())
		}
		c.Store = "q8_0"
		d, err := DecodeGPT(c, 1)
		if err != nil {
			t.Fatal(err)
		}
		formats := ops.Packings(d.Graph)
		for _, n := range d.Graph.Variables() {
			matrix := !n.State && n.Out[0].Rank() == 2 && !strings.HasSuffix(n.Name, "/gate/weight")
			if matrix != (formats[n] == "q8_0") {
				t.Errorf("%s: %s is held as %q", c.Family, n.Name, formats[n])
			}
		}
	}
}
