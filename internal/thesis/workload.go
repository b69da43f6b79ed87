package thesis

import (
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
)

// The sizes of models.
const (
	full    = "base"
	replica = "s64"
	small   = "s512" // of tests
)

// caps are the memory of the thesis' machine, and of the replica's.
func caps(size string) (device, host int64) {
	const gib = 1 << 30
	switch size {
	case full:
		return 12 * gib, 64 * gib
	case replica:
		return 12 * gib / 64, 64 * gib / 64
	}
	return gib / 384, gib / 256
}

// workload is one of the five models, of a size that a number scales: the batch,
// unless it says otherwise.
type workload struct {
	name      string
	unit      string // of n times words
	words     int    // what the thesis counts for one n: words of a pair, else 1
	partition int    // operations a partition, as in the thesis
	build     func(size string, n int) (*models.Model, error)
	ablation  map[string]int // n of table 6.4: the most that TensorFlow had room for
	guess     map[string]int // n from which to search
	own       float64        // κ of the thesis' machine for this model, where far from 730
}

// kappa is the replica's κ at which copies weigh what they did on the thesis'
// machine.
func (w workload) kappa() float64 {
	if w.own > 0 {
		return w.own / width
	}
	return replicaKappa
}

// objective is what a training step runs, as a target. Of adversarial networks
// it is the critic's step, which needs the most.
func objective(m *models.Model) gomem.Target {
	o := m.Objectives[0]
	t := gomem.Target{Name: o.Name, Fetches: []graph.Value{o.Loss}}
	for _, n := range o.Updates {
		t.Updates = append(t.Updates, n.ID)
	}
	return t
}

// The five models with their batches as the number.
var (
	transformer = workload{
		name: "Transformer", unit: "words", words: 32, partition: 20,
		ablation: map[string]int{full: 11264 / 32, replica: 11264 / 32 / 8},
		guess:    map[string]int{full: 400, replica: 50},
		build: func(size string, n int) (*models.Model, error) {
			c, err := models.NewTransformerConfig(size)
			c.Pairs, c.Length, c.Fine = n, 32, true
			return model(c, err, models.Transformer)
		},
	}
	moe = workload{
		name: "Transformer w/ MoE", unit: "pairs", words: 1, partition: 20, own: 176,
		ablation: map[string]int{full: 4, replica: 4},
		guess:    map[string]int{full: 16, replica: 16},
		build: func(size string, n int) (*models.Model, error) {
			c, err := models.NewMoEConfig(size)
			c.Pairs, c.Fine = n, true
			return model(c, err, models.MoE)
		},
	}
	resnet = workload{
		name: "ResNet-152", unit: "images", words: 1, partition: 20,
		ablation: map[string]int{full: 57, replica: 57 / 4},
		guess:    map[string]int{full: 64, replica: 16},
		build: func(size string, n int) (*models.Model, error) {
			c, err := models.NewResNetConfig(size)
			c.Images, c.Fine = n, true
			return model(c, err, models.ResNet)
		},
	}
	wgan = workload{
		name: "WGAN-GP", unit: "images", words: 1, partition: 20, own: 114,
		ablation: map[string]int{full: 90, replica: 90 / 8},
		guess:    map[string]int{full: 100, replica: 12},
		build: func(size string, n int) (*models.Model, error) {
			c, err := models.NewWGANConfig(size)
			c.Images, c.Fine = n, true
			return model(c, err, models.WGAN)
		},
	}
	deepspeech = workload{
		name: "DeepSpeech", unit: "frames", words: 1, partition: 5,
		ablation: map[string]int{full: 165, replica: 165},
		guess:    map[string]int{full: 400, replica: 400},
		build: func(size string, n int) (*models.Model, error) {
			c, err := models.NewDeepSpeechConfig(size)
			c.Frames, c.Labels, c.Fine, c.Unrolled = n, 40, true, true
			return model(c, err, models.DeepSpeech)
		},
	}
	five = []workload{resnet, transformer, moe, wgan, deepspeech}
)

// model builds a model of a configuration that may not exist.
func model[C any](c C, err error, build func(C) (*models.Model, error)) (*models.Model, error) {
	if err != nil {
		return nil, err
	}
	return build(c)
}

// deepResNet has [3, 32, n, 3] blocks and a number of images.
func deepResNet(images map[string]int) workload {
	w := resnet
	w.name, w.unit = "ResNet", "blocks of stage 3"
	w.guess = map[string]int{full: 100, replica: 100}
	w.build = func(size string, n int) (*models.Model, error) {
		c, err := models.NewResNetConfig(size)
		c.Images, c.Fine, c.Blocks = images[size], true, [4]int{3, 32, n, 3}
		return model(c, err, models.ResNet)
	}
	return w
}

// layers is the depth of a deep ResNet.
func layers(blocks int) int { return 3*(3+32+blocks+3) + 2 }

// wideMoE has n experts of twice the usual hidden units, and 8 pairs.
func wideMoE() workload {
	w := moe
	w.unit, w.partition = "experts", 200
	w.guess = map[string]int{full: 24, replica: 24}
	w.build = func(size string, n int) (*models.Model, error) {
		c, err := models.NewMoEConfig(size)
		c.Pairs, c.Experts, c.ExpertHidden, c.Sparse, c.Fine = 8, n, 2*c.ExpertHidden, true, true
		return model(c, err, models.MoE)
	}
	return w
}

// amount prints n as the thesis counts.
func (w workload) amount(n int) string { return grouped(n * w.words) }

// grouped prints a number in groups of three digits.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
