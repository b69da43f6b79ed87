package images

import (
	"fmt"
	"image"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

// Scale is what becomes of the levels 0 to 255 of red, green and blue.
type Scale int

const (
	// Means subtracts each channel's mean over ImageNet: 123.68, 116.78, 103.94.
	Means Scale = iota
	// Symmetric maps levels to −1 to 1.
	Symmetric
)

// levels tabulates a scale by channel and level.
func (s Scale) levels() (table [3][256]float32) {
	means := [3]float32{123.68, 116.78, 103.94}
	for c := range table {
		for level := range table[c] {
			if s == Symmetric {
				table[c][level] = 2*float32(level)/255 - 1
			} else {
				table[c][level] = float32(level) - means[c]
			}
		}
	}
	return table
}

// LoaderOptions shapes batches. The zero value gives 16 images of 64 by 64
// pixels, less ImageNet's means.
type LoaderOptions struct {
	Images  int // images a batch; 0 means 16
	Size    int // pixels a side; 0 means 64
	Scale   Scale
	Classes int    // labels are below it: the model's classes; 0 means no model minds
	Seed    uint64 // selects the order of training images and how they are cut
}

// Defaults and limits of LoaderOptions.
const (
	defaultImages = 16
	defaultSize   = 64
	maxElements   = 1 << 31
)

// withDefaults fills the zero fields.
func (o LoaderOptions) withDefaults() LoaderOptions {
	if o.Images == 0 {
		o.Images = defaultImages
	}
	if o.Size == 0 {
		o.Size = defaultSize
	}
	return o
}

// Validate reports the first field that no loader can use.
func (o LoaderOptions) Validate() error {
	o = o.withDefaults()
	switch {
	case o.Images < 1:
		return fmt.Errorf("batch of %d images: give at least 1", o.Images)
	case o.Size < 1:
		return fmt.Errorf("images of %d pixels a side: give at least 1", o.Size)
	case o.Size > 1<<15 || o.Images > maxElements/(3*o.Size*o.Size):
		return fmt.Errorf("batch of %d images of %d pixels a side: give smaller images or fewer",
			o.Images, o.Size)
	case o.Scale != Means && o.Scale != Symmetric:
		return fmt.Errorf("scale %d of images: give means or symmetric", int(o.Scale))
	case o.Classes < 0:
		return fmt.Errorf("model of %d classes: give a positive number, or 0 for any", o.Classes)
	}
	return nil
}

// Loader makes batches. Its methods are pure functions: they keep no state and
// any number of goroutines may call them.
type Loader struct {
	set    *Set
	opts   LoaderOptions
	order  data.Order
	levels [3][256]float32
}

var _ data.Batches = (*Loader)(nil)

// NewLoader prepares batches of a set. A set with less than one batch of training
// images, or with a label beyond the model's classes, gives a *data.Error.
func NewLoader(s *Set, o LoaderOptions) (*Loader, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	n := s.train.len()
	if n < o.Images && !s.whole {
		err := fmt.Errorf("%d training images do not fill one batch of %d: %s", n, o.Images,
			data.Instead(n, "a larger set"))
		return nil, &data.Error{Spec: s.Info.Spec, Err: err}
	}
	if o.Classes > 0 && s.labels == nil && s.Classes >= o.Classes {
		err := fmt.Errorf("%d kinds of images and the background: a model of %d classes cannot "+
			"tell them apart, give it %d or use a smaller set",
			s.Classes, o.Classes, s.Classes+1)
		return nil, &data.Error{Spec: s.Info.Spec, Err: err}
	}
	order := data.Order{Items: n, Batch: o.Images, Seed: o.Seed}
	return &Loader{set: s, opts: o, order: order, levels: o.Scale.levels()}, nil
}

// StepsPerEpoch is the number of full batches of training images. The few images
// that an epoch leaves over differ from epoch to epoch.
func (l *Loader) StepsPerEpoch() int { return l.order.Steps() }

// HeldOutBatches is the number of batches that hold every held-out image once.
// It is 0 for a set without held-out images.
func (l *Loader) HeldOutBatches() int {
	return (l.set.heldOut.len() + l.opts.Images - 1) / l.opts.Images
}

// Train makes the batch of a step, from 0: pixels f32[Images 3 Size Size] and
// labels i32[Images]. It depends on nothing but the set, the options and the
// step.
func (l *Loader) Train(step int) data.Batch {
	return l.batch(l.set.train, l.opts.Images, func(row int) (int, *rand.Rand) {
		place := uint64(step)*uint64(l.opts.Images) + uint64(row)
		return l.order.Item(step, row), rand.New(rand.NewPCG(l.opts.Seed, place))
	})
}

// Uncounted is the batch of a step without labels: see [data.Maskable].
func (l *Loader) Uncounted(step int) (b data.Batch, ok bool) {
	b = l.Train(step)
	clear(b.Inputs[1].I32())
	b.Units = 0
	return b, true
}

// HeldOut makes held-out batch i, 0 ≤ i < HeldOutBatches, in the order of the
// set. Rows behind the last image are zero and have the label 0.
func (l *Loader) HeldOut(i int) data.Batch {
	first := i * l.opts.Images
	rows := min(l.opts.Images, l.set.heldOut.len()-first)
	return l.batch(l.set.heldOut, rows, func(row int) (int, *rand.Rand) { return first + row, nil })
}

// batch paints the first rows of a batch, on all cores: the images that pick
// says, distorted with its source of randomness.
func (l *Loader) batch(from part, rows int, pick func(row int) (int, *rand.Rand)) data.Batch {
	n, size := l.opts.Images, l.opts.Size
	pixels, labels := make([]float32, n*3*size*size), make([]int32, n)
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(rows, runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			canvas := image.NewRGBA(image.Rect(0, 0, size, size))
			for row := int(next.Add(1)) - 1; row < rows; row = int(next.Add(1)) - 1 {
				i, rng := pick(row)
				from.paint(canvas, i, rng)
				planes(pixels[row*3*size*size:][:3*size*size], canvas.Pix, &l.levels)
				labels[row] = int32(l.set.label(from.kind(i)))
			}
		})
	}
	running.Wait()
	return data.Batch{
		Inputs: []tensor.View{tensor.FromF32(pixels, n, 3, size, size), tensor.FromI32(labels, n)},
		Units:  rows,
	}
}

// planes takes the pixels of an image apart into channels, scaled by tables.
func planes(dst []float32, rgba []uint8, tables *[3][256]float32) {
	n := len(dst) / 3
	for c := range 3 {
		levels, plane := &tables[c], dst[c*n:][:n]
		for i := range plane {
			plane[i] = levels[rgba[4*i+c]]
		}
	}
}
