package models

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

func deepSpeechConfig(t testing.TB, size string) DeepSpeechConfig {
	t.Helper()
	c, err := NewDeepSpeechConfig(size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func buildDeepSpeech(t testing.TB, c DeepSpeechConfig) *Model {
	t.Helper()
	m, err := DeepSpeech(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Graph.Verify(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDeepSpeechParameters: Mozilla's model has 47,224,861 parameters, in either
// form, and a multiplication and an addition for each in the forward pass of a
// frame.
func TestDeepSpeechParameters(t *testing.T) {
	for _, unrolled := range []bool{false, true} {
		c := deepSpeechConfig(t, "base")
		c.Unrolled = unrolled
		m := buildDeepSpeech(t, c)
		if got := m.Graph.Parameters(); got != 47_224_861 || c.Parameters() != got {
			t.Errorf("%d parameters, by formula %d, want 47,224,861", got, c.Parameters())
		}
		work := m.Work(m.Objectives[0])
		frame := float64(work[graph.Forward].FLOPs) / float64(c.Frames*c.Utterances)
		if frame < 94.4e6 || frame > 95.5e6 {
			t.Errorf("%.1f million operations a frame, want 94.5", frame/1e6)
		}
		back := float64(work[graph.Backward].FLOPs) / float64(work[graph.Forward].FLOPs)
		if back < 1.9 || back > 2.05 {
			t.Errorf("backward takes %.2f times as many operations as forward", back)
		}
		t.Logf("unrolled=%t: %d forward, %d backward, %d update operations", unrolled,
			work[0].Nodes, work[1].Nodes, work[2].Nodes)
	}
}

func TestDeepSpeechClosedForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := NewDeepSpeechConfig("s512")
		for _, f := range []*int{&c.Utterances, &c.Frames, &c.Labels, &c.Coefficients, &c.Width} {
			*f = rapid.IntRange(1, 5).Draw(t, "size")
		}
		c.Context, c.Symbols = rapid.IntRange(0, 7).Draw(t, "context"),
			rapid.IntRange(2, 5).Draw(t, "symbols")
		c.Unrolled, c.Fine = rapid.Bool().Draw(t, "unrolled"), rapid.Bool().Draw(t, "fine")
		m, err := DeepSpeech(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Graph.Verify(); err != nil || m.Graph.Parameters() != c.Parameters() {
			t.Fatalf("%d parameters, by formula %d, %v", m.Graph.Parameters(), c.Parameters(), err)
		}
		if out := m.EvalOutputs[0].Type().Sizes(); out[0] != c.Frames || out[1] != c.Utterances ||
			out[2] != c.Symbols {
			t.Fatalf("logits are %v", out)
		}
	})
}

func TestDeepSpeechReplica(t *testing.T) {
	for _, unrolled := range []bool{false, true} {
		small, large := deepSpeechConfig(t, "s64"), deepSpeechConfig(t, "base")
		small.Unrolled, large.Unrolled = unrolled, unrolled
		if strings.Join(shape(buildDeepSpeech(t, small)),
			"\n") != strings.Join(shape(buildDeepSpeech(t, large)), "\n") {
			t.Error("the replica's graph is another one")
		}
	}
}

// hear feeds a batch that depends on the step: a letter is a few frames of a
// pattern of its own, behind noise.
func (x machine) hear(t testing.TB, step int) {
	t.Helper()
	m := x.model
	rng := rand.New(rand.NewPCG(uint64(step), 11))
	features, labels, lengths, frames := x.Value(m.Data[0]), x.Value(m.Data[1]).I32(),
		x.Value(m.Data[2]).I32(), x.Value(m.Data[3]).I32()
	clear(features.F32())
	clear(labels)
	most, batch, width := features.Type.Size(0), features.Type.Size(1), features.Type.Size(2)
	room := len(labels) / batch
	for k := range batch {
		n := 0
		for f := 0; f+4 <= most-k && n < room; n++ {
			letter := rng.IntN(3)
			labels[k*room+n] = int32(letter)
			for range 3 + rng.IntN(2) {
				row := features.F32()[(f*batch+k)*width:][:width]
				for i := range row {
					row[i] = 0.3 * float32(rng.NormFloat64())
				}
				row[letter] += 3
				f++
			}
			frames[k] = int32(f)
		}
		lengths[k] = int32(n)
	}
	copy(x.Value(m.Seed).I32(), []int32{7, int32(step)})
	x.Value(m.LearningRate).F32()[0] = 5 * m.Schedule.At(step)
	x.Value(m.Step).F32()[0] = float32(step + 1)
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
}

// TestDeepSpeechForms: fused and unrolled, coarse and fine, the model computes the
// same losses, and learns.
func TestDeepSpeechForms(t *testing.T) {
	const steps = 120
	var want [steps]float64
	for i, form := range []struct{ unrolled, fine bool }{{false, false}, {true, false},
		{true, true}} {
		c := deepSpeechConfig(t, "s512")
		c.Unrolled, c.Fine = form.unrolled, form.fine
		m := buildDeepSpeech(t, c)
		x := newMachine(t, m, true, m.EvalLoss, m.Objectives[0].Loss)
		n := steps
		if i > 0 {
			n = 5
		}
		var held [steps]float64
		for step := range n {
			x.hear(t, step)
			held[step] = x.scalar(m.EvalLoss)
			if i == 0 {
				want[step] = held[step]
			} else if math.Abs(held[step]-want[step]) > 1e-4*want[step] {
				t.Errorf("unrolled=%t fine=%t: loss of step %d is %v, want %v", form.unrolled,
					form.fine, step, held[step], want[step])
			}
		}
	}
	t.Logf("loss %.3f to %.3f", want[0], want[steps-1])
	if !(want[steps-1] < want[0]/4) {
		t.Errorf("does not learn: loss %.3f to %.3f", want[0], want[steps-1])
	}
}

// TestDeepSpeechSilence: utterances without frames do not count, and a batch of
// them has loss zero.
func TestDeepSpeechSilence(t *testing.T) {
	c := deepSpeechConfig(t, "s512")
	m := buildDeepSpeech(t, c)
	x := newMachine(t, m, false, m.EvalLoss)
	x.hear(t, 1)
	whole := x.scalar(m.EvalLoss)
	lengths, frames := x.Value(m.Data[2]).I32(), x.Value(m.Data[3]).I32()
	total := 0.0
	for k := range c.Utterances {
		saved := [2]int32{lengths[k], frames[k]}
		for j := range c.Utterances {
			if j != k {
				lengths[j], frames[j] = 0, 0
			}
		}
		if err := x.Step(); err != nil {
			t.Fatal(err)
		}
		total += x.scalar(m.EvalLoss) / float64(c.Utterances)
		x.hear(t, 1)
		if saved != [2]int32{lengths[k], frames[k]} {
			t.Fatal("a batch differs from itself")
		}
	}
	if math.Abs(total-whole) > 1e-4*whole {
		t.Errorf("the mean of the losses is %v, that of the batch %v", total, whole)
	}
	clear(lengths)
	clear(frames)
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
	if loss := x.scalar(m.EvalLoss); loss != 0 {
		t.Errorf("silence has the loss %v", loss)
	}
}

// TestDeepSpeechCausal: what is heard depends on the context of a frame and on
// the frames before, not on those after the context.
func TestDeepSpeechCausal(t *testing.T) {
	c := deepSpeechConfig(t, "s512")
	m := buildDeepSpeech(t, c)
	x := newMachine(t, m, false, m.EvalLoss, m.EvalOutputs[0])
	x.hear(t, 1)
	row := c.Utterances * c.Symbols
	before := append([]float32(nil), x.Value(m.EvalOutputs[0]).F32()...)
	x.Value(m.Data[0]).F32()[30*c.Utterances*c.Coefficients] += 5
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
	after := x.Value(m.EvalOutputs[0]).F32()
	for f := range c.Frames {
		same := true
		for i := f * row; i < (f+1)*row; i++ {
			same = same && before[i] == after[i]
		}
		if want := f < 30-c.Context; same != want {
			t.Errorf("frame 30 changes; frame %d is the same: %t, want %t", f, same, want)
		}
	}
}

// TestDeepSpeechUnrolledMemory: a step of the LSTM takes memory for its activations
// and not for a gradient of the weights. There are enough of them for the copies
// of the weights that a plan stages ahead to be as many in either length.
func TestDeepSpeechUnrolledMemory(t *testing.T) {
	c := deepSpeechConfig(t, "s512")
	c.Unrolled, c.Utterances, c.Width = true, 1, 64
	peak := func(frames int, o planner.Options) int64 {
		c.Frames, c.Labels = frames, 5
		m := buildDeepSpeech(t, c)
		target := planner.Target{Name: "train", Fetches: []graph.Value{m.Objectives[0].Loss}}
		for _, n := range m.Objectives[0].Updates {
			target.Updates = append(target.Updates, n.ID)
		}
		r, err := planner.Compile(context.Background(), m.Graph, target, o)
		if err != nil {
			t.Fatal(err)
		}
		return r.Plan.Spaces[space.Device].Bytes
	}
	gradient := int64(4 * 2 * c.Width * 4 * c.Width)
	for _, o := range []planner.Options{{Policy: planner.Vanilla}, {}, {Partition: 5},
		{Partition: 200}, {NoSwap: true, NoPlacement: true}} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			short, long := peak(200, o), peak(240, o)
			t.Logf("%d bytes for 200 frames, %d for 240: %d a frame; a gradient has %d", short,
				long, (long-short)/40, gradient)
			if long-short > 40*gradient/4 {
				t.Errorf("a frame takes %d bytes, a gradient of the weights %d", (long-short)/40,
					gradient)
			}
		})
	}
}

func TestBadDeepSpeech(t *testing.T) {
	if _, err := NewDeepSpeechConfig("s8"); err == nil ||
		err.Error() != `unknown size "s8": want s512, s64 or base` {
		t.Errorf("unknown size: %v", err)
	}
	for _, test := range []struct {
		change func(*DeepSpeechConfig)
		want   string // beginning of the error
	}{
		{func(c *DeepSpeechConfig) { c.Size = "" }, `unknown size ""`},
		{func(c *DeepSpeechConfig) { c.Utterances = 0 }, "--batch is 0: want 1 or more"},
		{func(c *DeepSpeechConfig) { c.Frames = -1 }, "--length is -1: want 1 or more"},
		{func(c *DeepSpeechConfig) { c.Frames = 1 << 20 }, "--length is 1048576: want 16384 or " +
			"less"},
		{func(c *DeepSpeechConfig) { c.Utterances = math.MaxInt32 }, "--batch is 2147483647: " +
			"want 1048576 or less"},
		{func(c *DeepSpeechConfig) { c.Labels = -1 }, "labels is -1"},
		{func(c *DeepSpeechConfig) { c.Coefficients = 0 }, "coefficients is 0"},
		{func(c *DeepSpeechConfig) { c.Context = -1 }, "context is -1"},
		{func(c *DeepSpeechConfig) { c.Width = 0 }, "width is 0"},
		{func(c *DeepSpeechConfig) { c.Symbols = 1 }, "symbols is 1: want 2"},
		{func(c *DeepSpeechConfig) { c.Dropout = 1 }, "dropout is 1: want a number from 0 to 1"},
		{func(c *DeepSpeechConfig) { c.Schedule = 0 }, "learning rate is 0: want a positive " +
			"number"},
		{func(c *DeepSpeechConfig) { c.Schedule = Constant(math.NaN()) }, "learning rate is NaN"},
		{func(c *DeepSpeechConfig) { c.Width, c.Utterances = math.MaxInt32, maxBatch },
			"model deepspeech of size s512: "},
		{func(c *DeepSpeechConfig) { c.Width, c.Unrolled = math.MaxInt32, true },
			"model deepspeech of size s512: "},
		{func(c *DeepSpeechConfig) {
			c.Coefficients = math.MaxInt32
			c.Context = 1 << 14
			c.Utterances = maxBatch
		}, "model deepspeech of size s512: "},
	} {
		c := deepSpeechConfig(t, "s512")
		test.change(&c)
		_, err := DeepSpeech(c)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v, want one line that begins %s", err, test.want)
		}
	}
}

// TestDeepSpeechSkipsWhatCannotBeRead: an utterance with too few frames for its labels
// is counted, and neither the loss nor what is learned depends on it.
func TestDeepSpeechSkipsWhatCannotBeRead(t *testing.T) {
	m := buildDeepSpeech(t, deepSpeechConfig(t, "s512"))
	o := m.Objectives[0]
	run := func(last int32) (loss, skipped float64) {
		x := newMachine(t, m, true, m.EvalLoss, o.Loss, o.Metrics[0].Value)
		frames := x.Value(m.Data[3]).I32()
		for i := range x.Value(m.Data[2]).I32() {
			x.Value(m.Data[2]).I32()[i], frames[i] = 2, 8 // two equal labels
		}
		frames[len(frames)-1] = last
		x.Value(m.Step).F32()[0] = 1
		if err := x.Step(); err != nil {
			t.Fatal(err)
		}
		return x.scalar(m.EvalLoss), x.scalar(o.Metrics[0].Value)
	}
	want, none := run(8)
	if got, skipped := run(2); math.Abs(got-want) > 1e-6*want || none != 0 || skipped != 1 {
		t.Errorf("loss is %v with %v skipped, want %v and 1; else %v, want 0", got, skipped, want,
			none)
	}
}
