package models

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestClosedForm: the closed form is that of the graph for any sizes.
func TestClosedForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := NewMoEConfig("s512")
		for _, f := range []*int{&c.ExpertHidden, &c.Pairs, &c.Layers, &c.Width, &c.Heads,
			&c.HeadWidth} {
			*f = rapid.IntRange(1, 4).Draw(t, "size")
		}
		c.Experts = rapid.IntRange(2, 6).Draw(t, "experts")
		c.Length = rapid.IntRange(2, 9).Draw(t, "length")
		c.Vocab = rapid.IntRange(2, 40).Draw(t, "vocabulary")
		c.Group = rapid.IntRange(1, 20).Draw(t, "group")
		c.Sparse, c.Stacked = rapid.Bool().Draw(t, "sparse"), rapid.Bool().Draw(t, "stacked")
		if c.Validate() != nil {
			t.Skip("a group without slots")
		}
		m, err := MoE(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Graph.Verify(); err != nil {
			t.Fatal(err)
		}
		if got := m.Graph.Parameters(); got != c.Parameters() {
			t.Fatalf("%d parameters, %d by closed form", got, c.Parameters())
		}
	})
}

func TestBadConfigs(t *testing.T) {
	if _, err := NewMoEConfig("huge"); err == nil ||
		err.Error() != `unknown size "huge": want s512, s64 or base` {
		t.Errorf("unknown size: %v", err)
	}
	for _, test := range []struct {
		change func(*MoEConfig)
		want   string // beginning of the error
	}{
		{func(c *MoEConfig) { c.Size = "" }, `unknown size "": want s512`},
		{func(c *MoEConfig) { *c = MoEConfig{Size: "s64"} }, "--experts is 0: want 2 or more"},
		{func(c *MoEConfig) { c.Experts = 1 }, "--experts is 1: want 2 or more"},
		{func(c *MoEConfig) { c.Experts = -3 }, "--experts is -3: want 2 or more"},
		{func(c *MoEConfig) { c.Experts = math.MaxInt }, "--experts is 9223372036854775807: want " +
			"16384 or less"},
		{func(c *MoEConfig) { c.Experts = 41 }, "--experts is 41, too many for groups of 32 " +
			"tokens: want 40 or less, a larger --batch, or --moe sparse"},
		{func(c *MoEConfig) { c.Pairs, c.Length = 1, 31; c.Group = 30 }, "--experts is 8, too " +
			"many for groups of 1 tokens"},
		{func(c *MoEConfig) { c.ExpertHidden = 0 }, "--expert-hidden is 0: want 1 or more"},
		{func(c *MoEConfig) { c.ExpertHidden = 1 << 40 }, "--expert-hidden is 1099511627776: want"},
		{func(c *MoEConfig) { c.Pairs = 0 }, "--batch is 0: want 1 or more"},
		{func(c *MoEConfig) { c.Pairs = -1 }, "--batch is -1: want 1 or more"},
		{func(c *MoEConfig) { c.Pairs = math.MaxInt32 }, "--batch is 2147483647: want 1048576 or " +
			"less"},
		{func(c *MoEConfig) { c.Length = 1 }, "--length is 1: want 2 or more"},
		{func(c *MoEConfig) { c.Length = math.MaxInt32 }, "--length is 2147483647: want " +
			"65536 or less"},
		{func(c *MoEConfig) { c.Layers = 0 }, "--depth is 0"},
		{func(c *MoEConfig) { c.Width = 0 }, "width is 0"},
		{func(c *MoEConfig) { c.Heads = -1 }, "heads is -1"},
		{func(c *MoEConfig) { c.HeadWidth = 0 }, "head width is 0"},
		{func(c *MoEConfig) { c.Vocab = 1 }, "vocabulary is 1: want 2"},
		{func(c *MoEConfig) { c.Group = 0 }, "group is 0"},
		{func(c *MoEConfig) { c.FactorMin = 0 }, "least factored axis is 0"},
		{func(c *MoEConfig) { c.Dropout = 1 }, "dropout is 1: want a number from 0 to 1"},
		{func(c *MoEConfig) { c.Smoothing = -0.1 }, "label smoothing is -0.1"},
		{func(c *MoEConfig) { c.Jitter = float32(math.NaN()) }, "jitter is NaN"},
		{func(c *MoEConfig) { c.CapacityTrain = 0 }, "capacity factor is 0: want a positive " +
			"number"},
		{func(c *MoEConfig) { c.CapacityEval = math.Inf(1) }, "capacity factor is +Inf"},
		{func(c *MoEConfig) { c.Schedule = InverseSqrt{} }, "learning rate scale is 0"},
		{func(c *MoEConfig) { c.Schedule.Warmup = 0 }, "learning rate warm-up is 0 steps"},
		{func(c *MoEConfig) { c.Schedule.Decay = -1 }, "learning rate decay over -1"},
		// the graph finds that out
		{func(c *MoEConfig) { c.Width, c.Vocab = math.MaxInt32, math.MaxInt32 },
			"model moe of size s512: "},
	} {
		c := config(t, "s512")
		test.change(&c)
		_, err := MoE(c)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v, want one line that begins %s", err, test.want)
		}
	}
}

// TestGroups: groups are equal, as few as they can be, and at most as large as
// asked; base gates a batch of 4 pairs as one group with 40 slots an expert.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := MoEConfig{Pairs: rapid.IntRange(1, 40).Draw(t, "pairs"),
			Length: rapid.IntRange(1, 40).Draw(t, "length"),
			Group:  rapid.IntRange(1, 100).Draw(t, "group")}
		n, size := c.experts().Groups(c.Pairs * c.Length)
		if n*size != c.Pairs*c.Length || size > c.Group {
			t.Fatalf("%d groups of %d", n, size)
		}
		for k := size + 1; k <= c.Group; k++ {
			if c.Pairs*c.Length%k == 0 {
				t.Fatalf("groups of %d, %d would do", size, k)
			}
		}
	})
	for _, row := range []struct{ experts, capacity int }{{12, 106}, {32, 40}, {48, 26}, {160, 8},
		{200, 6}, {400, 3}} {
		c := config(t, "base")
		c.Experts = row.experts
		if n, size := c.experts().Groups(c.Pairs * c.Length); n != 1 || size != 1024 ||
			c.experts().Slots(size, c.CapacityTrain) != row.capacity {
			t.Errorf("%d experts: %d groups of %d, capacity %d, want 1 of 1024, %d", row.experts, n,
				size, c.experts().Slots(size, c.CapacityTrain), row.capacity)
		}
	}
}

func TestSchedule(t *testing.T) {
	base := config(t, "base").Schedule
	for step, want := range map[int]float64{0: 1e-6, 4999: 0.005, 9999: 0.01, 39999: 0.005} {
		if got := float64(base.At(step)); math.Abs(got-want) > 1e-6*want {
			t.Errorf("base, step %d: %v, want %v", step, got, want)
		}
	}
	ending := InverseSqrt{Scale: 1, Warmup: 1, Total: 100, Decay: 10}
	for step, want := range map[int]float64{0: 1, 3: 0.5, 98: 0.2 / math.Sqrt(99), 99: 0.01,
		100: 0} {
		if got := float64(ending.At(step)); math.Abs(got-want) > 1e-6 {
			t.Errorf("ending, step %d: %v, want %v", step, got, want)
		}
	}
}
