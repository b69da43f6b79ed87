package speech

import (
	"math"
	"sync"

	"github.com/gomem/gomem/internal/libm"
)

// resampler changes samples at one rate to [Rate] by a polyphase filter: up samples come
// of every down ones, and each of the up places between two old samples has weights of its
// own. They are those of an ideal low-pass, a sinc, under a Kaiser window (Kaiser and
// Schafer, On the use of the I0-sinh window for spectrum analysis, 1980). What lies below
// 0.82 of half the lower rate passes as it is, what lies above half of it is damped by
// 70 dB. The weights of a place add up to 1, so that silence stays as quiet as it is.
type resampler struct {
	up, down int
	reach    int         // samples on either side of a place
	phases   [][]float64 // by place, the weights of 2·reach+1 samples
}

// The filter: zeros of the sinc on either side, the band that passes, and the window's
// shape, 0.1102·(70−8.7) for 70 dB.
const (
	zeros   = 24
	passing = 0.91
	beta    = 6.76
)

// The rates that are resampled, in Hz: from what is no speech any longer to that of
// studios, and a filter of no more than a few megabytes.
const minRate, maxRate = 2000, 400_000

func newResampler(rate int) *resampler {
	common := gcd(rate, Rate)
	r := &resampler{up: Rate / common, down: rate / common}
	cut := passing * min(1, float64(Rate)/float64(rate)) // of half the old rate
	r.reach = int(math.Ceil(zeros / cut))
	r.phases = make([][]float64, r.up)
	for p := range r.phases {
		r.phases[p] = weights(r.reach, float64(p)/float64(r.up), cut)
	}
	return r
}

// run gives the samples at the new rate.
func (r *resampler) run(samples []float32) []float32 {
	out := make([]float32, resampled(int64(len(samples)), r.up, r.down))
	for i := range out {
		at := int64(i) * int64(r.down)
		phase := r.phases[at%int64(r.up)]
		first := int(at/int64(r.up)) - r.reach
		from, to := max(0, -first), min(len(phase), len(samples)-first)
		sum := 0.0
		for k := from; k < to; k++ {
			sum += float64(phase[k] * float64(samples[first+k]))
		}
		out[i] = float32(sum)
	}
	return out
}

// resampled is how many samples become of n.
func resampled(n int64, up, down int) int64 {
	whole, rest := n/int64(down), n%int64(down) // n·up may be too large a number
	return whole*int64(up) + rest*int64(up)/int64(down)
}

// weights are those of 2·reach+1 samples about a place that is a part of a sample after
// the middle one.
func weights(reach int, part, cut float64) []float64 {
	w := make([]float64, 2*reach+1)
	sum := 0.0
	for k := range w {
		x := float64(k-reach) - part
		w[k] = kaiser(x / float64(reach+1))
		if x != 0 {
			w[k] *= libm.Sin(math.Pi*cut*x) / (math.Pi * cut * x)
		}
		sum += w[k]
	}
	for k := range w {
		w[k] /= sum
	}
	return w
}

// kaiser is the window from −1 to 1, up to a factor.
func kaiser(x float64) float64 {
	return bessel(beta * math.Sqrt(max(0, 1-float64(x*x))))
}

// bessel is the modified Bessel function of order 0, by its series.
func bessel(x float64) float64 {
	quarter, term, sum := float64(x*x)/4, 1.0, 1.0
	for k := 1.0; term > 1e-17*sum; k++ {
		term = float64(term * (quarter / float64(k*k)))
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// resamplers keep the filter of each rate that has come up.
type resamplers struct {
	mu  sync.Mutex
	all map[int]*resampler
}

// run changes samples at a rate to Rate; those that have it already are not copied.
func (r *resamplers) run(samples []float32, rate int) []float32 {
	if rate == Rate {
		return samples
	}
	return r.of(rate).run(samples)
}

func (r *resamplers) of(rate int) *resampler {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[rate] == nil {
		if r.all == nil {
			r.all = map[int]*resampler{}
		}
		r.all[rate] = newResampler(rate)
	}
	return r.all[rate]
}
