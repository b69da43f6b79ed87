package models

import (
	"fmt"
	"math"
)

// WGANConfig is one pair of adversarial networks. [NewWGANConfig] fills it in;
// every number may be changed afterwards.
type WGANConfig struct {
	Size string // s512, s64 or base

	Nets string // "resnet": bottleneck blocks, 101 layers each; "good": four wide blocks each
	// of resnet: blocks for each size that images have on their way, one less for the last
	Blocks int

	Images int // a step
	Pixels int // of a side of an image: a multiple of 16, by which the networks scale
	Dim    int // channels at half of the images' size; a multiple of 4 for resnet
	Noise  int // numbers that an image is made of

	CriticTimes int     // steps of the critic for one of the generator
	Penalty     float32 // weight of the gradient penalty
	Fine        bool    // norms and optimizer composed of arithmetic, as in TensorFlow 1

	// Schedule of the learning rate; zero means the size's own for such networks.
	Schedule Constant

	Training Training // in place of the updates' own
}

// What Nets may be.
const (
	netsResNet = "resnet"
	netsGood   = "good"
)

// NewWGANConfig is the pair of a size: "base" is the one of Wei's thesis, two
// networks of 101 layers for images of 64×64 (16.8 million parameters), "s64" its
// replica at 1/64 of the memory with the same graph, and "s512" a small one for
// tests. The replicas learn faster.
func NewWGANConfig(size string) (WGANConfig, error) {
	c := WGANConfig{
		Size: size, Nets: netsResNet, Blocks: 6, Pixels: 64, Noise: 128,
		CriticTimes: 5, Penalty: 10,
	}
	switch size {
	case "base":
		c.Images, c.Dim = 64, 64
	case "s64":
		c.Images, c.Dim = 8, 8
	case "s512":
		c.Blocks, c.Images, c.Pixels, c.Dim = 1, 4, 32, 4
	default:
		return WGANConfig{}, unknownSize(size)
	}
	return c, nil
}

// Validate reports the first number that no pair can have, on one line that names
// the option and what to do.
func (c WGANConfig) Validate() error {
	if _, err := NewWGANConfig(c.Size); err != nil {
		return err
	}
	if c.Nets != netsResNet && c.Nets != netsGood {
		return fmt.Errorf("--nets is %q: want %s or %s", c.Nets, netsResNet, netsGood)
	}
	if err := images(c.Images, c.Pixels, 16); err != nil {
		return err
	}
	if err := within(
		limit{"blocks", c.Blocks, 1, maxLayers},
		limit{"width", c.Dim, 1, 1 << 20},
		limit{"noise", c.Noise, 1, math.MaxInt32},
		limit{"critic's steps", c.CriticTimes, 1, 1 << 20},
	); err != nil {
		return err
	}
	return c.validateRest()
}

func (c WGANConfig) validateRest() error {
	switch {
	case c.Pixels%16 != 0:
		return fmt.Errorf("--pixels is %d: want a multiple of 16", c.Pixels)
	case c.Nets == netsResNet && c.Dim%4 != 0:
		return fmt.Errorf("width is %d: want a multiple of 4", c.Dim)
	case !(c.Penalty >= 0) || math.IsInf(float64(c.Penalty), 0):
		return fmt.Errorf("weight of the gradient penalty is %v: want a number from 0", c.Penalty)
	case !(c.schedule() > 0) || math.IsInf(float64(c.Schedule), 0):
		return fmt.Errorf("learning rate is %v: want a positive number", float32(c.Schedule))
	}
	return nil
}

// schedule is that of the learning rate. The narrow critic of many layers starts
// steep: until the penalty has flattened it, nothing else is learnt.
func (c WGANConfig) schedule() Constant {
	switch {
	case c.Schedule != 0:
		return c.Schedule
	case c.Size == "base":
		return 1e-4
	case c.Nets == netsGood:
		return 5e-4
	}
	return 2e-3
}

// residualShape is what a block takes and gives. Its images become twice or half
// as large if the sides differ.
type residualShape struct{ in, out, from, to int }

func (s residualShape) grows() bool   { return s.to > s.from }
func (s residualShape) shrinks() bool { return s.to < s.from }
func (s residualShape) same() bool    { return s.to == s.from && s.in == s.out }

// blocks are the blocks of the generator, which grow images of a sixteenth of the
// size. Those of the critic are their mirror image.
func (c WGANConfig) blocks() []residualShape {
	widths := [5]int{8 * c.Dim, 4 * c.Dim, 2 * c.Dim, c.Dim, c.Dim / 2}
	kept := c.Blocks
	if c.Nets == netsGood {
		widths, kept = [5]int{8 * c.Dim, 8 * c.Dim, 4 * c.Dim, 2 * c.Dim, c.Dim}, 0
	}
	var list []residualShape
	side := c.Pixels / 16
	for i, width := range widths {
		if i > 0 {
			list = append(list, residualShape{widths[i-1], width, side, 2 * side})
			side *= 2
		}
		if i == len(widths)-1 {
			kept = max(0, kept-1)
		}
		for range kept {
			list = append(list, residualShape{width, width, side, side})
		}
	}
	return list
}

// mirrored are the blocks from the last to the first, each the other way round.
func mirrored(blocks []residualShape) []residualShape {
	list := make([]residualShape, len(blocks))
	for i, s := range blocks {
		list[len(blocks)-1-i] = residualShape{s.out, s.in, s.to, s.from}
	}
	return list
}
