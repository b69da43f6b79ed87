package onnx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// differentiable are node tests whose gradients are compared with differences.
var differentiable = []string{
	"softmax_axis_1", "logsoftmax_axis_0", "layer_normalization_3d_axis1_epsilon",
	"rms_normalization_4d_axis2", "group_normalization_epsilon", "instancenorm_epsilon",
	"batchnorm_epsilon", "batchnorm_epsilon_training_mode", "l1normalization_axis_0",
	"l2normalization_axis_1", "lrn", "mvn", "nllloss_NCd1d2_with_weight_reduction_mean",
	"sce_NCd1_mean_weight_negative_ii_log_prob", "attention_4d_gqa_softcap",
	"attention_4d_causal_with_past_and_present", "attention_4d_attn_mask",
	"attention_3d_with_past_and_present_qk_matmul_softmax", "rotary_embedding_no_position_ids",
	"linear_attention_gated_delta_gqa", "causal_conv_with_state_silu_with_past_state", "swiglu",
	"resize_downsample_scales_cubic_antialias", "resize_upsample_scales_linear",
	"resize_tf_crop_and_resize", "resize_upsample_sizes_nearest", "affine_grid_2d",
	"roialign_aligned_true", "dft_axis", "stft_with_window", "globalaveragepool", "globalmaxpool",
	"conv_with_strides_and_asymmetric_padding", "convtranspose_1d", "maxpool_2d_dilations",
	"averagepool_2d_ceil", "averagepool_2d_dilations", "lppool_2d_strides", "lstm_with_peepholes",
	"gru_seq_length", "simple_rnn_reverse",
}

// TestGradients compares gradients of node tests with central differences.
func TestGradients(t *testing.T) {
	dir := os.Getenv("GOMEM_ONNX_NODES")
	if dir == "" {
		t.Skip("GOMEM_ONNX_NODES names no directory of node tests")
	}
	for _, name := range differentiable {
		t.Run(name, func(t *testing.T) {
			c, err := readNode(filepath.Join(dir, "test_"+name))
			if err == nil {
				err = c.tried(func() error { return c.differentiate(t) })
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// random is a view of a type with normal elements.
func random(rng *rand.Rand, kind graph.Type) tensor.View {
	v := tensor.New(kind)
	for i := range v.F32() {
		v.F32()[i] = float32(rng.NormFloat64())
	}
	return v
}

// differentiate compares the gradients of a weighted sum of all outputs.
func (c *nodeTest) differentiate(t *testing.T) error {
	_, m, fed, outs, err := c.apply()
	if err != nil {
		return err
	}
	var fetched []graph.Value
	p := perturbed{t: t, fed: fed}
	rng := rand.New(rand.NewPCG(1, 2))
	var sum graph.Value
	for _, y := range outs {
		if y.Type().DType != graph.F32 {
			continue
		}
		weights := random(rng, y.Type())
		p.weights = append(p.weights, weights.F32())
		fetched = append(fetched, y)
		part := ops.Sum(ops.Mul(y, m.Graph.Constant("weights", weights)))
		if sum.Valid() {
			part = ops.Add(sum, part)
		}
		sum = part
	}
	var wrt []graph.Value
	for v := range fed {
		if v.Type().DType == graph.F32 {
			wrt = append(wrt, v)
		}
	}
	slices.SortFunc(wrt, func(a, b graph.Value) int { return int(a.Node.ID - b.Node.ID) })
	grads := autodiff.Grad(sum, wrt...)
	var of []graph.Value
	for i, g := range grads {
		if g.Valid() {
			fetched, of = append(fetched, g), append(of, wrt[i])
		}
	}
	if len(of) == 0 {
		return fmt.Errorf("there is no gradient: %v", m.Err())
	}
	s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{DeviceBytes: 1 << 28},
		gomem.Target{Name: "sum", Fetches: fetched})
	if err != nil {
		return err
	}
	defer s.Close()
	p.s = s
	got, err := s.Step(t.Context(), "sum", fed)
	if err != nil {
		return err
	}
	for i, v := range of {
		gradient := got[len(p.weights)+i].To(graph.F32).F32()
		for range min(8, len(gradient)) {
			k := rng.IntN(len(gradient))
			if err := p.differ(v, k, float64(gradient[k])); err != nil {
				return err
			}
		}
	}
	return nil
}

// perturbed is a step whose inputs are changed.
type perturbed struct {
	t       *testing.T
	s       *gomem.Session
	fed     gomem.Feeds
	weights [][]float32 // of the outputs, which are fetched first
}

// sum is the weighted sum of the outputs, in 64 bits.
func (p *perturbed) sum() (sum float64, err error) {
	got, err := p.s.Step(p.t.Context(), "sum", p.fed)
	if err != nil {
		return 0, err
	}
	for i, weights := range p.weights {
		for k, y := range got[i].F32() {
			sum += float64(y) * float64(weights[k])
		}
	}
	return sum, nil
}

// differ compares a gradient with the difference that element k of an input makes.
func (p *perturbed) differ(v graph.Value, k int, gradient float64) error {
	at, most := p.fed[v], 1.0
	for _, x := range at.F32() {
		most = max(most, math.Abs(float64(x)))
	}
	step := math.Ldexp(1, math.Ilogb(most)-10)
	defer func() { p.fed[v] = at }()
	var sums [2]float64
	for i, by := range []float32{-float32(step), float32(step)} {
		moved := tensor.New(at.Type)
		copy(moved.Data, at.Data)
		moved.F32()[k] += by
		p.fed[v] = moved
		var err error
		if sums[i], err = p.sum(); err != nil {
			return err
		}
	}
	want := (sums[1] - sums[0]) / (2 * step)
	if !(math.Abs(gradient-want) <= 1e-2*max(1, math.Abs(want))) {
		return fmt.Errorf("the gradient of element %d of %s is %v, want %v", k, v.Node.Name,
			gradient, want)
	}
	return nil
}
