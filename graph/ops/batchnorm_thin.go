package ops

import (
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// thinVectors is the vectors of a block of columns.
const thinVectors = 5

// columns are the channels lo … hi of thin planes, whose elements lie side by side
// in an image: vectors run along an image, and a channel's elements are added up at
// the end.
type columns struct {
	planes
	lo, hi  int
	vectors [thinVectors][]float32 // as long as the columns
}

// columns visits blocks of channels, in parallel.
func (p planes) columns(c *kernel.Call, f func(columns)) {
	blocks, scratch := p.blocks(), floats(c.Scratch)
	c.Pool.Run(blocks, func(b int) {
		t := columns{planes: p}
		t.lo, t.hi = block(b, blocks, p.c)
		for i := range t.vectors {
			at := i * p.c * p.s
			t.vectors[i] = scratch[at+t.lo*p.s : at+t.hi*p.s]
		}
		f(t)
	})
}

// of is image i's part of the columns.
func (t columns) of(x []float32, i int) []float32 {
	return x[(i*t.c+t.lo)*t.s : (i*t.c+t.hi)*t.s]
}

// rowsTogether is the images whose elements are added up before they are added to
// the sum of others, lest small numbers get lost in a long sum; and so many of those sums,
// before they are.
const rowsTogether = 64

// many is so many images that a sum of sums is not enough.
const many = rowsTogether * rowsTogether

// sum adds up over the images what add adds to a vector, which is cleared first; part and
// group are room.
func (t columns) sum(to, part, group []float32, add func(to []float32, i int)) {
	clear(to)
	if t.n <= many {
		group = to
	} else {
		clear(group)
	}
	for first := 0; first < t.n; first += rowsTogether {
		clear(part)
		for i := first; i < min(first+rowsTogether, t.n); i++ {
			add(part, i)
		}
		vec.Add(group, group, part)
		if next := first + rowsTogether; t.n > many && (next%many == 0 || next >= t.n) {
			vec.Add(to, to, group)
			clear(group)
		}
	}
}

// channel is the sum of a channel's elements of a vector.
func (t columns) channel(v []float32, ch int) (sum float64) {
	for _, x := range v[(ch-t.lo)*t.s : (ch-t.lo+1)*t.s] {
		sum += float64(x)
	}
	return sum
}

// fill sets a channel's elements of a vector.
func (t columns) fill(v []float32, ch int, x float32) {
	v = v[(ch-t.lo)*t.s : (ch-t.lo+1)*t.s]
	for i := range v {
		v[i] = x
	}
}

// normalize is batchNorm of the columns.
func (t columns) normalize(out, x, scale, bias, mean, variance []float32, eps float32) {
	center, sum, part, factor, shift := t.vectors[0], t.vectors[1], t.vectors[2], t.vectors[3],
		t.vectors[4]
	count := float64(t.n * t.s)
	t.sum(sum, part, shift, func(to []float32, i int) { vec.Add(to, to, t.of(x, i)) })
	for ch := t.lo; ch < t.hi; ch++ {
		mean[ch] = float32(t.channel(sum, ch) / count)
		t.fill(center, ch, mean[ch])
	}
	if t.n > many {
		t.correct(x, mean)
	}
	t.sum(sum, part, shift, func(to []float32, i int) {
		vec.Sub(factor, t.of(x, i), center)
		vec.Fma(to, factor, factor, to)
	})
	for ch := t.lo; ch < t.hi; ch++ {
		variance[ch] = float32(t.channel(sum, ch) / count)
		t.fill(factor, ch, scale[ch]*inverse(variance[ch], eps))
		t.fill(shift, ch, bias[ch])
	}
	for i := range t.n {
		y := t.of(out, i)
		vec.Sub(y, t.of(x, i), center)
		vec.Fma(y, y, factor, shift)
	}
}

// correct adds to means what the elements differ from them on average, of which rounding takes
// little.
func (t columns) correct(x, mean []float32) {
	center, sum, part, buf, group := t.vectors[0], t.vectors[1], t.vectors[2], t.vectors[3],
		t.vectors[4]
	t.sum(sum, part, group, func(to []float32, i int) {
		vec.Sub(buf, t.of(x, i), center)
		vec.Add(to, to, buf)
	})
	for ch := t.lo; ch < t.hi; ch++ {
		mean[ch] = float32(float64(mean[ch]) + t.channel(sum, ch)/float64(t.n*t.s))
		t.fill(center, ch, mean[ch])
	}
}

// gradient is batchNormGrad of the columns.
func (t columns) gradient(out, x, d, scale, mean, variance, dscale, dbias []float32, eps float32) {
	center, sum, part, buf, factor := t.vectors[0], t.vectors[1], t.vectors[2], t.vectors[3],
		t.vectors[4]
	count := float64(t.n * t.s)
	t.sum(sum, part, factor, func(to []float32, i int) { vec.Add(to, to, t.of(d, i)) })
	for ch := t.lo; ch < t.hi; ch++ {
		dbias[ch] = float32(t.channel(sum, ch))
		t.fill(center, ch, mean[ch])
	}
	t.sum(sum, part, factor, func(to []float32, i int) {
		vec.Sub(buf, t.of(x, i), center)
		vec.Fma(to, buf, t.of(d, i), to)
	})
	slope, shift := sum, part // read before they are overwritten, channel by channel
	for ch := t.lo; ch < t.hi; ch++ {
		inv := float64(inverse(variance[ch], eps))
		along := t.channel(sum, ch) * inv
		f := float64(scale[ch]) * inv
		dscale[ch] = float32(along)
		t.fill(factor, ch, float32(f))
		t.fill(slope, ch, float32(-f*inv*along/count))
		t.fill(shift, ch, float32(-f*float64(dbias[ch])/count))
	}
	for i := range t.n {
		vec.Sub(buf, t.of(x, i), center)
		vec.Fma(buf, buf, slope, shift)
		vec.Fma(t.of(out, i), t.of(d, i), factor, buf)
	}
}
