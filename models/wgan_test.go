package models

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
)

func wganConfig(t testing.TB, size string) WGANConfig {
	t.Helper()
	c, err := NewWGANConfig(size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func buildWGAN(t testing.TB, c WGANConfig) *Model {
	t.Helper()
	m, err := WGAN(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWGANParameters: the networks have as many as those of the public source, in
// all and by stage.
func TestWGANParameters(t *testing.T) {
	for _, c := range []struct {
		nets string
		want map[string]int
	}{
		{"resnet", map[string]int{
			"": 16_808_388, "generator/": 9_189_587, "critic/": 7_618_801,

			"generator/dense/": 1_056_768, "generator/4x4/[0-5]": 5_121_024,
			"generator/4x4/up":    984_960,
			"generator/8x8/[0-5]": 1_282_560, "generator/8x8/up": 246_720,
			"generator/16x16/[0-5]": 321_792,
			"generator/16x16/up":    61_920, "generator/32x32/[0-5]": 81_024,
			"generator/32x32/up":    15_600,
			"generator/64x64/[0-4]": 17_120, "generator/conv/": 99,

			"critic/conv/": 128, "critic/64x64/[0-4]": 17_120, "critic/64x64/down": 9_456,
			"critic/32x32/[0-5]": 81_024, "critic/32x32/down": 37_344,
			"critic/16x16/[0-5]": 321_792,
			"critic/16x16/down":  148_416, "critic/8x8/[0-5]": 1_282_560,
			"critic/8x8/down":  591_744,
			"critic/4x4/[0-5]": 5_121_024, "critic/dense/": 8_193,
		}},
		{"good", map[string]int{
			"": 16_032_324, "generator/": 8_540_483, "critic/": 7_491_841,
		}},
	} {
		config := wganConfig(t, "base")
		config.Nets = c.nets
		have := map[string]int{}
		for _, n := range buildWGAN(t, config).Graph.Variables() {
			for prefix := range c.want {
				if !n.State && under(n.Name, prefix) {
					have[prefix] += n.Out[0].Elems()
				}
			}
		}
		for prefix, want := range c.want {
			if have[prefix] != want {
				t.Errorf("%s: %s* has %d parameters, want %d", c.nets, prefix, have[prefix], want)
			}
		}
	}
}

// under says whether a name begins with a prefix, which may end with a range of
// digits.
func under(name, prefix string) bool {
	stage, digits, ranged := strings.Cut(prefix, "[")
	rest, ok := strings.CutPrefix(name, stage)
	return ok && (!ranged || rest[0] >= digits[0] && rest[0] <= digits[2])
}

// TestWGANReplica: s64 is base in small, but for the sizes, and fine too.
func TestWGANReplica(t *testing.T) {
	for _, nets := range []string{"resnet", "good"} {
		small, large := wganConfig(t, "s64"), wganConfig(t, "base")
		small.Nets, large.Nets = nets, nets
		if !slices.Equal(shape(buildWGAN(t, small)), shape(buildWGAN(t, large))) {
			t.Errorf("%s: the replica's graph is another one", nets)
		}
	}
}

// TestWGANWork: an image takes what was computed for the public source, within 3%,
// forward and backward.
func TestWGANWork(t *testing.T) {
	for nets, want := range map[string][2]float64{"resnet": {4.54 + 7.13, 1.85 + 2.79},
		"good": {16.9 + 26.6, 6.7 + 10.6}} {
		c := wganConfig(t, "base")
		c.Nets = nets
		m := buildWGAN(t, c)
		for i, o := range m.Objectives {
			work := m.Work(o)
			both := work[graph.Forward].FLOPs + work[graph.Backward].FLOPs
			have := float64(both) / float64(c.Images) / 1e9
			t.Logf("%s, %s: %.2f GFLOP an image, %d + %d operations", nets, o.Name, have,
				work[0].Nodes, work[1].Nodes)
			if math.Abs(have-want[i]) > 0.03*want[i] {
				t.Errorf("%s, %s: %.2f GFLOP an image, want %.2f", nets, o.Name, have, want[i])
			}
		}
	}
}

// TestWGANGradients: no objective computes gradients of the other network's
// weights, and the critic's none of the generator.
func TestWGANGradients(t *testing.T) {
	for _, fine := range []bool{false, true} {
		c := wganConfig(t, "s64")
		c.Fine = fine
		m := buildWGAN(t, c)
		if m.Objectives[0].Times != 5 || m.Objectives[1].Times != 1 || m.Executions() != 6 {
			t.Errorf("%d executions", m.Executions())
		}
		backward := map[string]int{}
		for _, o := range m.Objectives {
			for _, n := range m.live(o) {
				other := map[string]string{"critic": "generator/", "generator": "critic/"}[o.Name]
				if n.Kind == graph.KindUpdate && strings.HasPrefix(n.Name, other) {
					t.Errorf("objective %s has %s", o.Name, n.Name)
				}
				if n.Phase != graph.Backward {
					continue
				}
				if strings.Contains(n.Name, "/generator/") {
					backward[o.Name+"'s of the generator"]++
				}
				if strings.HasPrefix(n.OpName(), "conv2d_filter_grad") &&
					!strings.Contains(n.Name, "/generator/") {
					backward[o.Name+"'s of the critic's filters"]++
				}
			}
		}
		t.Log(backward)
		if backward["critic's of the generator"] > 0 ||
			backward["generator's of the critic's filters"] > 0 {
			t.Errorf("useless gradients: %v", backward)
		}
		if backward["generator's of the generator"] == 0 ||
			backward["critic's of the critic's filters"] == 0 {
			t.Errorf("gradients are missing: %v", backward)
		}
	}
}

// live are the nodes that an objective executes.
func (m *Model) live(o Objective) []*graph.Node {
	roots := []graph.NodeID{o.Loss.Node.ID}
	for _, n := range o.Updates {
		roots = append(roots, n.ID)
	}
	var list []*graph.Node
	for id, live := range m.Graph.Ancestors(roots) {
		if live {
			list = append(list, m.Graph.Node(graph.NodeID(id)))
		}
	}
	return list
}

func TestWGANNames(t *testing.T) {
	names := map[string]bool{}
	for _, nets := range []string{"resnet", "good"} {
		c := wganConfig(t, "s512")
		c.Nets, c.Blocks = nets, 2
		for _, n := range buildWGAN(t, c).Graph.Variables() {
			names[n.Name] = true
		}
	}
	for _, want := range []string{
		"generator/dense/weights", "generator/dense/bias", "generator/2x2/1/conv2/filters",
		"generator/2x2/up/shortcut/filters",
		"generator/32x32/0/norm/scale", "generator/conv/bias", "generator/norm/bias",
		"critic/conv/filters", "critic/32x32/down/conv1/bias",
		"critic/2x2/1/norm/bias", "critic/4x4/down/norm2/scale", "critic/dense/weights",
		"critic/dense/bias/first", "critic/dense/bias/second",
	} {
		if !names[want] {
			t.Errorf("there is no variable %s", want)
		}
	}
}

func TestWGANRefuses(t *testing.T) {
	for _, row := range []struct {
		change func(*WGANConfig)
		want   string
	}{
		{func(c *WGANConfig) { c.Size = "s1" }, `unknown size "s1": want s512, s64 or base`},
		{func(c *WGANConfig) { c.Nets = "bad" }, `--nets is "bad": want resnet or good`},
		{func(c *WGANConfig) { c.Blocks = 0 }, "blocks is 0: want 1 or more"},
		{func(c *WGANConfig) { c.Blocks = 1 << 11 }, "blocks is 2048: want 1024 or less"},
		{func(c *WGANConfig) { c.Images = 0 }, "--batch is 0: want 1 or more"},
		{func(c *WGANConfig) { c.Pixels = -16 }, "--pixels is -16: want 16 or more"},
		{func(c *WGANConfig) { c.Pixels = 40 }, "--pixels is 40: want a multiple of 16"},
		{func(c *WGANConfig) { c.Pixels = 1 << 15 }, "--pixels is 32768: want 16384 or less"},
		{func(c *WGANConfig) { c.Dim = 6 }, "width is 6: want a multiple of 4"},
		{func(c *WGANConfig) { c.Dim = 0 }, "width is 0: want 1 or more"},
		{func(c *WGANConfig) { c.Noise = 0 }, "noise is 0: want 1 or more"},
		{func(c *WGANConfig) { c.CriticTimes = 0 }, "critic's steps is 0: want 1 or more"},
		{func(c *WGANConfig) { c.Penalty = -1 }, "weight of the gradient penalty is -1: want a " +
			"number from 0"},
		{func(c *WGANConfig) { c.Penalty = float32(math.NaN()) }, "weight of the gradient " +
			"penalty is NaN"},
		{func(c *WGANConfig) { c.Schedule = -1 }, "learning rate is -1: want a positive number"},
		{func(c *WGANConfig) { c.Schedule = Constant(math.NaN()) }, "learning rate is NaN: want " +
			"a positive number"},
		{func(c *WGANConfig) { c.Schedule = Constant(math.Inf(1)) }, "learning rate is +Inf: " +
			"want a positive number"},
		{func(c *WGANConfig) { c.Images = math.MaxInt32 }, "--batch is 2147483647: want " +
			"1048576 or less"},
		{func(c *WGANConfig) { c.Images, c.Pixels = 1<<20, 1<<14 }, "--batch times --pixels " +
			"squared is 281474976710656: want 68719476736 or less"},
	} {
		c := wganConfig(t, "s512")
		row.change(&c)
		_, err := WGAN(c)
		if err == nil || !strings.HasPrefix(err.Error(), row.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not say %q", err, row.want)
		}
	}
	if _, err := NewWGANConfig("tiny"); err == nil {
		t.Error("size tiny is known")
	}
	c := wganConfig(t, "s512")
	c.Nets, c.Dim, c.Blocks = "good", 3, 1
	if _, err := WGAN(c); err != nil {
		t.Errorf("good networks of an odd width: %v", err)
	}
}

func TestWGANSchedule(t *testing.T) {
	for _, c := range []struct {
		size, nets  string
		given, want Constant
	}{{"base", "resnet", 0, 1e-4}, {"base", "good", 0, 1e-4}, {"s64", "resnet", 0, 2e-3},
		{"s512", "good", 0, 5e-4}, {"s64", "good", 0.5, 0.5}} {
		config := wganConfig(t, c.size)
		config.Nets, config.Schedule = c.nets, c.given
		if have := buildWGAN(t, config).Schedule; have != c.want {
			t.Errorf("%s %s has learning rate %v, want %v", c.size, c.nets, have, c.want)
		}
	}
}
