package models

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/nn"
)

func resNetConfig(t testing.TB, size string) ResNetConfig {
	t.Helper()
	c, err := NewResNetConfig(size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func buildResNet(t testing.TB, c ResNetConfig) *Model {
	t.Helper()
	m, err := ResNet(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestResNetParameters: the networks of Wei's thesis and of SuperNeurons have
// these numbers of layers and parameters; the thesis prints 60 M, 172 M, 385 M
// and 697 M, of 152, 504, 1001 and 1916 layers.
func TestResNetParameters(t *testing.T) {
	longtest.Skip(t)
	for _, row := range []struct {
		blocks        [4]int
		depth         int
		first, second int64 // parameters of versions 1 and 2
	}{
		{[4]int{3, 8, 36, 3}, 152, 60_194_857, 60_187_177},
		{[4]int{3, 32, 130, 3}, 506, 171_931_689, 171_924_009},
		{[4]int{3, 32, 295, 3}, 1001, 356_267_049, 356_259_369},
		{[4]int{3, 32, 321, 3}, 1079, 385_313_833, 385_306_153},
		{[4]int{3, 32, 600, 3}, 1916, 697_008_169, 697_000_489},
		{[4]int{3, 8, 153, 3}, 503, 190_905_385, 190_897_705},
		{[4]int{3, 8, 154, 3}, 506, 192_022_569, 192_014_889},
		{[4]int{3, 8, 319, 3}, 1001, 376_357_929, 376_350_249},
		{[4]int{3, 8, 624, 3}, 1916, 717_099_049, 717_091_369},
		{[4]int{6, 32, 124, 6}, 506, 178_827_561, 178_819_881},
		{[4]int{12, 64, 248, 12}, 1010, 353_518_377, 353_510_697},
		{[4]int{6, 32, 788, 6}, 2498, 920_637_737, 920_630_057},
	} {
		for version, want := range map[int]int64{1: row.first, 2: row.second} {
			t.Run(fmt.Sprint(row.blocks, " v", version), func(t *testing.T) {
				c := resNetConfig(t, "base")
				c.Blocks, c.Version = row.blocks, version
				if n := row.blocks; 3*(n[0]+n[1]+n[2]+n[3])+2 != row.depth {
					t.Errorf("blocks %v are not %d layers", n, row.depth)
				}
				m := nn.NewModel()
				m.Declare((&resNet{ResNetConfig: c}).declare,
					m.Input("images", graph.F32, 1, 3, 32, 32))
				if got := m.Graph.Parameters(); got != want || c.Parameters() != want {
					t.Errorf("%d parameters, by formula %d, want %d", got, c.Parameters(), want)
				}
				if row.depth > 200 && (row.depth != 1916 || !longtest.Enabled()) {
					return // the graphs take a while
				}
				if got := buildResNet(t, c).Graph.Parameters(); got != want {
					t.Errorf("%d parameters in the whole graph, want %d", got, want)
				}
			})
		}
	}
}

func TestResNetBlocks(t *testing.T) {
	for depth, want := range map[int][4]int{
		14: {1, 1, 1, 1}, 50: {3, 4, 6, 3}, 101: {3, 4, 23, 3}, 152: {3, 8, 36, 3}, 203: {3, 32, 29,
			3},
		506: {3, 32, 130, 3}, 1001: {3, 32, 295, 3}, 1079: {3, 32, 321, 3}, 1916: {3, 32, 600,
			3}, 2498: {3, 32, 794, 3},
	} {
		if have, err := ResNetBlocks(depth); err != nil || have != want {
			t.Errorf("depth %d has %v (%v), want %v", depth, have, err, want)
		}
	}
	for _, depth := range []int{-1, 0, 2, 18, 34, 53, 153, 199, 201, 504, 1000, math.MaxInt} {
		_, err := ResNetBlocks(depth)
		if want := fmt.Sprintf("--depth is %d: want 14, 26, 50, 101, 152, 200, or one of 203, 206,",
			depth); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// TestResNetClosedForm: the closed form is that of the graph for any sizes, and
// every variable is updated.
func TestResNetClosedForm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := resNetConfig(t, "s512")
		c.Version = rapid.IntRange(1, 2).Draw(rt, "version")
		for i := range c.Blocks {
			c.Blocks[i] = rapid.IntRange(1, 3).Draw(rt, "blocks")
		}
		c.Images, c.Pixels = rapid.IntRange(1, 3).Draw(rt, "batch"),
			rapid.IntRange(1, 70).Draw(rt, "pixels")
		c.Width, c.Classes = rapid.IntRange(1, 5).Draw(rt, "width"),
			rapid.IntRange(2, 9).Draw(rt, "classes")
		m, err := ResNet(c)
		if err != nil {
			rt.Fatal(err)
		}
		if err := m.Graph.Verify(); err != nil {
			rt.Fatal(err)
		}
		if got := m.Graph.Parameters(); got != c.Parameters() {
			rt.Fatalf("%d parameters, %d by closed form", got, c.Parameters())
		}
		for _, n := range m.Graph.Variables() {
			if len(m.Graph.Writers(n.ID)) != 1 {
				rt.Errorf("%d updates of %s", len(m.Graph.Writers(n.ID)), n.Name)
			}
		}
	})
}

// TestResNetReplica: s64 is base in small, but for the sizes.
func TestResNetReplica(t *testing.T) {
	for version := 1; version <= 2; version++ {
		small, large := resNetConfig(t, "s64"), resNetConfig(t, "base")
		small.Version, large.Version = version, version
		if strings.Join(shape(buildResNet(t, small)),
			"\n") != strings.Join(shape(buildResNet(t, large)), "\n") {
			t.Errorf("version %d: the replica's graph is another one", version)
		}
	}
}

// TestResNetWork: an image of ResNet-152 takes 23.2 GFLOP forward, and twice that
// backward.
func TestResNetWork(t *testing.T) {
	m := buildResNet(t, resNetConfig(t, "base"))
	work := m.Work(m.Objectives[0])
	forward, backward := float64(work[graph.Forward].FLOPs)/57e9,
		float64(work[graph.Backward].FLOPs)/57e9
	t.Logf("%.2f GFLOP an image forward, %.2f backward", forward, backward)
	if forward < 23.1 || forward > 24 || backward < 1.95*forward || backward > 2.05*forward {
		t.Errorf("%.2f GFLOP an image forward, %.2f backward", forward, backward)
	}
}

// stepImages feeds a batch and trains on it.
func (x machine) stepImages(t testing.TB, step int, feed func(pixels []float32, labels []int32)) {
	t.Helper()
	m := x.model
	feed(x.Value(m.Data[0]).F32(), x.Value(m.Data[1]).I32())
	x.Value(m.LearningRate).F32()[0] = m.Schedule.At(step)
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
}

// newImageMachine is newMachine with averages that start as they should.
func newImageMachine(t testing.TB, m *Model, values ...graph.Value) machine {
	x := newMachine(t, m, true, values...)
	for _, n := range m.Graph.Variables() {
		if strings.HasSuffix(n.Name, "/variance") {
			x.fill(n)
		}
	}
	return x
}

// noise is images of noise on a level for each of a few labels.
func noise(seed uint64) func(pixels []float32, labels []int32) {
	return func(pixels []float32, labels []int32) {
		rng := rand.New(rand.NewPCG(seed, 3))
		each := len(pixels) / len(labels)
		for i := range labels {
			labels[i] = 1 + rng.Int32N(3)
			for j := range each {
				channel := 3 * j / each
				pixels[i*each+j] = float32(20 * rng.NormFloat64())
				if channel == int(labels[i])-1 {
					pixels[i*each+j] += 60
				}
			}
		}
	}
}

// TestResNetLearns: a batch is learnt by heart, and what is true of others too,
// with the batch's statistics and with the averages.
func TestResNetLearns(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("fixed v", version), func(t *testing.T) {
			first, last := learn(t, version, 30, func(int) uint64 { return 1 })
			if !(last[0] < first[0]/4) {
				t.Errorf("loss %.3f to %.3f", first[0], last[0])
			}
		})
		t.Run(fmt.Sprint("fresh v", version), func(t *testing.T) {
			first, last := learn(t, version, 80, func(step int) uint64 { return uint64(step) })
			if !(last[0] < first[0]/2) || !(last[1] < first[1]/2) {
				t.Errorf("loss %.3f to %.3f, held-out %.3f to %.3f", first[0], last[0], first[1],
					last[1])
			}
		})
	}
}

// learn trains on noise and is the first losses and the mean of the last ten, each
// of training and held-out.
func learn(t *testing.T, version, steps int, seed func(step int) uint64) (first, last [2]float64) {
	c := resNetConfig(t, "s512")
	c.Version, c.Schedule = version, Stepwise{Rate: 0.02, Warmup: 10}
	m := buildResNet(t, c)
	loss := m.Objectives[0].Loss
	x := newImageMachine(t, m, loss, m.EvalLoss, m.EvalMetrics[0].Value, m.EvalMetrics[1].Value)
	for step := range steps {
		x.stepImages(t, step, noise(seed(step)))
		now := [2]float64{x.scalar(loss), x.scalar(m.EvalLoss)}
		if !(now[0] < 100) || !(now[1] < 1000) {
			t.Fatalf("step %d: loss %v, held-out %v", step, now[0], now[1])
		}
		for i, v := range now {
			if step == 0 {
				first[i] = v
			}
			if step >= steps-10 {
				last[i] += v / 10
			}
		}
	}
	one, five := x.scalar(m.EvalMetrics[0].Value), x.scalar(m.EvalMetrics[1].Value)
	t.Logf("loss %.3f to %.3f, held-out %.3f to %.3f, accuracy %.2f, among 5 %.2f", first[0],
		last[0], first[1], last[1], one, five)
	if one < 0 || five < one || five > 1 {
		t.Errorf("accuracy %v, among 5 %v", one, five)
	}
	return first, last
}

// TestAccuracyNamesItsGuesses: a model of few classes is not said to be right
// among more kinds than it knows.
func TestAccuracyNamesItsGuesses(t *testing.T) {
	for classes, want := range map[int]string{2: "accuracy among 1", 4: "accuracy among 3",
		5: "accuracy among 4", 6: "accuracy among 5", 126: "accuracy among 5"} {
		c, err := NewResNetConfig("s512")
		if err != nil {
			t.Fatal(err)
		}
		c.Classes = classes
		m, err := ResNet(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.EvalMetrics[1].Name; got != want {
			t.Errorf("%d classes: %s, want %s", classes, got, want)
		}
	}
}

// TestResNetBackground: rows without an image count for nothing, and a batch of
// none has loss zero.
func TestResNetBackground(t *testing.T) {
	m := buildResNet(t, resNetConfig(t, "s512"))
	loss := m.Objectives[0].Loss
	x := newImageMachine(t, m, loss, m.EvalLoss)
	run := func(kept int) float64 {
		feed := noise(1)
		x.stepImages(t, -1, func(pixels []float32, labels []int32) { // the learning rate is 0
			feed(pixels, labels)
			copy(pixels[len(pixels)/2:], pixels)
			copy(labels[len(labels)/2:], labels)
			clear(labels[kept:])
		})
		return x.scalar(loss)
	}
	if all, half, none := run(4), run(2), run(0); all == 0 || math.Abs(all-half) > 1e-6*all ||
		none != 0 {
		t.Errorf("losses of two images twice, once and not at all: %v, %v and %v", all, half, none)
	}
}

// TestResNetFine: the fine lowering computes the same updates, up to rounding. The
// images are large enough for the last norms to see more than the four numbers of
// a batch of single pixels, which would blow rounding up.
func TestResNetFine(t *testing.T) {
	c := resNetConfig(t, "s512")
	c.Pixels = 64
	var losses [2][6]float64
	for i := range losses {
		c.Fine = i == 1
		m := buildResNet(t, c)
		x := newImageMachine(t, m, m.Objectives[0].Loss)
		for step := range losses[i] {
			x.stepImages(t, step, noise(uint64(step)))
			losses[i][step] = x.scalar(m.Objectives[0].Loss)
		}
	}
	for step, want := range losses[0] {
		if have := losses[1][step]; math.Abs(have-want) > 1e-3*want {
			t.Errorf("step %d: losses %v and %v", step, want, have)
		}
	}
}

// TestWeightDecay: with a gradient of zero, weights shrink, and norms do not.
func TestWeightDecay(t *testing.T) {
	c := resNetConfig(t, "s512")
	c.WeightDecay = 0.5
	m := buildResNet(t, c)
	x := newImageMachine(t, m, m.EvalLoss)
	before := map[string]float32{}
	for _, n := range m.Graph.Variables() {
		before[n.Name] = x.Value(n.Value(0)).F32()[0]
	}
	x.Value(m.LearningRate).F32()[0] = 0.5
	if err := x.Step(); err != nil { // no label, no gradient
		t.Fatal(err)
	}
	for _, n := range m.Graph.Variables() {
		factor := float32(1)
		switch {
		case n.State:
			continue
		case !strings.Contains(n.Name, "norm"):
			factor = 0.75
		}
		have, want := x.Value(n.Value(0)).F32()[0], factor*before[n.Name]
		if math.Abs(float64(have-want)) > 1e-6 {
			t.Errorf("%s: %v became %v, want %v", n.Name, before[n.Name], have, want)
		}
	}
}

func TestResNetNames(t *testing.T) {
	c := resNetConfig(t, "s512")
	names := map[string]bool{}
	for c.Version = 1; c.Version <= 2; c.Version++ {
		for _, n := range buildResNet(t, c).Graph.Variables() {
			names[n.Name] = true
		}
	}
	for _, want := range []string{
		"stem/filters", "stem/norm/scale", "stem/norm/variance", "stage1/0/conv1/filters",
		"stage4/0/norm3/bias", "stage2/0/project/filters",
		"stage2/0/project/norm/mean", "norm/scale", "norm/variance", "dense/weights", "dense/bias",
		"stage1/0/conv1/filters/momentum",
	} {
		if !names[want] {
			t.Errorf("there is no variable %s", want)
		}
	}
}

// TestZeroBlocks: the last norm of each block starts at zero where that is wanted,
// and there alone.
func TestZeroBlocks(t *testing.T) {
	for size, want := range map[string]int{"base": 0, "s64": 50, "s512": 4} {
		zeros := 0
		for _, n := range buildResNet(t, resNetConfig(t, size)).Graph.Variables() {
			if strings.HasSuffix(n.Name, "/scale") && n.Init.Scale == 0 {
				zeros++
				if !strings.HasSuffix(n.Name, "norm3/scale") {
					t.Errorf("%s starts at zero", n.Name)
				}
			}
		}
		if zeros != want {
			t.Errorf("%s: %d blocks start as the identity, want %d", size, zeros, want)
		}
	}
}

// TestResNetSchedule: the rate grows with the batch, and drops after 30, 60, 80
// and 90 epochs of 1,281,167 images.
func TestResNetSchedule(t *testing.T) {
	c := resNetConfig(t, "base")
	c.Images = 256
	s := buildResNet(t, c).Schedule
	for epoch, want := range map[float64]float64{2.5: 0.064, 10: 0.128, 31: 0.0128, 61: 1.28e-3,
		81: 1.28e-4, 91: 1.28e-5} {
		if have := float64(s.At(int(epoch * 1_281_167 / 256))); math.Abs(have-want) > 1e-3*want {
			t.Errorf("epoch %v has rate %v, want %v", epoch, have, want)
		}
	}
}

func TestResNetRefuses(t *testing.T) {
	for _, row := range []struct {
		change func(*ResNetConfig)
		want   string
	}{
		{func(c *ResNetConfig) { c.Size = "s1" }, `unknown size "s1": want s512, s64 or base`},
		{func(c *ResNetConfig) { c.Depth = 18 }, "--depth is 18: want 14"},
		{func(c *ResNetConfig) { c.Blocks = [4]int{3, 0, 1, 1} }, "--blocks of stage 2 is 0: " +
			"want 1 or more"},
		{func(c *ResNetConfig) { c.Blocks = [4]int{3, 1, -4, 1} }, "--blocks of stage 3 is -4: " +
			"want 1 or more"},
		{func(c *ResNetConfig) { c.Blocks = [4]int{1, 1, 1, 1 << 20} }, "--blocks of stage 4 is " +
			"1048576: want 16384 or less"},
		{func(c *ResNetConfig) { c.Blocks = [4]int{1 << 13, 1 << 13, 1, 1} }, "--blocks in all " +
			"is 16386: want 16384 or less"},
		{func(c *ResNetConfig) { c.Version = 3 }, "--version is 3: want 2 or less"},
		{func(c *ResNetConfig) { c.Images = 0 }, "--batch is 0: want 1 or more"},
		{func(c *ResNetConfig) { c.Pixels = -1 }, "--pixels is -1: want 1 or more"},
		{func(c *ResNetConfig) { c.Width = 0 }, "width is 0: want 1 or more"},
		{func(c *ResNetConfig) { c.Classes = 1 }, "classes is 1: want 2 or more"},
		{func(c *ResNetConfig) { c.NormMomentum = 1 }, "momentum of norms is 1: want a number " +
			"from 0 to 1"},
		{func(c *ResNetConfig) { c.WeightDecay = float32(math.NaN()) }, "weight decay is NaN"},
		{func(c *ResNetConfig) { c.Schedule.Warmup = 3 }, "learning rate is 0: want a positive " +
			"number"},
		{func(c *ResNetConfig) { c.Schedule = Stepwise{Rate: 1, Warmup: -1} }, "learning rate " +
			"warm-up is -1 steps"},
		{func(c *ResNetConfig) { c.Images = math.MaxInt32 }, "--batch is 2147483647: want " +
			"1048576 or less"},
		{func(c *ResNetConfig) { c.Images, c.Pixels = 1<<20, 1<<14 }, "--batch times --pixels " +
			"squared is 281474976710656: want 68719476736 or less"},
	} {
		c := resNetConfig(t, "s512")
		row.change(&c)
		_, err := ResNet(c)
		if err == nil || !strings.HasPrefix(err.Error(), row.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v does not say %q", err, row.want)
		}
	}
	if _, err := NewResNetConfig("tiny"); err == nil {
		t.Error("size tiny is known")
	}
}
