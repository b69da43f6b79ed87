package speech

import (
	"math"
	"math/cmplx"
	"testing"

	"pgregory.net/rapid"
)

// slowFeatures are the features by their definition, in the order of the text of
// the package comment.
func slowFeatures(samples []float32) [][]float64 {
	emphasised := make([]float64, len(samples))
	for i := range samples {
		emphasised[i] = float64(samples[i]) - 0.97*float64(samples[max(0, i-1)])
	}
	var frames [][]float64
	for begin := 0; begin+512 <= len(samples); begin += 320 {
		frames = append(frames, slowCepstra(emphasised[begin:begin+512]))
	}
	for c := range Coefficients {
		mean, variance := 0.0, 0.0
		for _, f := range frames {
			mean += f[c] / float64(len(frames))
		}
		for _, f := range frames {
			variance += (f[c] - mean) * (f[c] - mean) / float64(len(frames))
		}
		for _, f := range frames {
			f[c] = (f[c] - mean) / math.Sqrt(variance+1e-6)
		}
	}
	return frames
}

func slowCepstra(x []float64) []float64 {
	power := make([]float64, 257)
	for k := range power {
		var sum complex128
		for n, v := range x {
			w := 0.54 - 0.46*math.Cos(2*math.Pi*float64(n)/511)
			sum += complex(w*v, 0) * cmplx.Exp(complex(0, -2*math.Pi*float64(k*n%512)/512))
		}
		power[k] = real(sum)*real(sum) + imag(sum)*imag(sum)
	}
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	step := (mel(8000) - mel(20)) / 41
	logs := make([]float64, 40)
	for m := range logs {
		sum, middle := 0.0, mel(20)+float64(m+1)*step
		for k, p := range power {
			sum += p * max(0, 1-math.Abs(mel(float64(k)*31.25)-middle)/step)
		}
		logs[m] = math.Log(max(sum, 1e-8))
	}
	cepstra := make([]float64, Coefficients)
	for c := range cepstra {
		for m, e := range logs {
			cepstra[c] += math.Sqrt(2.0/40) * e * math.Cos(math.Pi/40*float64(c)*(float64(m)+0.5))
		}
	}
	return cepstra
}

func TestFeaturesByDefinition(t *testing.T) {
	for _, samples := range [][]float32{
		speak("read files", 1),
		make([]float32, 1000),
		speak("a", 3)[:512],
		nil,
	} {
		have, want := newAnalyser().features(samples), slowFeatures(samples)
		if len(have) != len(want)*Coefficients || len(want) != Frames(len(samples)) {
			t.Fatalf("%d features, want %d frames of %d", len(have), len(want), Coefficients)
		}
		for i, x := range have {
			if w := want[i/Coefficients][i%Coefficients]; math.Abs(float64(x)-w) > 2e-3 {
				t.Errorf("frame %d, coefficient %d: %g, want %g", i/Coefficients, i%Coefficients, x,
					w)
			}
		}
	}
}

// TestLoudness: features are the same at any volume that is well above silence,
// and finite for any samples.
func TestLoudness(t *testing.T) {
	a, samples := newAnalyser(), speak("volume", 1)
	half := make([]float32, len(samples))
	for i, x := range samples {
		half[i] = x / 2
	}
	loud, soft := a.features(samples), a.features(half)
	for i := range loud {
		if math.Abs(float64(loud[i]-soft[i])) > 0.1 {
			t.Fatalf("feature %d is %g, at half the volume %g", i, loud[i], soft[i])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float32Range(-1, 1), 512, 2000).Draw(t, "samples")
		for _, x := range a.features(samples) {
			if math.IsNaN(float64(x)) || math.Abs(float64(x)) > 1e3 {
				t.Fatalf("a feature is %g", x)
			}
		}
	})
}

func TestFrames(t *testing.T) {
	for samples, want := range map[int]int{0: 0, 511: 0, 512: 1, 831: 1, 832: 2, 16000: 49,
		53000: 165} {
		if got := Frames(samples); got != want {
			t.Errorf("%d samples have %d frames, want %d", samples, got, want)
		}
	}
}

// TestFilters: filters follow each other without a gap, and each has weights.
func TestFilters(t *testing.T) {
	sums := make([]float64, bins)
	for k, m := range newAnalyser().mel {
		if len(m.weights) == 0 {
			t.Errorf("filter %d has no weights", k)
		}
		for i, w := range m.weights {
			sums[m.first+i] += w
		}
	}
	for bin, sum := range sums[3:238] {
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("the weights of bin %d add up to %g", 3+bin, sum)
		}
	}
}
