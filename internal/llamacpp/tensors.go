package llamacpp

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/legible"
)

// Tensor is one of a file with what it is in a public checkpoint.
type Tensor struct {
	gguf.Tensor
	Public string // its name there
	// Turned says that it has rows where the checkpoint has columns.
	Turned bool
	heads  int // whose rows are in pairs; 0: none are
	// Expert is which of Experts it is, whose matrices are one tensor there, that of expert 0
	// first; Experts is 0 of what is a tensor by itself. Sizes are those of the one.
	Expert, Experts int
}

// Bytes are those that it has in the file.
func (t Tensor) Bytes() int64 { return t.Tensor.Bytes() / int64(max(1, t.Experts)) }

// Start is where it begins in its tensor there, in bytes.
func (t Tensor) Start() int64 { return int64(t.Expert) * t.Bytes() }

// Rows is the number of rows, each of which is stored as a whole: of a vector, 1.
func (t Tensor) Rows() int {
	rows := 1
	for _, n := range t.Sizes[:max(0, len(t.Sizes)-1)] {
		rows *= n
	}
	return rows
}

// Ordered says that rows, or the elements of a vector, are in the order of the checkpoint.
func (t Tensor) Ordered() bool { return t.heads == 0 }

// Row is the row, or the element of a vector, of the file that the one of a number in the
// checkpoint is: within a head, which turns as a whole there, neighbours are half a head apart.
func (t Tensor) Row(i int) int {
	if t.Ordered() {
		return i
	}
	size := t.Sizes[0] / t.heads
	within, half := i%size, size/2
	return i - within + 2*(within%half) + within/half
}

// names are what tensors of a layer are called here, and in public checkpoints of LLaMA and GPT-2.
var (
	llamaNames = map[string]string{
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
		"attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
		"attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
		"ffn_down": "mlp.down_proj",
	}
	expertNames = map[string]string{"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj",
		"ffn_down_exps": "down_proj"}
	mixtralNames = map[string]string{"ffn_gate_exps": "w1", "ffn_up_exps": "w3",
		"ffn_down_exps": "w2"}
	llamaWhole = map[string]string{"token_embd": "model.embed_tokens", "output_norm": "model.norm",
		"output": "lm_head"}
	gpt2Names = map[string]string{"attn_norm": "ln_1", "ffn_norm": "ln_2",
		"attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_up": "mlp.c_fc",
		"ffn_down": "mlp.c_proj"}
	gpt2Whole = map[string]string{"token_embd": "wte", "position_embd": "wpe",
		"output_norm": "ln_f", "output": "lm_head"}
)

// inLayer is the name of a tensor of a layer: its number, what it is, and weight or bias.
var inLayer = regexp.MustCompile(`^blk\.(0|[1-9][0-9]*)\.([a-z_]+)\.(weight|bias)$`)

// publicName is what a public checkpoint calls a tensor; "" if nothing is known of it.
func publicName(arch, name string) string {
	layer, whole, before := llamaNames, llamaWhole, "model.layers."
	if arch == archGPT2 {
		layer, whole, before = gpt2Names, gpt2Whole, "h."
	}
	if m := inLayer.FindStringSubmatch(name); m != nil {
		if what, ok := layer[m[2]]; ok {
			return before + m[1] + "." + what + "." + m[3]
		}
		return ""
	}
	what, kind, _ := strings.Cut(name, ".")
	if public, ok := whole[what]; ok && (kind == "weight" || kind == "bias") {
		return public + "." + kind
	}
	return ""
}

// tensors are those of the file, as public checkpoints have them.
func (k *keys) tensors() (all []Tensor, err error) {
	heads := k.number("attention.head_count", "")
	keyHeads := heads
	if n := k.number("attention.head_count_kv", ""); n > 0 {
		keyHeads = n
	}
	if k.countExperts(); k.err != nil {
		return nil, k.err
	}
	for _, t := range k.file.Tensors() {
		if t.Name == ropeFactors && k.arch != archGPT2 {
			continue
		}
		out := Tensor{Tensor: t, Public: publicName(k.arch, t.Name)}
		if k.experts > 0 && out.Public == "" {
			own, err := k.byExperts(t)
			if err != nil {
				return nil, err
			}
			all = append(all, own...)
			continue
		}
		if out.Public == "" {
			return nil, fmt.Errorf("tensor %s belongs to no network of architecture %s",
				legible.Cut(t.Name, 100), k.arch)
		}
		if err := out.arrange(k.arch, int(heads), int(keyHeads)); err != nil {
			return nil, err
		}
		all = append(all, out)
	}
	return all, k.err
}

// byExperts are the matrices of experts that are one tensor, or the matrix of their gate.
func (k *keys) byExperts(t gguf.Tensor) (all []Tensor, err error) {
	place, names := expertsOf(k.arch)
	m := inLayer.FindStringSubmatch(t.Name)
	if len(m) > 0 && m[3] == "weight" {
		before := "model.layers." + m[1] + "." + place + "."
		if m[2] == gateName {
			return []Tensor{{Tensor: t, Public: before + "gate.weight"}}, nil
		}
		if what := names[m[2]]; what != "" && len(t.Sizes) == 3 && int64(t.Sizes[0]) == k.experts {
			for i := range t.Sizes[0] {
				one := Tensor{Tensor: t, Expert: i, Experts: t.Sizes[0],
					Public: fmt.Sprintf("%sexperts.%d.%s.weight", before, i, what)}
				one.Sizes = t.Sizes[1:]
				all = append(all, one)
			}
			return all, nil
		}
	}
	return nil, fmt.Errorf("tensor %s of axes %v belongs to no network of architecture %s with %d "+
		"experts", legible.Cut(t.Name, 100), t.Sizes, k.arch, k.experts)
}

// gateName is the tensor of a layer that gates experts.
const gateName = "ffn_gate_inp"

// expertsOf is where public checkpoints have the experts of an architecture, and what their
// matrices are called here and there: LLaMA's with experts are Mixtral.
func expertsOf(arch string) (place string, names map[string]string) {
	if arch == archLlama {
		return "block_sparse_moe", mixtralNames
	}
	return "mlp", expertNames
}

// expertPart is the part of a public name behind a layer's that is an expert's matrix or the gate.
var expertPart = regexp.MustCompile(
	`^(mlp|block_sparse_moe)\.(?:gate|experts\.(0|[1-9][0-9]*)\.([a-z_0-9]+))$`)

// expertFileName is what a file calls the tensor of a part of a layer, and which of them it is.
func expertFileName(arch, part string) (name string, expert int) {
	place, names := expertsOf(arch)
	m := expertPart.FindStringSubmatch(part)
	if m == nil || m[1] != place {
		return "", 0
	}
	if m[2] == "" {
		return gateName, 0
	}
	expert, err := strconv.Atoi(m[2])
	if err != nil {
		return "", 0
	}
	return keyOf(names, m[3]), expert
}

// arrange finds out how rows are arranged in a file of an architecture.
func (t *Tensor) arrange(arch string, heads, keyHeads int) error {
	what := ""
	if m := inLayer.FindStringSubmatch(t.Name); m != nil {
		what = m[2]
	}
	switch {
	case arch == archGPT2:
		t.Turned = what != "" && len(t.Sizes) == 2
	case arch == archLlama && what == "attn_q":
		t.heads = heads
	case arch == archLlama && what == "attn_k":
		t.heads = keyHeads
	}
	if t.heads > 0 && (len(t.Sizes) == 0 || t.Sizes[0]%(2*t.heads) != 0) {
		return fmt.Errorf("tensor %s has axes %v: want rows of %d heads", t.Name, t.Sizes, t.heads)
	}
	return nil
}

// fileName is what a file calls a tensor of public checkpoints, "" if it has none, and of which
// expert it is.
func fileName(arch, public string) (name string, expert int) {
	layer, whole, before := llamaNames, llamaWhole, "model.layers."
	if arch == archGPT2 {
		layer, whole, before = gpt2Names, gpt2Whole, "h."
	}
	at := strings.LastIndexByte(public, '.')
	if at < 0 {
		return "", 0
	}
	public, kind := public[:at], public[at:]
	if rest, ok := strings.CutPrefix(public, before); ok {
		number, part, _ := strings.Cut(rest, ".")
		if name = keyOf(layer, part); name == "" {
			name, expert = expertFileName(arch, part)
		}
		if name != "" {
			name = "blk." + number + "." + name + kind
		}
		return name, expert
	}
	if name = keyOf(whole, public); name != "" {
		name += kind
	}
	return name, 0
}

// keyOf is the key that has a value; "" if none has.
func keyOf(names map[string]string, value string) string {
	for key, v := range names {
		if v == value {
			return key
		}
	}
	return ""
}
