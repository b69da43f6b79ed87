package main

import (
	"math/rand/v2"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
)

// batch is an input of each kind that a model's data has, with all that a loader
// may give: padding behind texts, a row without an image, an utterance without
// frames.
func (s subject) batch(rng *rand.Rand) gomem.Feeds {
	m := s.model
	feeds := gomem.Feeds{
		m.Seed:         gomem.Pair(1, 0),
		m.LearningRate: gomem.Scalar(0),
		m.Step:         gomem.Scalar(1),
	}
	if m.Domain == models.Speech {
		utterances(m.Data, m.Classes, feeds, rng)
		return feeds
	}
	for _, v := range m.Data {
		x := gomem.NewTensor(v.Type())
		if m.Domain == models.Texts {
			texts(x, m.Classes, rng)
			if v.Node.Name == "targets" {
				untargeted(x.I32())
			}
		} else {
			pictures(x, max(2, m.Classes), rng)
		}
		feeds[v] = x
	}
	return feeds
}

// texts are ids [batch length] from 1, the first text of full length, each one a
// little shorter than the one before, and 0 behind them.
func texts(x gomem.Tensor, ids int, rng *rand.Rand) {
	rows, length := x.Type.Size(0), x.Type.Size(1)
	for i := range rows {
		for j := range length - i*length/(2*rows) {
			x.I32()[i*length+j] = 1 + rng.Int32N(int32(ids-1))
		}
	}
}

// untargeted has no target where there was padding.
func untargeted(targets []int32) {
	for i, id := range targets {
		if id == 0 {
			targets[i] = models.NoTarget
		}
	}
}

// pictures are elements from −1 to 1, or labels from 1 but for the last, which is
// 0.
func pictures(x gomem.Tensor, labels int, rng *rand.Rand) {
	if x.Type.DType == graph.F32 {
		uniform(x.F32(), rng)
		return
	}
	for i := range x.I32()[1:] {
		x.I32()[i] = 1 + rng.Int32N(int32(labels-1))
	}
}

func uniform(x []float32, rng *rand.Rand) {
	for i := range x {
		x[i] = 2*rng.Float32() - 1
	}
}

// utterances feeds features, labels, their number and that of frames. The first
// utterance has all frames, the last has none, and each has a label for three
// frames.
func utterances(data []graph.Value, symbols int, feeds gomem.Feeds, rng *rand.Rand) {
	var x [4]gomem.Tensor
	for i, v := range data {
		x[i] = gomem.NewTensor(v.Type())
		feeds[v] = x[i]
	}
	features, labels, lengths, frames := x[0].F32(), x[1].I32(), x[2].I32(), x[3].I32()
	total, n, coefficients := x[0].Type.Size(0), x[0].Type.Size(1), x[0].Type.Size(2)
	for i := range n {
		frames[i] = int32(total * (n - 1 - i) / max(1, n-1))
		lengths[i] = frames[i] / 3
		for k := range lengths[i] {
			labels[i*x[1].Type.Size(1)+int(k)] = rng.Int32N(int32(symbols - 1))
		}
		for t := range int(frames[i]) {
			at := (t*n + i) * coefficients
			uniform(features[at:at+coefficients], rng)
		}
	}
}
