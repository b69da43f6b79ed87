package speech

import (
	"math"

	"github.com/gomem/gomem/internal/libm"
)

// Coefficients is the number of features of a frame.
const Coefficients = 26

// The frames of MFCC.
const (
	window      = Rate * 32 / 1000 // samples of a frame, and of its Fourier transform
	hop         = Rate * 20 / 1000 // samples from frame to frame
	preEmphasis = 0.97             // of the sample before that is taken off
	filters     = 40               // of the mel scale, from lowest to half of Rate
	lowest      = 20.0             // Hz
	bins        = window/2 + 1
)

// quiet is the least energy of a filter: about that of rounding to 16 bits.
const quiet = 1e-8

// Frames is the number of whole frames in so many samples.
func Frames(samples int) int {
	if samples < window {
		return 0
	}
	return 1 + (samples-window)/hop
}

// analyser has the tables of MFCC, and of what comes before it. Any number of goroutines
// may share it.
type analyser struct {
	hamming [window]float64
	mel     [filters]triangle
	cosines [Coefficients][filters]float64
	fourier *fourier

	resamplers // of recordings at other rates
}

// triangle is the weights of a filter for the bins from first on.
type triangle struct {
	first   int
	weights []float64
}

func newAnalyser() *analyser {
	a := &analyser{fourier: newFourier()}
	for i := range a.hamming {
		a.hamming[i] = 0.54 - float64(0.46*libm.Cos(2*math.Pi*float64(i)/(window-1)))
	}
	low, high := melOf(lowest), melOf(Rate/2)
	edge := func(k int) float64 { return low + float64((high-low)*float64(k)/(filters+1)) }
	for k := range a.mel {
		a.mel[k] = newTriangle(edge(k), edge(k+1), edge(k+2))
	}
	for c := range a.cosines {
		for k := range a.cosines[c] {
			angle := math.Pi * float64(c) * (float64(k) + 0.5) / filters
			a.cosines[c][k] = math.Sqrt(2.0/filters) * libm.Cos(angle)
		}
	}
	return a
}

// melOf is the mel scale, which is about linear below 1000 Hz and logarithmic
// above (O'Shaughnessy 1987).
func melOf(hertz float64) float64 { return float64(1127 * libm.Log1p(hertz/700)) }

// newTriangle rises from 0 at left to 1 at top, and falls to 0 at right, in mel.
func newTriangle(left, top, right float64) (t triangle) {
	for bin := range bins {
		m := melOf(float64(bin) * Rate / window)
		if weight := min((m-left)/(top-left), (right-m)/(right-top)); weight > 0 {
			if t.weights == nil {
				t.first = bin
			}
			t.weights = append(t.weights, weight)
		}
	}
	return t
}

// features writes the cepstra of each frame of samples, Coefficients numbers a
// frame, and normalises them.
func (a *analyser) features(samples []float32) []float32 {
	frames := Frames(len(samples))
	out := make([]float32, frames*Coefficients)
	var buf [window]float64
	var spectrum [bins]complex128
	for f := range frames {
		for i := range buf {
			at := f*hop + i
			before := samples[max(0, at-1)]
			buf[i] = a.hamming[i] * (float64(samples[at]) - float64(preEmphasis*float64(before)))
		}
		a.fourier.transform(&spectrum, &buf)
		a.cepstra(out[f*Coefficients:][:Coefficients], &spectrum)
	}
	standardise(out)
	return out
}

// cepstra is the cosine transform of the logarithms of the energies in the mel
// filters: what is slow along them is the shape of the throat, what is fast the
// pitch.
func (a *analyser) cepstra(out []float32, spectrum *[bins]complex128) {
	var energies [filters]float64
	for k, t := range a.mel {
		sum := 0.0
		for i, weight := range t.weights {
			c := spectrum[t.first+i]
			sum += float64(weight * (float64(real(c)*real(c)) + float64(imag(c)*imag(c))))
		}
		energies[k] = libm.Log(max(sum, quiet))
	}
	for c := range out {
		sum := 0.0
		for k, e := range energies {
			sum += float64(a.cosines[c][k] * e)
		}
		out[c] = float32(sum)
	}
}

// standardise gives each coefficient mean 0 and deviation 1 over the frames. One
// that does not vary becomes 0.
func standardise(frames []float32) {
	n := float64(len(frames) / Coefficients)
	for c := range Coefficients {
		sum, squares := 0.0, 0.0
		for i := c; i < len(frames); i += Coefficients {
			sum += float64(frames[i])
		}
		for i := c; i < len(frames); i += Coefficients {
			d := float64(frames[i]) - sum/n
			squares += float64(d * d)
		}
		scale := 1 / math.Sqrt(squares/n+1e-6)
		for i := c; i < len(frames); i += Coefficients {
			frames[i] = float32((float64(frames[i]) - sum/n) * scale)
		}
	}
}
