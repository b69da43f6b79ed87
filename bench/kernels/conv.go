package main

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/internal/kernel/conv"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// layer is a convolution of square images with square filters.
type layer struct{ in, size, out, filter, stride, pad int }

// images is the batch of a layer.
const images = 4

// layers are those of ResNet-50 on images of 224×224 that differ in kind: the
// stem, 3×3 and 1×1 of every stage, and those that halve the image.
var layers = []layer{
	{3, 224, 64, 7, 2, 3},
	{64, 56, 64, 3, 1, 1},
	{128, 28, 128, 3, 1, 1},
	{256, 14, 256, 3, 1, 1},
	{512, 7, 512, 3, 1, 1},
	{128, 56, 128, 3, 2, 1},
	{64, 56, 256, 1, 1, 0},
	{256, 56, 64, 1, 1, 0},
	{512, 28, 128, 1, 1, 0},
	{1024, 14, 256, 1, 1, 0},
	{512, 7, 2048, 1, 1, 0},
	{256, 56, 512, 1, 2, 0},
}

func (l layer) String() string {
	s := fmt.Sprintf("%d×%d %d→%d, %d²", l.filter, l.filter, l.in, l.out, l.size)
	if l.stride > 1 {
		s += fmt.Sprint(", stride ", l.stride)
	}
	return s
}

func (l layer) shape() conv.Shape {
	return conv.Shape{
		Batch: images, InC: l.in, InH: l.size, InW: l.size, OutC: l.out, KH: l.filter, KW: l.filter,
		StrideH: l.stride, StrideW: l.stride,
		PadTop: l.pad, PadLeft: l.pad, PadBottom: l.pad, PadRight: l.pad,
		DilH: 1, DilW: 1, Groups: 1,
	}
}

// direction is one of the three computations of a layer, in the order of the
// peer's numbers.
type direction struct {
	name    string
	scratch func(s conv.Shape) int64
	launch  func(p *pool.Pool, s conv.Shape, x, w, y, scratch []float32)
	result  int // operand
}

var directions = []direction{
	{"forward", conv.ScratchForward,
		func(p *pool.Pool, s conv.Shape, x, w, y, scratch []float32) {
			conv.Forward(p, s, x, w, y, scratch, nil)
		}, 2},
	{"input gradient", conv.ScratchGradInput,
		func(p *pool.Pool, s conv.Shape, x, w, y, scratch []float32) {
			conv.GradInput(p, s, y, w, x, scratch)
		}, 0},
	{"filter gradient", conv.ScratchGradFilter,
		func(p *pool.Pool, s conv.Shape, x, w, y, scratch []float32) {
			conv.GradFilter(p, s, x, y, w, scratch)
		}, 1},
}

func (b *bench) convolution(kind int, l layer, plain, own *peer) (comparison, error) {
	p, s := directions[kind], l.shape()
	if err := s.Validate(); err != nil {
		return comparison{}, err
	}
	x := operands(s.Batch*s.InC*s.InH*s.InW, s.OutC*s.InC*s.KH*s.KW,
		s.Batch*s.OutC*s.OutH()*s.OutW())
	scratch := make([]float32, (p.scratch(s)+3)/4)
	question := func(convert int) string {
		return fmt.Sprintf("conv %d %d %d %d %d %d %d %d %d", kind, convert, images, l.in, l.size,
			l.out, l.filter, l.stride, l.pad)
	}
	return comparison{
		name:   fmt.Sprintf("%s, %s", l, p.name),
		work:   float64(s.FLOPs()),
		launch: func() { p.launch(b.pool, s, x[0], x[1], x[2], scratch) },
		result: x[p.result],
		rivals: []rival{{peer: plain, question: question(1), same: true},
			{peer: own, question: question(0)}},
	}, nil
}

// convolutions is the table of convolutions and their gradients.
func convolutions(ctx context.Context, b *bench) error {
	plain := b.start(ctx, oneDNN)
	own := b.again(ctx, oneDNN)
	fmt.Fprintf(b.w, "\nGFLOP/s, batch %d, float32. gomem's operands are NCHW. oneDNN has them "+
		"in NCHW, conversion to the layouts it chooses included, as PyTorch calls it; and in its "+
		"own layouts throughout. In brackets, the target.\n", images)
	header(b.w, "filter in→out, image", "gomem", "oneDNN, NCHW", "gomem / oneDNN, NCHW",
		"best / best", "oneDNN, own", "gomem / oneDNN, own")
	for _, l := range layers {
		for kind := range directions {
			c, err := b.convolution(kind, l, plain, own)
			if err != nil {
				return err
			}
			err = b.measure(ctx, c, func(o outcome) []string {
				return []string{
					number(o.rates[0] / 1e9), number(o.rates[1] / 1e9), against(o.ratios[0], 0.85),
					number(o.best[0]), number(o.rates[2] / 1e9), number(o.ratios[1]),
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
