package workload

import (
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem/internal/libm"
)

// Clicks draws samples of the shape of an advertiser's log, as Criteo's is: each has one feature
// of each of so many fields, with the value 1, and is a click or none. The features of a field are
// as frequent as the words of a language, by Zipf's law: the n-th as 1/n. The first field has one
// feature alone, which is a bias. Of all samples a quarter are clicks, about: the odds are the
// exponential of a linear function, drawn once, whose values have the given standard deviation.
func Clicks(seed uint64, train, test, features, fields int, spread float64) (*Samples, *Samples) {
	c := &clicks{rng: rand.New(rand.NewPCG(seed, 10)), features: features, fields: fields}
	scale := spread / math.Sqrt(float64(fields-1))
	c.weight = normals(c.rng, features)
	for i := range c.weight {
		c.weight[i] *= scale
	}
	// The last term is about what the spread adds to odds.
	c.weight[0] = -libm.Log(3) * (1 + float64(spread*spread/8))
	return c.samples(train), c.samples(test)
}

type clicks struct {
	rng              *rand.Rand
	features, fields int
	weight           []float64
}

func (c *clicks) samples(n int) *Samples {
	s := &Samples{Features: c.features, Classes: 2, start: []int32{0}}
	for range n {
		z := c.weight[0]
		s.index, s.value = append(s.index, 0), append(s.value, 1)
		for f := range c.fields - 1 {
			at := c.draw(f)
			s.index, s.value = append(s.index, at), append(s.value, 1)
			z += c.weight[at]
		}
		label := int32(0)
		if c.rng.Float64()*(1+libm.Exp(-z)) < 1 {
			label = 1
		}
		s.end(label)
	}
	return s
}

// draw is a feature of a field: logarithms of ranks are equally likely.
func (c *clicks) draw(field int) int32 {
	from, to := part(c.features-1, field, c.fields-1)
	rank := libm.Exp(float64(c.rng.Float64() * libm.Log(float64(to-from+1))))
	return int32(1 + from + min(int(rank)-1, to-from-1))
}
