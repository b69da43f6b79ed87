package predict

import (
	"context"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data/images"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// openNet makes a net ready.
func openNet(t *testing.T, p *models.Predictor, err error, o gomem.Options, w Weights) *Net {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	planned, err := gomem.Plan(context.Background(), p.Graph, o, NetTarget(p))
	if err != nil {
		t.Fatal(err)
	}
	n, err := OpenNet(planned, o, p, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// evaluated are a model's own outputs of a batch.
func evaluated(t *testing.T, m *models.Model, err error, w Weights, seed int32,
	data ...gomem.Tensor) []gomem.Tensor {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	s, err := gomem.Compile(context.Background(), m.Graph, gomem.Options{},
		train.Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := w(s, s.Variables()); err != nil {
		t.Fatal(err)
	}
	feeds := gomem.Feeds{m.Seed: gomem.Pair(seed, 17)}
	for i, v := range m.Data {
		feeds[v] = data[i]
	}
	out, err := s.Step(context.Background(), "eval", feeds)
	if err != nil {
		t.Fatal(err)
	}
	return out[1+len(m.EvalMetrics):]
}

// pictures are drawn, of several sizes.
func pictures(n int) []image.Image {
	rng := rand.New(rand.NewPCG(3, 4))
	var out []image.Image
	for range n {
		img := image.NewRGBA(image.Rect(0, 0, 10+rng.IntN(90), 10+rng.IntN(90)))
		for i := range img.Pix {
			img.Pix[i] = uint8(rng.UintN(256))
		}
		img.Set(0, 0, color.Transparent)
		out = append(out, img)
	}
	return out
}

// plans are some under which nothing may change.
func plans() []gomem.Options {
	return []gomem.Options{{Policy: planner.Vanilla}, {Policy: planner.Thesis, Partition: 2,
		NoFusion: true}, {Policy: planner.Auto, DeviceBytes: 2 << 20}}
}

// TestClassify: the best class is that of the model's evaluation, shares add up to 1,
// and neither the plan nor the batch changes them.
func TestClassify(t *testing.T) {
	c, err := models.NewResNetConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	many := pictures(c.Images + 1)
	fed := tensor.New(tensor.Of(tensor.F32, c.Images, 3, c.Pixels, c.Pixels))
	for i := range c.Images {
		images.Pixels(fed.F32()[i*3*c.Pixels*c.Pixels:], many[i], c.Pixels, images.Means)
	}
	m, err := models.ResNet(c)
	want := evaluated(t, m, err, drawn(2), 0, fed, tensor.New(m.Data[1].Type()))[0].I32()
	var first [][]Share
	for i, o := range plans() {
		c := c
		c.Images -= i // a batch of another size
		p, err := models.ResNetPredictor(c)
		got, err := openNet(t, p, err, o, drawn(2)).Classify(context.Background(), many, c.Classes)
		if err != nil || len(got) != len(many) {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		for k, shares := range got {
			sum := 0.0
			for _, s := range shares {
				sum += s.Share
			}
			if k < len(want) && shares[0].Class != int(want[k]) || math.Abs(sum-1) > 1e-6 ||
				len(shares) != c.Classes {
				t.Errorf("picture %d: %v, sum %v, want class %d", k, shares[0], sum, want[k])
			}
			if shares[0].Class != first[k][0].Class ||
				math.Abs(shares[0].Share-first[k][0].Share) > 1e-5 {
				t.Errorf("picture %d under %s: %v, before %v", k, o.Policy, shares[0], first[k][0])
			}
		}
	}
}

// TestTranscribe: what is read is what the evaluation's logits say, in a net with room
// for longer recordings too.
func TestTranscribe(t *testing.T) {
	c, err := models.NewDeepSpeechConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var recordings [][]float32
	for i := range c.Utterances + 2 {
		x := make([]float32, (c.Frames-3*i)*speech.Coefficients)
		for k := range x {
			x[k] = float32(rng.NormFloat64())
		}
		recordings = append(recordings, x)
	}
	m, err := models.DeepSpeech(c)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]gomem.Tensor, len(m.Data))
	for i, v := range m.Data {
		data[i] = tensor.New(v.Type())
	}
	for k := range c.Utterances {
		for f := range len(recordings[k]) / speech.Coefficients {
			copy(data[0].F32()[(f*c.Utterances+k)*speech.Coefficients:],
				recordings[k][f*speech.Coefficients:][:speech.Coefficients])
		}
		data[3].I32()[k] = int32(len(recordings[k]) / speech.Coefficients)
	}
	logits := evaluated(t, m, nil, drawn(4), 0, data...)[0]
	want, err := speech.English().Decode(logits, data[3].I32())
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range plans() {
		c := c
		c.Frames += 9 * i
		p, err := models.DeepSpeechPredictor(c)
		n := openNet(t, p, err, o, drawn(4))
		got, err := n.Transcribe(context.Background(), recordings, speech.English(), 1)
		if err != nil || !slices.Equal(got[:len(want)], want) {
			t.Errorf("under %s: %q, %v, want %q", o.Policy, got, err, want)
		}
		long := make([]float32, (c.Frames+1)*speech.Coefficients)
		if _, err := n.Transcribe(context.Background(), [][]float32{long}, speech.English(),
			1); err == nil {
			t.Error("a recording that there is no room for is read")
		}
	}
}

// TestDraw: the first samples are those that training shows, and the others differ.
func TestDraw(t *testing.T) {
	c, err := models.NewWGANConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1<<33 + 5
	m, err := models.WGAN(c)
	want := evaluated(t, m, err, drawn(6), 5^2, tensor.New(m.Data[0].Type()),
		tensor.New(m.Data[1].Type()))[0].F32()
	for _, o := range plans() {
		p, err := models.WGANPredictor(c)
		n := openNet(t, p, err, o, drawn(6))
		got, err := n.Draw(context.Background(), seed, c.Images+1)
		if err != nil || got.Type.Size(0) != c.Images+1 ||
			!slices.Equal(got.F32()[:len(want)], want) {
			t.Errorf("under %s: %v, other samples than in training", o.Policy, err)
		}
		each := len(want) / c.Images
		if slices.Equal(got.F32()[:each], got.F32()[len(want):]) {
			t.Error("the second batch is the first")
		}
		if _, err := n.Draw(context.Background(), seed, 0); err == nil {
			t.Error("no samples can be drawn")
		}
		for _, u := range n.Usage() {
			if u.Actual != u.Predicted {
				t.Errorf("%+v", u)
			}
		}
	}
}
