package nn

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// ConvOptions are those of [Conv2D] and [ConvTranspose2D].
type ConvOptions struct {
	Stride int // of both axes; 0 means 1
	// Pad is the rows and columns of zeros around images. Without it, and unless Valid is
	// set, there are as many as make the result ⌈size/Stride⌉ large, the odd one behind:
	// TensorFlow's SAME.
	Pad   int
	Valid bool // no padding

	Dilation int // distance of a filter's elements; 0 means 1
	Groups   int // into which channels fall, without mixing; 0 means 1

	NoBias bool
	Filter Init   // nil means [He]
	Bias   Init   // nil means zeros
	Name   string // of the filters; "" means "filters"
}

// window is stride and padding for an image.
func (o ConvOptions) window(t graph.Type, k int) ops.Conv {
	stride, dilation := max(o.Stride, 1), max(o.Dilation, 1)
	c := ops.Conv{Stride: [2]int{stride, stride}, Dilation: [2]int{dilation, dilation},
		Groups: o.Groups}
	switch {
	case o.Pad != 0:
		c.Pad = [4]int{o.Pad, o.Pad, o.Pad, o.Pad}
	case !o.Valid:
		c.Pad = same(t, (k-1)*dilation+1, stride)
	}
	return c
}

// same is TensorFlow's padding "SAME" of images under windows.
func same(t graph.Type, window, stride int) [4]int {
	top, bottom := samePad(t.Size(2), window, stride)
	left, right := samePad(t.Size(3), window, stride)
	return [4]int{top, left, bottom, right}
}

// samePad is TensorFlow's padding "SAME" of n elements under windows: as much as
// makes ⌈n/stride⌉ of them, the odd one behind.
func samePad(n, window, stride int) (before, after int) {
	windows := (n + stride - 1) / stride
	total := max(0, (windows-1)*stride+window-n)
	return total / 2, total - total/2
}

// image demands a batch of images and a window of a size that there is.
func image(layer string, x graph.Value, k int, stride int) bool {
	if !exact(layer, x, 4, "batch, channels, height and width") {
		return false
	}
	if k < 1 || stride < 0 {
		x.Graph().Fail(errorf("%s with windows of %d by %d and stride %d: want 1 or more", layer, k,
			k, stride))
		return false
	}
	return true
}

// Conv2D is the convolution of images with filters of k by k: x f32[batch in height
// width] → f32[batch out height/stride width/stride], with filters f32[out in/groups k
// k] and bias f32[out].
func Conv2D(c *Ctx, x graph.Value, out, k int, options ...ConvOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !image("convolution", x, k, o.Stride) || !o.divides(x, out) {
		return graph.Value{}
	}
	defer c.Enter()()
	in := x.Type().Size(1) / max(o.Groups, 1)
	w := c.Param(either(o.Name, "filters"), o.Filter.or(He), out, in, k, k)
	return c.shift(ops.Conv2D(x, w, o.window(x.Type(), k)), out, o)
}

// divides demands numbers of channels that groups divide.
func (o ConvOptions) divides(x graph.Value, out int) bool {
	in, n := x.Type().Size(1), max(o.Groups, 1)
	if out < 1 || in%n != 0 || out%n != 0 || o.Groups < 0 || o.Dilation < 0 {
		x.Graph().Fail(errorf("convolution of %d channels to %d in %d groups with dilation %d", in,
			out, o.Groups, o.Dilation))
		return false
	}
	return true
}

// shift adds a number to each channel, unless there is none.
func (c *Ctx) shift(x graph.Value, channels int, o ConvOptions) graph.Value {
	if o.NoBias {
		return x
	}
	return ops.Add(x, ops.ReshapeSizes(c.Param("bias", o.Bias, channels), channels, 1, 1))
}

// ConvTranspose2D is a convolution the other way round, which makes images larger:
// x f32[batch in height width] → f32[batch out height·stride width·stride], with
// filters f32[in out k k] and bias f32[out]. With Valid or Pad the sizes are
// (n−1)·stride + k − 2·Pad. Groups and dilation are not for it.
func ConvTranspose2D(c *Ctx, x graph.Value, out, k int, options ...ConvOptions) graph.Value {
	o, ok := one(c.Graph(), options)
	if !ok || !image("transposed convolution", x, k, o.Stride) {
		return graph.Value{}
	}
	if o.Groups > 1 || o.Dilation > 1 {
		c.Graph().Fail(errorf("transposed convolution in groups, or with dilation"))
		return graph.Value{}
	}
	defer c.Enter()()
	t, stride := x.Type(), max(o.Stride, 1)
	size := [2]int{t.Size(2) * stride, t.Size(3) * stride}
	if o.Valid || o.Pad != 0 {
		for i := range size {
			size[i] = (t.Size(2+i)-1)*stride + k - 2*o.Pad
		}
	}
	large := graph.Type{Shape: []graph.Dim{t.Shape[0], {Size: out}, {Size: size[0]},
		{Size: size[1]}}}
	init := Exactly(o.Filter.or(He)(t.Size(1)*k*k, out*k*k))
	w := c.Param(either(o.Name, "filters"), init, t.Size(1), out, k, k)
	return c.shift(ops.ConvTranspose2D(x, w, o.window(large, k), size), out, o)
}

// PoolOptions are those of [MaxPool2D] and [AvgPool2D].
type PoolOptions struct {
	Stride int  // of both axes; 0 means the window's size
	Same   bool // padded like convolutions: ⌈size/Stride⌉ windows
}

func (o PoolOptions) window(t graph.Type, k int) ops.Window {
	stride := o.Stride
	if stride == 0 {
		stride = k
	}
	w := ops.Window{Size: [2]int{k, k}, Stride: [2]int{stride, stride}}
	if o.Same {
		w.Pad = same(t, k, stride)
	}
	return w
}

// MaxPool2D is the largest element of windows of k by k: f32[batch channels height
// width] → f32[batch channels height/stride width/stride].
func MaxPool2D(x graph.Value, k int, options ...PoolOptions) graph.Value {
	return pool("max pooling", ops.MaxPool2D, x, k, options)
}

// AvgPool2D is the mean of windows of k by k, as [MaxPool2D] is the maximum.
// Padding does not count.
func AvgPool2D(x graph.Value, k int, options ...PoolOptions) graph.Value {
	return pool("average pooling", ops.AvgPool2D, x, k, options)
}

func pool(layer string, by func(graph.Value, ops.Window) graph.Value, x graph.Value, k int,
	options []PoolOptions) graph.Value {
	if !x.Valid() {
		return x // the graph's error says why
	}
	o, ok := one(x.Graph(), options)
	if !ok || !image(layer, x, k, o.Stride) {
		return graph.Value{}
	}
	return by(x, o.window(x.Type(), k))
}

// GlobalMean is the mean of every channel: f32[batch channels height width] →
// f32[batch channels].
func GlobalMean(x graph.Value) graph.Value { return ops.GlobalMean(x) }
