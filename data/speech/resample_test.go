package speech

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// plainly resamples by the definition: the sum over all samples of the windowed sinc at
// their distance, over that of the weights of samples that are there or would be.
func plainly(samples []float32, rate int) []float32 {
	cut := passing * math.Min(1, float64(Rate)/float64(rate))
	reach := math.Ceil(zeros / cut)
	weight := func(x float64) float64 {
		if math.Abs(x) > reach+1 {
			return 0
		}
		w := besselBySum(beta * math.Sqrt(1-x*x/(reach+1)/(reach+1)))
		if x != 0 {
			w *= math.Sin(math.Pi*cut*x) / (math.Pi * cut * x)
		}
		return w
	}
	out := make([]float32, len(samples)*Rate/rate)
	for i := range out {
		at := float64(i) * float64(rate) / Rate
		sum, all := 0.0, 0.0
		for j := math.Floor(at) - reach; j <= math.Floor(at)+reach; j++ {
			all += weight(j - at)
			if j >= 0 && int(j) < len(samples) {
				sum += weight(j-at) * float64(samples[int(j)])
			}
		}
		out[i] = float32(sum / all)
	}
	return out
}

// besselBySum is I0 by its integral, (1/π)·∫ exp(x·cos t) dt over half a turn.
func besselBySum(x float64) float64 {
	const parts = 40
	sum := 0.0
	for i := range parts {
		sum += math.Exp(x * math.Cos(math.Pi*(float64(i)+0.5)/parts))
	}
	return sum / parts
}

// TestResampleIsItsDefinition: the polyphase filter computes the plain sum.
func TestResampleIsItsDefinition(t *testing.T) {
	rates := rapid.OneOf(rapid.SampledFrom([]int{8000, 11025, 22050, 24000, 44100, 48000}),
		rapid.Custom(func(t *rapid.T) int { // a few places between two samples, for speed
			return 125 * rapid.IntRange(minRate/125, 400).Draw(t, "part")
		}))
	rapid.Check(t, func(t *rapid.T) {
		rate := rates.Draw(t, "rate")
		rng := rand.New(rand.NewPCG(1, uint64(rate)))
		x := make([]float32, rapid.IntRange(0, 80).Draw(t, "samples"))
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		got, want := new(resamplers).run(x, rate), x
		if rate != Rate {
			want = plainly(x, rate)
		}
		if len(got) != len(want) {
			t.Fatalf("from %d Hz: %d samples, want %d", rate, len(got), len(want))
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Fatalf("from %d Hz: sample %d is %g, want %g", rate, i, got[i], want[i])
			}
		}
	})
}

// TestResampleTones: what both rates can carry stays as it is, what the lower one cannot
// is gone, and silence and offsets stay.
func TestResampleTones(t *testing.T) {
	tone := func(rate int, hertz float64) []float32 {
		x := make([]float32, rate/5)
		for i := range x {
			x[i] = float32(math.Cos(2 * math.Pi * hertz * float64(i) / float64(rate)))
		}
		return x
	}
	for _, rate := range []int{8000, 11025, 16001, 22050, 44100, 48000, 96000} {
		half := float64(min(rate, Rate)) / 2
		for share, hertz := range map[float64]float64{0: 0, 0.5: 0.5 * half, 0.8: 0.8 * half} {
			got, want := new(resamplers).run(tone(rate, hertz), rate), tone(Rate, hertz)
			for i := 200; i < len(got)-200; i++ {
				if math.Abs(float64(got[i]-want[i])) > 1e-3 {
					t.Fatalf("from %d Hz, %v of the band: sample %d is %g, want %g", rate, share, i,
						got[i], want[i])
				}
			}
		}
		if rate <= Rate+1000 {
			continue
		}
		got := new(resamplers).run(tone(rate, Rate/2+300), rate)
		for i, x := range got[200 : len(got)-200] {
			if math.Abs(float64(x)) > 1e-3 {
				t.Fatalf("from %d Hz: a tone above the band leaves %g at %d", rate, x, i+200)
			}
		}
	}
	if same := tone(Rate, 1000); &new(resamplers).run(same, Rate)[0] != &same[0] {
		t.Error("samples at the right rate are copied")
	}
}

// TestResampledSet: a list may have recordings at several rates; one at another rate has
// the features of the same sound, or nearly.
func TestResampledSet(t *testing.T) {
	dir := t.TempDir()
	list := "wav_filename,wav_filesize,transcript\n"
	for name, rate := range map[string]int{"a": 16000, "b": 44100, "c": 11025} {
		x := make([]float32, rate)
		for i := range x {
			x[i] = float32(0.3 * math.Sin(2*math.Pi*440*float64(i)/float64(rate)))
		}
		if err := os.WriteFile(filepath.Join(dir, name+".wav"), wav(rate, x), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		list += name + ".wav,1,yes " + name + "\n"
	}
	path := filepath.Join(dir, "list.csv")
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), "csv:"+path, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := append(s.Train, s.HeldOut...)
	first, err := s.features(all[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		x, err := s.features(u)
		if err != nil || u.Frames != Frames(16000) || len(x) != len(first) {
			t.Fatalf("%+v: %d features, %v", u, len(x), err)
		}
		for i := 3 * Coefficients; i < 40*Coefficients; i++ {
			if i%Coefficients == 0 && math.Abs(float64(x[i]-first[i])) > 0.05 {
				t.Fatalf("%s: energy %g of frame %d, want %g", u.Path, x[i], i/Coefficients,
					first[i])
			}
		}
	}
}
