package llamacpp

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/gguf"
)

// fileOf is a file of values and tensors of f32 whose numbers do not matter.
func fileOf(t *testing.T, m gguf.Metadata, tensors ...gguf.Tensor) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	zeros := func(x gguf.Tensor, w io.Writer) error {
		_, err := w.Write(make([]byte, x.Bytes()))
		return err
	}
	if err := gguf.Write(&b, m, tensors, zeros); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// values are those of a small network.
func values(arch string) gguf.Metadata {
	m := gguf.Metadata{{Key: "general.architecture", Value: arch}}
	for _, p := range []gguf.Pair{{Key: "block_count", Value: uint32(1)},
		{Key: "embedding_length", Value: uint32(16)}, {Key: "context_length", Value: uint32(8)},
		{Key: "feed_forward_length", Value: uint32(8)},
		{Key: "attention.head_count", Value: uint32(2)},
		{Key: "attention.layer_norm_rms_epsilon", Value: float32(1e-5)}} {
		m = append(m, gguf.Pair{Key: arch + "." + p.Key, Value: p.Value})
	}
	return m
}

var table = gguf.Tensor{Name: "token_embd.weight", Sizes: []int{4, 16}}

// TestRow: within each head of llama, row 2·i+j of the file is row j·half+i of a checkpoint, and
// nothing moves in other architectures.
func TestRow(t *testing.T) {
	query := gguf.Tensor{Name: "blk.0.attn_q.weight", Sizes: []int{16, 16}}
	for _, arch := range []string{"llama", "qwen2", "qwen3"} {
		m, err := Read(fileOf(t, values(arch), table, query))
		if err != nil {
			t.Fatal(err)
		}
		q := m.Tensors[1]
		if q.Public != "model.layers.0.self_attn.q_proj.weight" || q.Rows() != 16 ||
			q.Ordered() != (arch != "llama") {
			t.Errorf("%s: %+v", arch, q)
		}
		const heads, half = 2, 4
		for h := range heads {
			for i := range half {
				for j := range 2 {
					ours, file := h*2*half+j*half+i, h*2*half+2*i+j
					if arch != "llama" {
						file = ours
					}
					if got := q.Row(ours); got != file {
						t.Errorf("%s: row %d is %d, want %d", arch, ours, got, file)
					}
				}
			}
		}
	}
}

// TestRotary: how positions are scaled is what a config.json says.
func TestRotary(t *testing.T) {
	scaling := func(key string, value any) gguf.Pair {
		return gguf.Pair{Key: "llama.rope." + key, Value: value}
	}
	for _, row := range []struct {
		more []gguf.Pair
		want string
	}{
		{nil, `"rope_theta":10000,`},
		{[]gguf.Pair{scaling("scaling.type", "none")}, `"rope_theta":10000,`},
		{[]gguf.Pair{scaling("scale_linear", float32(4))},
			`"rope_scaling":{"factor":4,"rope_type":"linear"}`},
		{[]gguf.Pair{scaling("scaling.type", "linear"), scaling("scaling.factor", float32(2.5))},
			`"rope_scaling":{"factor":2.5,"rope_type":"linear"}`},
		{[]gguf.Pair{scaling("scaling.type", "yarn"), scaling("scaling.factor", float32(4)),
			scaling("scaling.original_context_length", uint32(2)),
			scaling("scaling.yarn_beta_fast", float32(16)),
			scaling("scaling.yarn_ext_factor", float32(1))},
			`"rope_scaling":{"beta_fast":16,"factor":4,"original_max_position_embeddings":2,` +
				`"rope_type":"yarn"}`},
	} {
		m, err := Read(fileOf(t, append(values("llama"), row.more...), table))
		if err != nil || !strings.Contains(string(m.Config), row.want) ||
			strings.Contains(string(m.Config), "rope_scaling") != strings.Contains(row.want,
				"rope_scaling") {
			t.Errorf("%v: %s, %v, want %s", row.more, m.Config, err, row.want)
		}
	}
}
