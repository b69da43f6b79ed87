package images

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph/tensor"
)

func loader(t testing.TB, s *Set, o LoaderOptions) *Loader {
	t.Helper()
	l, err := NewLoader(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestShapes(t *testing.T) {
	l := loader(t, open(t, "glyphs", Options{}), LoaderOptions{Images: 48, Size: 16})
	b := l.Train(0)
	if !b.Inputs[0].Type.Equal(tensor.Of(tensor.F32, 48, 3, 16, 16)) ||
		!b.Inputs[1].Type.Equal(tensor.Of(tensor.I32, 48)) || b.Units != 48 {
		t.Errorf("batch of %s and %s, %d units", b.Inputs[0].Type, b.Inputs[1].Type, b.Units)
	}
	if l.StepsPerEpoch() != 50_000/48 || l.HeldOutBatches() != 21 {
		t.Errorf("%d steps, %d held-out batches", l.StepsPerEpoch(), l.HeldOutBatches())
	}
	b = loader(t, l.set, LoaderOptions{}).Train(1 << 40)
	if !b.Inputs[0].Type.Equal(tensor.Of(tensor.F32, 16, 3, 64, 64)) {
		t.Errorf("by default, a batch of %s", b.Inputs[0].Type)
	}
}

// TestScales: the colours of both scales, by hand.
func TestScales(t *testing.T) {
	s := open(t, "dir:"+tree(t, 3), Options{})
	for scale, want := range map[Scale][2][3]float32{ // blue, then red
		Means:     {{-123.68, -116.78, 151.06}, {131.32, -116.78, -103.94}},
		Symmetric: {{-1, -1, 1}, {1, -1, -1}},
	} {
		b := loader(t, s, LoaderOptions{Images: 6, Size: 4, Scale: scale}).Train(0)
		for i, label := range b.Inputs[1].I32() {
			for j, v := range b.Inputs[0].F32()[i*48:][:48] {
				if w := want[label-1][j/16]; math.Abs(float64(v-w)) > 1e-4 {
					t.Fatalf("scale %d: value %d of an image with label %d is %v, want %v", scale,
						j, label, v, w)
				}
			}
		}
	}
}

// TestEpochs: an epoch has every image once, but for what does not fill a batch,
// in an order of its own.
func TestEpochs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 80).Draw(rt, "images")
		o := LoaderOptions{Images: rapid.IntRange(1, n).Draw(rt, "batch"),
			Seed: rapid.Uint64().Draw(rt, "seed"), Size: 1}
		l := loader(t, &Set{train: numbered(n), heldOut: numbered(0), Classes: n}, o)
		for epoch := range 2 {
			var seen []int32
			for step := range l.StepsPerEpoch() {
				seen = append(seen, l.Train(epoch*l.StepsPerEpoch() + step).Inputs[1].I32()...)
			}
			slices.Sort(seen)
			if len(seen) != n/o.Images*o.Images || len(slices.Compact(seen)) != len(seen) {
				rt.Fatalf("epoch %d of %d images in batches of %d: %v", epoch, n, o.Images, seen)
			}
		}
	})
}

// numbered is a part whose images are each a kind.
type numbered int

func (n numbered) len() int                         { return int(n) }
func (numbered) kind(i int) int                     { return i }
func (numbered) paint(*image.RGBA, int, *rand.Rand) {}

// equal compares the inputs of two batches.
func equal(a, b []tensor.View) bool {
	return slices.Equal(a[0].F32(), b[0].F32()) && slices.Equal(a[1].I32(), b[1].I32())
}

// TestPure: a batch is a function of the options and the step, whoever asks and
// whenever.
func TestPure(t *testing.T) {
	for _, spec := range []string{"glyphs", "dir:" + tree(t, 20), "cifar10:" + cifarFiles(t, 8)} {
		s := open(t, spec, Options{})
		l, again := loader(t, s, LoaderOptions{Images: 16, Size: 12}),
			loader(t, s, LoaderOptions{Images: 16, Size: 12})
		later := l.Train(1)
		first := l.Train(0)
		if !equal(first.Inputs, again.Train(0).Inputs) ||
			!equal(later.Inputs, again.Train(1).Inputs) {
			t.Errorf("%s: a step has two batches", spec)
		}
		other := loader(t, s, LoaderOptions{Images: 16, Size: 12, Seed: 1}).Train(0)
		if equal(first.Inputs, later.Inputs) || equal(first.Inputs, other.Inputs) {
			t.Errorf("%s: two steps or seeds have one batch", spec)
		}
	}
}

// TestHeldOut: every held-out image is there once, undistorted, and the rows
// behind the last are empty.
func TestHeldOut(t *testing.T) {
	l := loader(t, open(t, "cifar10:"+cifarFiles(t, 7), Options{}),
		LoaderOptions{Images: 5, Size: 8, Scale: Symmetric})
	var labels []int32
	units := 0
	for i := range l.HeldOutBatches() {
		b := l.HeldOut(i)
		labels = append(labels, b.Inputs[1].I32()...)
		units += b.Units
	}
	if want := []int32{6, 7, 8, 9, 10, 1, 2, 0, 0, 0}; !slices.Equal(labels, want) || units != 7 {
		t.Errorf("labels %v of %d images, want %v", labels, units, want)
	}
	for _, v := range l.HeldOut(1).Inputs[0].F32()[2*3*64:] {
		if v != 0 {
			t.Fatalf("there is %v behind the last image", v)
		}
	}
	if none := loader(t, &Set{train: numbered(3), heldOut: numbered(0)},
		LoaderOptions{Images: 3, Size: 1}); none.HeldOutBatches() != 0 {
		t.Errorf("%d batches of nothing", none.HeldOutBatches())
	}
}

// TestUncounted: a batch that counts for nothing has the images of its step, and no labels.
func TestUncounted(t *testing.T) {
	l := loader(t, open(t, "cifar10:"+cifarFiles(t, 7), Options{}),
		LoaderOptions{Images: 5, Size: 8, Scale: Symmetric})
	b, ok := l.Uncounted(1)
	if !ok || b.Units != 0 || !slices.Equal(b.Inputs[1].I32(), make([]int32, 5)) ||
		!bytes.Equal(b.Inputs[0].Data, l.Train(1).Inputs[0].Data) {
		t.Errorf("%v, %d units, labels %v", ok, b.Units, b.Inputs[1].I32())
	}
}

// TestCrop: what is cut is inside the image, whatever its proportions, and is not
// always the same.
func TestCrop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(1, 40).Draw(t, "width"),
			rapid.IntRange(1, 40).Draw(t, "height")
		corner := image.Pt(rapid.IntRange(-9, 9).Draw(t, "x"), 3)
		src := image.NewNRGBA(image.Rectangle{Min: corner,
			Max: corner.Add(image.Pt(width, height))})
		for i := range src.Pix {
			src.Pix[i] = 255 // grey would be from outside
		}
		dst := image.NewRGBA(image.Rect(0, 0, 6, 6))
		distort(dst, src, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), true)
		for i, v := range dst.Pix {
			if v < 254 {
				t.Fatalf("%d by %d: byte %d is %d", width, height, i, v)
			}
		}
	})
}

func TestMirror(t *testing.T) {
	dst := image.NewRGBA(image.Rect(0, 0, 3, 3))
	for i := range 9 {
		dst.Pix[4*i] = uint8(i)
	}
	mirror(dst)
	for i, want := range []uint8{2, 1, 0, 5, 4, 3, 8, 7, 6} {
		if dst.Pix[4*i] != want {
			t.Errorf("pixel %d was %d, want %d", i, dst.Pix[4*i], want)
		}
	}
}

func TestEncodeGrid(t *testing.T) {
	x := make([]float32, 3*3*2*2) // three images of 2 by 2
	for c, v := range []float32{1, -1, 0} {
		copy(x[12+4*c:], []float32{v, v, v, v}) // the second
		copy(x[24+4*c:], []float32{9, -9, float32(math.NaN()), float32(math.Inf(1))})
	}
	var b bytes.Buffer
	if err := EncodeGrid(&b, tensor.FromF32(x, 3, 3, 2, 2), 2); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds() != image.Rect(0, 0, 4, 4) {
		t.Errorf("bounds %v", img.Bounds())
	}
	for at, want := range map[image.Point]color.NRGBA{
		{0, 0}: {128, 128, 128, 255},
		{3, 1}: {255, 0, 128, 255},
		{0, 2}: {255, 255, 255, 255},
		{1, 2}: {0, 0, 0, 255},
		{0, 3}: {128, 128, 128, 255},
		{1, 3}: {255, 255, 255, 255},
		{2, 2}: {},
	} {
		if have := color.NRGBAModel.Convert(img.At(at.X, at.Y)); have != want {
			t.Errorf("pixel %v is %v, want %v", at, have, want)
		}
	}
}

func TestBadGrids(t *testing.T) {
	pixels := func(sizes ...int) tensor.View { return tensor.New(tensor.Of(tensor.F32, sizes...)) }
	for _, test := range []struct {
		pixels  tensor.View
		columns int
		want    string
	}{
		{pixels(2, 3, 4, 4), 0, "image grid of 0 columns: want 1 or more"},
		{pixels(2, 4, 4, 4), 1, "image grid of f32[2 4 4 4]: want f32[images 3 height width]"},
		{pixels(3, 4, 4), 1, "image grid of f32[3 4 4]"},
		{tensor.New(tensor.Of(tensor.I32, 1, 3, 2, 2)), 1, "image grid of i32[1 3 2 2]"},
	} {
		if err := EncodeGrid(&bytes.Buffer{}, test.pixels, test.columns); err == nil ||
			!strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
	if err := EncodeGrid(broken{}, pixels(1, 3, 2, 2), 1); err == nil ||
		!strings.Contains(err.Error(), "writing an image grid: broken pipe") {
		t.Errorf("error %v", err)
	}
}

// broken cannot be written to.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// BenchmarkGlyphs draws batches of 64 images of 64 by 64 pixels.
func BenchmarkGlyphs(b *testing.B) {
	l := loader(b, open(b, "glyphs", Options{}), LoaderOptions{Images: 64})
	for step := 0; b.Loop(); step++ {
		l.Train(step)
	}
}
