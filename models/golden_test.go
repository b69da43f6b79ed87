package models

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
)

var rewrite = flag.Bool("rewrite", false, "write the graphs' digests anew")

const goldenGraphs = "testdata/graphs.txt"

// TestGraphsAreTheSame: every model's graph, with its names, phases and entry points, is
// what testdata says. Checkpoints, plans and measurements are of these graphs: a change
// here is a change of what users have. With -rewrite the file is written anew.
func TestGraphsAreTheSame(t *testing.T) {
	longtest.Skip(t)
	var b strings.Builder
	for _, size := range []string{"s512", "s64", "base"} {
		for _, fine := range []bool{false, true} {
			for _, v := range forms(t, size, fine) {
				m, err := v.build()
				if err != nil {
					t.Fatalf("%s: %v", v.name, err)
				}
				fmt.Fprintf(&b, "%s %s fine=%t %s %s\n", v.name, size, fine, m.Graph.Digest(),
					entries(m))
			}
		}
	}
	if *rewrite {
		if err := os.WriteFile(goldenGraphs, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(goldenGraphs)
	if err != nil {
		t.Fatal(err)
	}
	want, have := strings.Split(string(text), "\n"), strings.Split(b.String(), "\n")
	if len(want) != len(have) {
		t.Fatalf("%d graphs, want %d", len(have), len(want))
	}
	for i := range want {
		if want[i] != have[i] {
			t.Errorf("the graph is\n%s\nwant\n%s", have[i], want[i])
		}
	}
}

// form is a way to build a model.
type form struct {
	name  string
	build func() (*Model, error)
}

// forms are the ways in which each of the models can be built.
func forms(t *testing.T, size string, fine bool) (list []form) {
	add := func(name string, build func() (*Model, error)) {
		list = append(list, form{name, build})
	}
	moe, err := NewMoEConfig(size)
	resnet, err1 := NewResNetConfig(size)
	transformer, err2 := NewTransformerConfig(size)
	wgan, err3 := NewWGANConfig(size)
	speech, err4 := NewDeepSpeechConfig(size)
	for _, err := range []error{err, err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	moe.Fine, resnet.Fine, transformer.Fine, wgan.Fine, speech.Fine = fine, fine, fine, fine, fine
	sparse, stacked, packed := moe, moe, moe
	sparse.Sparse, stacked.Stacked, packed.Sparse, packed.Stacked = true, true, true, true
	add("moe", func() (*Model, error) { return MoE(moe) })
	add("moe/sparse", func() (*Model, error) { return MoE(sparse) })
	add("moe/stacked", func() (*Model, error) { return MoE(stacked) })
	add("moe/packed", func() (*Model, error) { return MoE(packed) })
	add("transformer", func() (*Model, error) { return Transformer(transformer) })
	second := resnet
	second.Version = 2
	add("resnet", func() (*Model, error) { return ResNet(resnet) })
	add("resnet/2", func() (*Model, error) { return ResNet(second) })
	good := wgan
	good.Nets = "good"
	add("wgan", func() (*Model, error) { return WGAN(wgan) })
	add("wgan/good", func() (*Model, error) { return WGAN(good) })
	unrolled := speech
	unrolled.Unrolled = true
	add("deepspeech", func() (*Model, error) { return DeepSpeech(speech) })
	add("deepspeech/unrolled", func() (*Model, error) { return DeepSpeech(unrolled) })
	if !fine {
		add("lstm-lm", func() (*Model, error) {
			c, err := NewLSTMLMConfig(size)
			if err != nil {
				return nil, err
			}
			return LSTMLM(c)
		})
		add("topic", func() (*Model, error) {
			c, err := NewTopicConfig(size)
			if err != nil {
				return nil, err
			}
			return Topic(c)
		})
	}
	for _, blocks := range []string{GPT2Blocks, LlamaBlocks} {
		if !fine {
			add("gpt/"+blocks, func() (*Model, error) {
				c, err := NewGPTConfig(size, blocks)
				if err != nil {
					return nil, err
				}
				return GPT(c)
			})
		}
	}
	return list
}

// entries is a digest of what the graph's does not cover: phases, and what is executed.
func entries(m *Model) string {
	h := sha256.New()
	for _, n := range m.Graph.Nodes() {
		fmt.Fprintln(h, n.Phase, n.State)
	}
	show := func(values ...graph.Value) { fmt.Fprintln(h, values) }
	show(m.Seed, m.LearningRate, m.Step, m.EvalLoss)
	show(m.Data...)
	show(m.EvalOutputs...)
	metrics := func(list []Metric) {
		for _, metric := range list {
			fmt.Fprintln(h, metric.Name, metric.Value)
		}
	}
	metrics(m.EvalMetrics)
	for _, o := range m.Objectives {
		fmt.Fprintln(h, o.Name, o.Times, o.Loss)
		metrics(o.Metrics)
		for _, n := range o.Updates {
			fmt.Fprintln(h, n.Name)
		}
	}
	fmt.Fprintln(h, m.Name, m.Size, m.Domain, m.Unit, m.Classes, m.DeviceBytes, m.HostBytes)
	for _, step := range []int{0, 1, 10, 99, 100, 10000, 1 << 20} {
		fmt.Fprintln(h, m.Schedule.At(step))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}
