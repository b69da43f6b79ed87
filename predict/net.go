package predict

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data/images"
	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/libm"
	"github.com/gomem/gomem/models"
)

// Net is a model that answers with one execution a batch. Its methods may not be
// called at the same time.
type Net struct {
	session *gomem.Session
	model   *models.Predictor
}

// answer is the name of a net's target.
const answer = "predict"

// NetTarget is what a net computes.
func NetTarget(p *models.Predictor) gomem.Target {
	return gomem.Target{Name: answer, Fetches: []graph.Value{p.Output}}
}

// OpenNet takes the memory for a plan of [NetTarget] and gives the model the weights
// that load sets; see [Checkpoint].
func OpenNet(planned *gomem.Planned, o gomem.Options, p *models.Predictor,
	load Weights) (*Net, error) {
	o.NoInitialize = true
	s, err := gomem.Open(planned, o)
	if err != nil {
		return nil, err
	}
	if err := load(s, s.Variables()); err != nil {
		return nil, cmp.Or(err, s.Close())
	}
	return &Net{s, p}, nil
}

// Close frees the memory.
func (n *Net) Close() error { return n.session.Close() }

// Usage is what is needed of each memory.
func (n *Net) Usage() []gomem.Usage { return n.session.Usage() }

// run executes the net once.
func (n *Net) run(ctx context.Context, in graph.Value, fed gomem.Tensor) (gomem.Tensor, error) {
	out, err := n.session.Step(ctx, answer, gomem.Feeds{in: fed})
	if err != nil {
		return gomem.Tensor{}, err
	}
	return out[0], nil
}

// Share is a class, and the model's probability of it.
type Share struct {
	Class int
	Share float64
}

// Classify gives each picture its likeliest k classes, the likeliest first. Pictures of
// any size are cut to the square in their middle and scaled, as held-out ones are in
// training. The net must be of models.ResNetPredictor.
func (n *Net) Classify(ctx context.Context, pictures []image.Image, k int) ([][]Share, error) {
	in := n.model.Data[0]
	rows, size := in.Type().Size(0), in.Type().Size(2)
	each := 3 * size * size
	var out [][]Share
	for first := 0; first < len(pictures); first += rows {
		some := pictures[first:min(first+rows, len(pictures))]
		fed := tensor.New(in.Type())
		for i, p := range some {
			images.Pixels(fed.F32()[i*each:], p, size, images.Means)
		}
		logits, err := n.run(ctx, in, fed)
		if err != nil {
			return nil, err
		}
		classes := logits.Type.Size(1)
		for i := range some {
			out = append(out, Top(logits.F32()[i*classes:][:classes], k))
		}
	}
	return out, nil
}

// Top gives the likeliest k classes by their logits, the likeliest first.
func Top(logits []float32, k int) []Share {
	norm := logSum(logits)
	var out []Share
	for _, class := range ranked(logits, k) {
		out = append(out, Share{class, libm.Exp(float64(logits[class]) - norm)})
	}
	return out
}

// Transcribe reads recordings, each the features of a [speech.Reader], by the likeliest
// symbol of every frame or, with a beam of 2 or more, by a search of the text that the
// likeliest sequences of symbols share. The net must be of models.DeepSpeechPredictor, of
// these letters, and have as many frames as the longest.
func (n *Net) Transcribe(ctx context.Context, recordings [][]float32, letters speech.Letters,
	beam int) ([]string, error) {
	in := n.model.Data[0]
	length, rows := in.Type().Size(0), in.Type().Size(1)
	var out []string
	for first := 0; first < len(recordings); first += rows {
		some := recordings[first:min(first+rows, len(recordings))]
		fed, frames := tensor.New(in.Type()), make([]int32, rows)
		for k, x := range some {
			frames[k] = int32(len(x) / speech.Coefficients)
			if int(frames[k]) > length {
				return nil, fmt.Errorf("recording %d has %d frames, the net has room for %d",
					first+k, frames[k], length)
			}
			at := k * speech.Coefficients
			for frame := range slices.Chunk(x, speech.Coefficients) {
				copy(fed.F32()[at:], frame)
				at += rows * speech.Coefficients
			}
		}
		logits, err := n.run(ctx, in, fed)
		if err != nil {
			return nil, err
		}
		texts, err := letters.DecodeBeam(logits, frames, beam)
		if err != nil {
			return nil, err
		}
		out = append(out, texts[:len(some)]...)
	}
	return out, nil
}

// Draw makes n samples, f32[n 3 pixels pixels] about from −1 to 1. The first batch of
// the seed of a training run is what that run's evaluations show; every further batch
// has the next seed. The net must be of models.WGANPredictor.
func (n *Net) Draw(ctx context.Context, seed uint64, samples int) (gomem.Tensor, error) {
	if samples < 1 {
		return gomem.Tensor{}, fmt.Errorf("%d samples: want 1 or more", samples)
	}
	t := n.model.Output.Type()
	each := t.Elems() / t.Size(0)
	out := tensor.New(tensor.Of(graph.F32, samples, t.Size(1), t.Size(2), t.Size(3)))
	for k := 0; k*t.Size(0) < samples; k++ {
		s := seed + uint64(k)
		drawn, err := n.run(ctx, n.model.Seed, gomem.Pair(int32(uint32(s)^uint32(s>>32)), 0))
		if err != nil {
			return gomem.Tensor{}, err
		}
		copy(out.F32()[k*t.Size(0)*each:], drawn.F32())
	}
	return out, nil
}
