package models

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// DeepSpeechConfig is one recogniser of speech. [NewDeepSpeechConfig] fills it in;
// every number may be changed afterwards.
type DeepSpeechConfig struct {
	Size string // s512, s64 or base

	Utterances int // utterances a step
	Frames     int // frames of an utterance, at most
	Labels     int // letters of an utterance, at most; 0: one for two frames

	Coefficients int // numbers a frame
	Context      int // frames before and after one that are seen with it
	Width        int // n, units of every layer
	Symbols      int // letters, and the blank, which is the last

	// an operation for each part of each step of the LSTM, instead of one for the sequence
	Unrolled bool
	// one operation for the loop over the steps of the LSTM, with the bits of the unrolled one, and
	// a plan that does not grow with their number
	Scanned  bool
	Fine     bool    // dropout and optimizer composed of arithmetic, as in TensorFlow 1
	Dropout  float32 // of units
	Schedule Constant

	Training Training // in place of the updates' own
}

// NewDeepSpeechConfig is the model of a size: "base" is Mozilla's (47 million
// parameters), "s64" its replica at 1/64 of the memory but for the size of the
// input, and "s512" a small one for tests.
func NewDeepSpeechConfig(size string) (DeepSpeechConfig, error) {
	c := DeepSpeechConfig{Size: size, Frames: 165, Coefficients: 26, Context: 9, Symbols: 29,
		Dropout: 0.05, Schedule: 1e-3}
	switch size {
	case "base":
		c.Utterances, c.Width = 128, 2048
	case "s64":
		c.Utterances, c.Width = 16, 256
	case "s512":
		c.Utterances, c.Width, c.Frames = 4, 32, 40
	default:
		return DeepSpeechConfig{}, unknownSize(size)
	}
	return c, nil
}

// maxFrames is the most that a graph is built for: the windows, or the steps of an
// unrolled LSTM, are operations each.
const maxFrames = 1 << 14

// Validate reports the first number that no model can have, on one line that names
// the option and what to do.
func (c DeepSpeechConfig) Validate() error {
	if _, err := NewDeepSpeechConfig(c.Size); err != nil {
		return err
	}
	if err := within(
		limit{"--batch", c.Utterances, 1, maxBatch},
		limit{"--length", c.Frames, 1, maxFrames},
		limit{"labels", c.Labels, 0, maxFrames},
		limit{"coefficients", c.Coefficients, 1, math.MaxInt32},
		limit{"context", c.Context, 0, maxFrames},
		limit{"width", c.Width, 1, math.MaxInt32},
		limit{"symbols", c.Symbols, 2, math.MaxInt32},
	); err != nil {
		return err
	}
	if !(c.Schedule > 0) || math.IsInf(float64(c.Schedule), 0) {
		return fmt.Errorf("learning rate is %v: want a positive number", float32(c.Schedule))
	}
	return fractions(share{"dropout", c.Dropout})
}

// window is the numbers of a frame and its context.
func (c DeepSpeechConfig) window() int { return (2*c.Context + 1) * c.Coefficients }

// Parameters is the number of elements of all variables that are not optimizer
// state, by closed form.
func (c DeepSpeechConfig) Parameters() int64 {
	in, n, out := int64(c.window()), int64(c.Width), int64(c.Symbols)
	return in*n + n + 3*(n*n+n) + 8*n*n + 4*n + n*out + out
}

// DeepSpeech builds the recogniser of speech that Mozilla made after Hannun et al.
// (2014). Its data are features f32[frames batch coefficients], zero behind the
// last frame of each utterance; labels i32[batch labels]; the number of labels
// i32[batch] and of frames i32[batch] of each. An utterance without frames does not
// count. The evaluation's output is the logits, f32[frames batch symbols].
func DeepSpeech(c DeepSpeechConfig) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Labels == 0 {
		c.Labels = max(1, c.Frames/2)
	}
	m := newModel("deepspeech", c.Size, Speech, c.Symbols, c.Schedule, c.Fine)
	m.DeviceBytes, m.HostBytes = replicaBudget(c.Size)
	u := m.utterances(c)
	p := &deepSpeech{DeepSpeechConfig: c}
	m.Declare(func(at *nn.Ctx, in ...graph.Value) { p.logits(at, in[0]) }, u.features)
	loss, _ := p.run(m.Training(), u)
	c.Training.Minimize(&m.Model, loss, nn.Adam{}, nn.MinimizeOptions{
		Metrics: []Metric{{Name: "skipped", Value: u.skipped()}}})
	loss, logits := p.run(m.Model.Evaluation(), u)
	m.Evaluate(loss)
	m.Output(logits)
	return m.done()
}

// utterances are the inputs.
func (m *Model) utterances(c DeepSpeechConfig) utterances {
	time, batch := graph.Dim{Name: "time", Size: c.Frames},
		graph.Dim{Name: "batch", Size: c.Utterances}
	count := tensor.Named(graph.I32, batch)
	u := utterances{
		features: m.InputOf("features", tensor.Named(graph.F32, time, batch,
			graph.Dim{Size: c.Coefficients})),
		labels: m.InputOf("labels", tensor.Named(graph.I32, batch,
			graph.Dim{Name: "label", Size: c.Labels})),
		lengths: m.InputOf("lengths", count),
		frames:  m.InputOf("frames", count),
	}
	u.readable = ops.CTCReadable(u.labels, u.lengths, u.frames)
	return u
}

// utterances are a batch. Of readable, f32[batch], 1 is for those with frames, enough
// of them for their labels, 0 for others.
type utterances struct{ features, labels, lengths, frames, readable graph.Value }

// deepSpeech builds the computation of one loss.
type deepSpeech struct{ DeepSpeechConfig }

// clip is the most that a unit of a dense layer gives.
const clip = 20

// forgetBias makes an LSTM remember before it has learned to.
const forgetBias = 1

// run is the mean loss of the utterances that have frames, enough of them for their
// labels, f32[], and the logits, f32[frames batch symbols].
func (p *deepSpeech) run(c *nn.Ctx, u utterances) (loss, logits graph.Value) {
	logits = p.logits(c, u.features)
	defer c.In("6").Enter()()
	losses := ops.CTCLoss(logits, u.labels, u.lengths, u.frames)
	return nn.MeanOver(losses, u.readable), logits
}

// logits are those of every frame's symbol.
func (p *deepSpeech) logits(c *nn.Ctx, features graph.Value) graph.Value {
	defer c.Enter()()
	x := p.windows(c.In("windows"), features)
	for _, name := range []string{"1", "2", "3"} {
		x = p.dense(c.In(name), x)
	}
	x = p.rows(nn.LSTM(c.In("lstm"), p.sequence(x, p.Width), p.Width,
		nn.RecurrentOptions{Unrolled: p.Unrolled, Scanned: p.Scanned, ForgetBias: forgetBias}),
		p.Width)
	x = p.dense(c.In("5"), x)
	last := c.In("6")
	defer last.Enter()()
	return p.sequence(nn.Linear(last, x, p.Symbols), p.Symbols)
}

// skipped is the number of utterances, f32[], that have frames, but too few of them for
// their labels. The loss leaves them out.
func (u utterances) skipped() graph.Value {
	return ops.Sum(ops.Sub(ops.NotZero(u.frames), u.readable))
}

// windows puts the frames before and after beside each frame, zeros where there
// are none: f32[frames·batch window]. Slices along the first axis take no memory.
func (p *deepSpeech) windows(c *nn.Ctx, features graph.Value) graph.Value {
	defer c.Enter()()
	padded := ops.Pad(features, 0, p.Context, p.Context)
	parts := make([]graph.Value, 2*p.Context+1)
	for i := range parts {
		parts[i] = ops.Slice(padded, 0, i, i+p.Frames)
	}
	return p.rows(ops.Concat(2, parts...), p.window())
}

// rows has a row of so many numbers for each frame of each utterance.
func (p *deepSpeech) rows(x graph.Value, width int) graph.Value {
	return ops.ReshapeSizes(x, p.Frames*p.Utterances, width)
}

// sequence is rows by time and utterance.
func (p *deepSpeech) sequence(x graph.Value, width int) graph.Value {
	return ops.ReshapeSizes(x, p.Frames, p.Utterances, width)
}

// dense is a layer of clipped rectified units.
func (p *deepSpeech) dense(c *nn.Ctx, x graph.Value) graph.Value {
	defer c.Enter()()
	return nn.Dropout(c, ops.ClippedRelu(nn.Linear(c, x, p.Width), clip), p.Dropout,
		nn.DropoutOptions{Name: "dropout"})
}
