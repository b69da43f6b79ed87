package speech

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPronounce(t *testing.T) {
	for text, want := range map[string]string{
		"a cat":            "V .ka.t",
		"the index of":     "DV In,dE.ks Vv",
		"nation":           "naSVn",
		"name":             "nam",
		"once page":        "Ans .pa,dZ",
		"copy":             ".kA.pi",
		"don't":            ",dAn.t",
		"there":            "DVr",
		"e ee '":           "E i",
		"queue check this": ".kwEVE .tSE.k DIs",
	} {
		if got := pronounce(text); got != want {
			t.Errorf("%q is pronounced %q, want %q", text, got, want)
		}
	}
}

// TestRules: each letter has a rule of its own, longer ones come first, and all
// sounds are known.
func TestRules(t *testing.T) {
	for letter := byte('a'); letter <= 'z'; letter++ {
		list := rules[letter]
		if len(list) == 0 || list[len(list)-1].letters != string(letter) {
			t.Errorf("%q has the rules %v", letter, list)
		}
		for i, r := range list {
			if r.letters[0] != letter || i > 0 && len(r.letters) > len(list[i-1].letters) {
				t.Errorf("rule %d of %q is for %q", i, letter, r.letters)
			}
			for _, p := range []byte(r.phones) {
				if _, ok := phones[p]; !ok {
					t.Errorf("%q sounds as %q, which is no phone", r.letters, p)
				}
			}
		}
	}
}

// TestSpeak: a sentence sounds the same each time, differently with another seed,
// and lasts as long as it was said to.
func TestSpeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, seed := sentences().Draw(t, "text"), rapid.Uint64().Draw(t, "seed")
		x := speak(text, seed)
		if !slices.Equal(x, speak(text, seed)) || slices.Equal(x, speak(text, seed+1)) {
			t.Fatal("speech does not depend on text and seed alone")
		}
		if _, samples := voiceOf(text, seed).score(text); len(x) != samples {
			t.Fatalf("%d samples, want %d", len(x), samples)
		}
		loudest := float32(0)
		for _, v := range x {
			loudest = max(loudest, max(v, -v)) // NaN stays
		}
		if spoken := pronounce(text) != ""; !(loudest <= 1) || spoken && loudest < 0.9 {
			t.Fatalf("the loudest sample is %g", loudest)
		}
	})
	long := speak(strings.Repeat("read the files ", 10), 1)
	if seconds := float64(len(long)) / Rate; seconds < 6 || seconds > 14 {
		t.Errorf("150 letters take %.1f seconds", seconds)
	}
}

// band is the power of samples at a frequency.
func band(samples []float32, hertz float64) float64 {
	re, im := 0.0, 0.0
	for i, x := range samples {
		sin, cos := math.Sincos(2 * math.Pi * hertz * float64(i) / Rate)
		hann := 1 - math.Cos(2*math.Pi*float64(i)/float64(len(samples)))
		re, im = re+hann*cos*float64(x), im+hann*sin*float64(x)
	}
	return re*re + im*im
}

// bands adds the power up from one frequency to another.
func bands(samples []float32, from, to float64) (sum float64) {
	for f := from; f < to; f += 20 {
		sum += band(samples, f)
	}
	return sum
}

// TestPhones: vowels have their power where their formants are, hissing sounds
// theirs where the noise is.
func TestPhones(t *testing.T) {
	hum := func(symbol byte) []float32 {
		s := synthesiser{voice: voiceOf("hum", 1)}
		s.tract, s.now.centre, s.now.band = 1, 3000, 2000
		s.now.formants = [3]float64{500, 1500, 2500}
		s.glottis.tune(0, 100)
		out := make([]float64, 6400)
		for i := range out {
			if i%controlStep == 0 {
				s.approach(phones[symbol])
			}
			out[i] = s.sample(100.0 / Rate)
		}
		return s.level(out[3200:])
	}
	i, u, s, sh := hum('i'), hum('u'), hum('s'), hum('S')
	if high, low := bands(i, 2000, 3200), bands(u, 2000, 3200); high < 4*low {
		t.Errorf("above 2 kHz beat has the power %g, boot %g", high, low)
	}
	if low, high := bands(s, 2300, 3300), bands(s, 5500, 6500); high < 5*low {
		t.Errorf("s has the power %g about 2.8 kHz, %g about 6", low, high)
	}
	if low, high := bands(sh, 2300, 3300), bands(sh, 5500, 6500); low < 5*high {
		t.Errorf("sh has the power %g about 2.8 kHz, %g about 6", low, high)
	}
}

// TestResonator: noise is as loud as its gain says.
func TestResonator(t *testing.T) {
	rng := voiceOf("noise", 1)
	for _, tuning := range [][2]float64{{700, 800}, {3000, 500}, {6000, 1500}} {
		var r resonator
		r.tune(tuning[0], tuning[1])
		want, power := r.gain(), 0.0
		const n = 40000
		for range n {
			y := r.filter(rng.NormFloat64())
			power += y * y / n
		}
		if got := math.Sqrt(power); math.Abs(got-want) > 0.1*want {
			t.Errorf("noise at %g Hz is amplified by %g, want %g", tuning[0], got, want)
		}
	}
}
