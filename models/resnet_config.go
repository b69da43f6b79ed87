package models

import (
	"fmt"
	"math"
)

// ResNetConfig is one residual network. [NewResNetConfig] fills it in; every
// number may be changed afterwards.
type ResNetConfig struct {
	Size string // s512, s64 or base

	Version int    // 1: norms after convolutions, the original; 2: before, identity throughout
	Depth   int    // layers with weights along the longest path: see [ResNetBlocks]
	Blocks  [4]int // of each stage; zero means those of Depth, which they override

	Images int // a step
	Pixels int // of a side of an image
	// channels behind the first layer; a stage's blocks give 4, 8, 16 and 32 times as many
	Width   int
	Classes int // of which 0 is the background: no image

	NormMomentum float32 // of the averages of means and variances, a step
	WeightDecay  float32 // of the sum of squares of all parameters but the norms', halved
	// of version 1: blocks start as the identity, the scale of their last norm as 0 and not as 1
	ZeroBlocks bool
	Fine       bool // optimizer composed of arithmetic, as in TensorFlow 1

	// Schedule of the learning rate; zero means the size's own for so many images a
	// step.
	Schedule Stepwise

	Training Training // in place of the updates' own
}

// NewResNetConfig is the model of a size: "base" is ResNet-152 on ImageNet (60
// million parameters), "s64" its replica at 1/64 of the memory with the same
// graph, and "s512" a small one for tests. The replicas are to learn in minutes:
// they warm up in tens of steps, their norms remember tens of steps rather than
// hundreds, and their blocks start as the identity (Goyal et al. 2017), without
// which 152 layers learn nothing of batches of 4 in that time.
func NewResNetConfig(size string) (ResNetConfig, error) {
	c := ResNetConfig{Size: size, Version: 1, Depth: 152, WeightDecay: 1e-4, NormMomentum: 0.9,
		ZeroBlocks: true}
	switch size {
	case "base":
		c.Images, c.Pixels, c.Width, c.Classes = 57, 224, 64, 1001
		c.NormMomentum, c.ZeroBlocks = 0.997, false
	case "s64":
		c.Images, c.Pixels, c.Width, c.Classes = 4, 160, 8, 126
	case "s512":
		c.Depth, c.Images, c.Pixels, c.Width, c.Classes = 14, 4, 32, 4, 126
	default:
		return ResNetConfig{}, unknownSize(size)
	}
	return c, nil
}

// ResNetBlocks is the number of blocks of each stage of a network of a depth,
// which is 3n+2 for n blocks. Depths of 14, 26, 50, 101, 152 and 200 have the
// published or usual ones, deeper networks [3, 32, x, 3], as Wei's thesis does:
// 506 (which it calls 504), 1001, 1079 and 1916 have x of 130, 295, 321 and 600.
func ResNetBlocks(depth int) ([4]int, error) {
	switch depth {
	case 14:
		return [4]int{1, 1, 1, 1}, nil
	case 26:
		return [4]int{2, 2, 2, 2}, nil
	case 50:
		return [4]int{3, 4, 6, 3}, nil
	case 101:
		return [4]int{3, 4, 23, 3}, nil
	case 152:
		return [4]int{3, 8, 36, 3}, nil
	case 200:
		return [4]int{3, 24, 36, 3}, nil
	}
	const shallow, deepest = 200, 3*maxBlocks + 2
	if depth < shallow || depth > deepest || depth%3 != 2 {
		return [4]int{}, fmt.Errorf("--depth is %d: want 14, 26, 50, 101, 152, 200, or one of "+
			"203, 206, … %d, such as 506, 1001, 1079 or 1916", depth, deepest)
	}
	return [4]int{3, 32, (depth-2)/3 - 38, 3}, nil
}

// maxBlocks is the most blocks that a graph is built of.
const maxBlocks = 1 << 14

// blocks is the number of blocks of each stage.
func (c ResNetConfig) blocks() ([4]int, error) {
	if c.Blocks == ([4]int{}) {
		return ResNetBlocks(c.Depth)
	}
	total := 0
	for i, n := range c.Blocks {
		if err := within(limit{fmt.Sprintf("--blocks of stage %d", i+1), n, 1,
			maxBlocks}); err != nil {
			return c.Blocks, err
		}
		total += n
	}
	return c.Blocks, within(limit{"--blocks in all", total, 4, maxBlocks})
}

// Validate reports the first number that no model can have, on one line that
// names the option and what to do.
func (c ResNetConfig) Validate() error {
	if _, err := NewResNetConfig(c.Size); err != nil {
		return err
	}
	if _, err := c.blocks(); err != nil {
		return err
	}
	if err := images(c.Images, c.Pixels, 1); err != nil {
		return err
	}
	if err := within(
		limit{"--version", c.Version, 1, 2},
		limit{"width", c.Width, 1, 1 << 20},
		limit{"classes", c.Classes, 2, math.MaxInt32},
	); err != nil {
		return err
	}
	if err := fractions(share{"momentum of norms", c.NormMomentum},
		share{"weight decay", c.WeightDecay}); err != nil {
		return err
	}
	return c.schedule().Validate()
}

// schedule is that of the learning rate, which grows with the batch. Base's is
// that of the official model: five epochs of warm-up, and drops after 30, 60, 80
// and 90 epochs of ImageNet.
func (c ResNetConfig) schedule() Stepwise {
	if c.Schedule != (Stepwise{}) {
		return c.Schedule
	}
	if c.Size != "base" {
		return Stepwise{Rate: min(0.1, 0.0025*float64(c.Images)), Warmup: 50}
	}
	const imageNet = 1_281_167
	epochs := func(n int) int { return n * imageNet / c.Images }
	return Stepwise{
		Rate:   0.128 * float64(c.Images) / 256,
		Warmup: epochs(5),
		Drops:  [4]int{epochs(30), epochs(60), epochs(80), epochs(90)},
	}
}

// Parameters is the number of elements of all variables that are neither
// optimizer state nor averages, by closed form.
func (c ResNetConfig) Parameters() int64 {
	blocks, err := c.blocks()
	if err != nil {
		return 0
	}
	w := int64(c.Width)
	total := 3 * 7 * 7 * w
	if c.Version == 1 {
		total += 2 * w
	}
	in := w
	for i, n := range blocks {
		f := w << i
		norms := 20 * f
		if c.Version == 2 {
			norms = 2*in + 4*f
		}
		total += 5*in*f + 13*f*f + norms + int64(n-1)*(17*f*f+12*f)
		in = 4 * f
	}
	if c.Version == 2 {
		total += 2 * in
	}
	return total + (in+1)*int64(c.Classes)
}
