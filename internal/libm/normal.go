package libm

import (
	"math"
	"math/rand/v2"
)

// Normal draws from the standard normal distribution, from the same random numbers
// and, but for one draw in many millions, with the same result as rng.NormFloat64:
// by the ziggurat of Marsaglia and Tsang (2000), the area under the density cut into
// strips of equal area.
func Normal(rng *rand.Rand) float64 {
	for {
		u := rng.Uint64()
		j, i := int32(u), u>>32&(strips-1)
		x := float64(j) * float64(ziggurat.width[i])
		if uint32(max(j, -j)) < ziggurat.inside[i] {
			return x
		}
		if i == 0 {
			return math.Copysign(beyond(rng), float64(j))
		}
		low, high := ziggurat.density[i], ziggurat.density[i-1]
		y := low + float32(float32(rng.Float64())*(high-low))
		if y < float32(Exp(float64(-0.5*x)*x)) {
			return x
		}
	}
}

// beyond draws from the tail of the distribution, where the lowest strip ends.
func beyond(rng *rand.Rand) float64 {
	for {
		x := float64(-Log(rng.Float64()) * (1 / tail))
		y := -Log(rng.Float64())
		if y+y >= float64(x*x) {
			return tail + x
		}
	}
}

const (
	strips = 128
	tail   = 3.442619855899      // where the lowest strip's rectangle ends
	area   = 9.91256303526217e-3 // of a strip
)

// table is, for each strip: where it is under the density for sure, its width as a
// factor, and the density at its end.
type table struct {
	inside         [strips]uint32
	width, density [strips]float32
}

var ziggurat = newTable()

func newTable() *table {
	const words = 1 << 31
	density := func(x float64) float64 { return Exp(float64(-0.5*x) * x) }
	t := &table{}
	end := area / density(tail)
	t.inside[0], t.width[0], t.density[0] = uint32(tail/end*words), float32(end/words), 1
	t.width[strips-1], t.density[strips-1] = float32(tail/words), float32(density(tail))
	x := tail
	for i := strips - 2; i > 0; i-- {
		inner := math.Sqrt(-2 * Log(area/x+density(x)))
		t.inside[i+1] = uint32(inner / x * words)
		t.width[i], t.density[i] = float32(inner/words), float32(density(inner))
		x = inner
	}
	return t
}
