package onnx

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// small makes a builder of the model of the small size, changed.
func small[C any](config func(size string) (C, error), build func(C) (*models.Model, error),
	change func(*C)) func() (*models.Model, error) {
	return func() (*models.Model, error) {
		c, err := config("s512")
		if err != nil {
			return nil, err
		}
		if change != nil {
			change(&c)
		}
		return build(c)
	}
}

// gpt is a configuration with blocks of a kind.
func gpt(blocks string) func(size string) (models.GPTConfig, error) {
	return func(size string) (models.GPTConfig, error) { return models.NewGPTConfig(size, blocks) }
}

// exportable are the models that are exported.
var exportable = map[string]func() (*models.Model, error){
	"resnet": small(models.NewResNetConfig, models.ResNet, nil),
	"gpt2":   small(gpt(models.GPT2Blocks), models.GPT, nil),
	"llama":  small(gpt(models.LlamaBlocks), models.GPT, nil),
	"qwen": small(gpt(models.LlamaBlocks), models.GPT, func(c *models.GPTConfig) {
		c.Family, c.QueryBias, c.Window, c.WindowFrom = "qwen2", true, 7, 1
		c.Rotary = models.RotaryScaling{Kind: "linear", Factor: 2}
	}),
	"transformer": small(models.NewTransformerConfig, models.Transformer,
		func(c *models.TransformerConfig) { c.Fine = true }),
	"deepspeech": small(models.NewDeepSpeechConfig, models.DeepSpeech, nil),
	"deepspeech-scanned": small(models.NewDeepSpeechConfig, models.DeepSpeech,
		func(c *models.DeepSpeechConfig) { c.Scanned = true }),
	"lstm-lm": small(models.NewLSTMLMConfig, models.LSTMLM, nil),
	"moe": small(models.NewMoEConfig, models.MoE,
		func(c *models.MoEConfig) { c.Sparse = true }),
	"moe-dense": small(models.NewMoEConfig, models.MoE,
		func(c *models.MoEConfig) { c.Sparse = false }),
	"moe-stacked": small(models.NewMoEConfig, models.MoE,
		func(c *models.MoEConfig) { c.Sparse, c.Stacked, c.Fine = true, true, true }),
	"wgan": small(models.NewWGANConfig, models.WGAN, nil),
	"wgan-good": small(models.NewWGANConfig, models.WGAN,
		func(c *models.WGANConfig) { c.Nets = "good" }),
}

// fed is numbers for the inputs of a graph that an output depends on.
func fed(out graph.Value) map[string]tensor.View {
	g := out.Graph()
	live, feeds := g.Ancestors([]graph.NodeID{out.Node.ID}), map[string]tensor.View{}
	for k, n := range g.Inputs() {
		if !live[n.ID] {
			continue
		}
		x := tensor.New(n.Out[0])
		for i := range n.Out[0].Elems() {
			if x.Type.DType == graph.F32 {
				x.F32()[i] = float32((7*i+k)%13)/6 - 1
			} else {
				x.I32()[i] = int32((5*i + k) % 11)
			}
		}
		feeds[n.Name] = x
	}
	return feeds
}

// computed is an output in a session, whose variables are set by load, nil: drawn.
func computed(t *testing.T, out graph.Value, feeds map[string]tensor.View,
	load func(s *gomem.Session) error, after func(s *gomem.Session)) tensor.View {
	t.Helper()
	s, err := gomem.Compile(t.Context(), out.Graph(), gomem.Options{DeviceBytes: 1 << 30, Seed: 1},
		gomem.Target{Name: "out", Fetches: []graph.Value{out}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if load != nil {
		if err := load(s); err != nil {
			t.Fatal(err)
		}
	}
	by, live := gomem.Feeds{}, out.Graph().Ancestors([]graph.NodeID{out.Node.ID})
	for _, n := range out.Graph().Inputs() {
		if x, ok := feeds[strings.TrimSuffix(n.Name, ".input")]; ok && live[n.ID] {
			by[n.Value(0)] = x
		}
	}
	got, err := s.Step(t.Context(), "out", by)
	if err != nil {
		t.Fatal(err)
	}
	if after != nil {
		after(s)
	}
	return got[0]
}

// TestExport: a model that is exported, and read again, computes the same; so does onnxruntime, in
// the Python that GOMEM_ONNXRUNTIME names.
func TestExport(t *testing.T) {
	for name, build := range exportable {
		t.Run(name, func(t *testing.T) { exports(t, build) })
	}
}

func exports(t *testing.T, build func() (*models.Model, error)) {
	m, err := build()
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, m.Predicted())
}

// roundTrip exports a value, and compares what is computed of the file.
func roundTrip(t *testing.T, out graph.Value) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	feeds := fed(out)
	want := computed(t, out, feeds, nil, func(s *gomem.Session) {
		if err := Export(path, []Output{{"logits", out}}, s.Get); err != nil {
			t.Fatal(err)
		}
	})
	if python := os.Getenv("GOMEM_ONNXRUNTIME"); python != "" {
		beside(t, python, path, feeds, want)
	}
	net, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	again := nn.NewModel()
	outs := net.Apply(again.Evaluation(), net.Inputs(again)...)
	if err := again.Err(); err != nil {
		t.Fatal(err)
	}
	got := computed(t, outs[0], feeds, func(s *gomem.Session) error {
		return net.Load(s.Variables(), s.Set)
	}, nil)
	if err := alike(got, want); err != nil {
		t.Error(err)
	}
}

// alike wants differences of no more than 1e-5 of the largest number.
func alike(got, want tensor.View) error {
	if !got.Type.SameShape(want.Type) {
		return fmt.Errorf("%s, want %s", got.Type, want.Type)
	}
	largest, most := 0.0, 0.0
	for i, y := range want.F32() {
		largest = max(largest, math.Abs(float64(y)))
		most = max(most, math.Abs(float64(got.F32()[i]-y)))
	}
	if !(most <= 1e-5*largest) {
		return fmt.Errorf("differences of %v, and numbers of %v", most, largest)
	}
	return nil
}

// script runs a file in onnxruntime, of inputs in files, and writes its result.
const script = `
import sys
import numpy as np
import onnx
import onnxruntime
path = sys.argv[1]
onnx.checker.check_model(path, full_check=True)
s = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
feeds = {}
for i in s.get_inputs():
    kind = np.float32 if i.type == "tensor(float)" else np.int32
    feeds[i.name] = np.fromfile(path + "." + i.name, kind).reshape(i.shape)
s.run(None, feeds)[0].tofile(path + ".out")
`

// beside compares with onnxruntime.
func beside(t *testing.T, python, path string, feeds map[string]tensor.View, want tensor.View) {
	t.Helper()
	for name, x := range feeds {
		if err := os.WriteFile(path+"."+name, x.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(context.Background(), python, "-c", script,
		path).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v: %s", path, err, out)
		return
	}
	data, err := os.ReadFile(path + ".out")
	if err == nil && len(data) != len(want.Data) {
		t.Fatalf("%s: %d bytes, want %d", path, len(data), len(want.Data))
	}
	if err == nil {
		err = alike(tensor.View{Type: want.Type, Data: data}, want)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// TestNotExported: what ONNX has no form of is named, and no file is there.
func TestNotExported(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Of(graph.F32, 4))
	y := ops.Dropout(x, g.Input("seed", graph.Of(graph.I32, 2)), 0.5, "noise")
	path := filepath.Join(t.TempDir(), "model.onnx")
	err := Export(path, []Output{{"y", y}}, nil)
	if err == nil || !strings.Contains(err.Error(), "no form of these operations: dropout") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a file")
	}
}

// TestExportAttention: of every mask that there is a form of.
func TestExportAttention(t *testing.T) {
	for name, change := range map[string]func(o *ops.AttentionOptions, ids graph.Value){
		"plain":   func(*ops.AttentionOptions, graph.Value) {},
		"capped":  func(o *ops.AttentionOptions, _ graph.Value) { o.Softcap = 0.7 },
		"padding": func(o *ops.AttentionOptions, ids graph.Value) { o.Padding = ids },
		"documents": func(o *ops.AttentionOptions, ids graph.Value) {
			o.Causal, o.Documents, o.HeadsFirst = true, ids, true
		},
		"sinks": func(o *ops.AttentionOptions, _ graph.Value) {
			o.Causal, o.Window, o.Sinks = true, 2, 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, o := graph.New(), ops.AttentionOptions{}
			change(&o, g.Input("ids", graph.Of(graph.I32, 2, 9)))
			q, k := graph.Of(graph.F32, 2, 7, 6, 4), graph.Of(graph.F32, 2, 9, 3, 4)
			if o.HeadsFirst {
				q, k = graph.Of(graph.F32, 2, 6, 7, 4), graph.Of(graph.F32, 2, 3, 9, 4)
			}
			roundTrip(t, ops.Attention(g.Input("q", q), g.Input("k", k), g.Input("v", k), o))
		})
	}
}
