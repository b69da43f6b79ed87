package speech

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem/internal/libm"
)

// Rate is the number of samples a second.
const Rate = 16000

const (
	controlStep = Rate / 200 // samples between changes of the filters: 5 ms
	glide       = 0.35       // part of the way to a phone's formants that a change goes
	attack      = 0.6        // the same of amplitudes
	hiss        = 1e-3       // of a quiet room, where the loudest sample is 1
)

// voice is a speaker: a sentence is spoken by one of its own.
type voice struct {
	*rand.Rand
	speed float64 // of 1 is about 12 characters a second
	pitch float64 // Hz, at the beginning of a sentence
	tract float64 // factor of formants: a short throat has higher ones
}

// hashed spreads texts over 64 bits.
func hashed(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// voiceOf is drawn from the text and a seed.
func voiceOf(text string, seed uint64) voice {
	rng := rand.New(rand.NewPCG(seed, hashed(text)))
	size := rng.Float64() // of the speaker, from large
	speed := 1.1 + float64(0.4*rng.Float64())
	return voice{rng, speed, 90 + float64(130*size), 0.92 + float64(0.2*size)}
}

// note is a phone for a number of samples.
type note struct {
	phone
	samples int
}

// score lists what a voice says, with silence around it, and the samples in all.
func (v voice) score(text string) (notes []note, samples int) {
	for _, symbol := range []byte(" " + pronounce(text) + " ") {
		p, ok := phones[symbol]
		if !ok {
			p = phone{milliseconds: 60}
		}
		length := p.milliseconds / v.speed * (0.85 + float64(0.3*v.Float64()))
		n := int(length * Rate / 1000)
		notes = append(notes, note{p, n})
		samples += n
	}
	return notes, samples
}

// resonator is the two-pole filter of Klatt (1980).
type resonator struct{ a, b, c, y1, y2 float64 }

// tune sets the frequency and the bandwidth, in Hz; it keeps the state.
func (r *resonator) tune(frequency, band float64) {
	radius := libm.Exp(-math.Pi * band / Rate)
	r.c = float64(-radius * radius)
	r.b = float64(2 * radius * libm.Cos(2*math.Pi*frequency/Rate))
	r.a = 1 - r.b - r.c
}

// gain is what white noise is amplified by.
func (r *resonator) gain() float64 {
	band := float64((1-r.c)*(1-r.c)) - float64(r.b*r.b)
	return r.a * math.Sqrt((1-r.c)/((1+r.c)*band))
}

func (r *resonator) filter(x float64) float64 {
	y := float64(r.a*x) + float64(r.b*r.y1) + float64(r.c*r.y2)
	r.y1, r.y2 = y, r.y1
	return y
}

// synthesiser is the state of a sentence that is being spoken.
type synthesiser struct {
	voice
	now     phone // between phones
	glottis resonator
	throat  [3]resonator
	narrow  resonator // where noise is made
	phase   float64   // of the glottis, from 0 to 1
}

// speak gives the samples of a text, between -1 and 1.
func speak(text string, seed uint64) []float32 {
	s := synthesiser{voice: voiceOf(text, seed)}
	notes, samples := s.score(text)
	s.now.formants = [3]float64{500, 1500, 2500}
	s.now.centre, s.now.band = 3000, 2000
	s.glottis.tune(0, 100)
	out := make([]float64, 0, samples)
	for _, n := range notes {
		for begin := 0; begin < n.samples; begin += controlStep {
			s.approach(n.phone)
			pitch := s.pitch * (1 - 0.3*float64(len(out))/float64(samples)) // falls to the end
			for range min(controlStep, n.samples-begin) {
				out = append(out, s.sample(pitch/Rate))
			}
		}
	}
	return s.level(out)
}

// approach moves the filters and amplitudes towards those of a phone: it is the
// glide between phones that ears go by.
func (s *synthesiser) approach(p phone) {
	for i, f := range p.formants {
		if f > 0 {
			s.now.formants[i] += float64(glide * (float64(f*s.tract) - s.now.formants[i]))
		}
		s.throat[i].tune(s.now.formants[i], 60+float64(40*float64(i)))
	}
	if p.noise > 0 {
		s.now.centre, s.now.band = p.centre, p.band
	}
	s.narrow.tune(s.now.centre, s.now.band)
	s.narrow.a /= s.narrow.gain() // as loud in any band
	s.now.voice += float64(attack * (p.voice - s.now.voice))
	s.now.noise += float64(attack * (p.noise - s.now.noise))
}

// sample is the next one, where the phase of the glottis goes on by a step.
func (s *synthesiser) sample(step float64) float64 {
	pulse := 0.0
	if s.phase += step; s.phase >= 1 {
		s.phase--
		pulse = 1 / step // of the same power at any pitch, once filtered
	}
	x := s.glottis.filter(s.now.voice * pulse)
	for i := range s.throat {
		x = s.throat[i].filter(x)
	}
	return x + s.narrow.filter(s.now.noise*libm.Normal(s.Rand))
}

// level makes the loudest sample 1 but for the hiss that it adds.
func (s *synthesiser) level(samples []float64) []float32 {
	loudest := 1e-9
	for _, x := range samples {
		loudest = max(loudest, math.Abs(x))
	}
	out := make([]float32, len(samples))
	for i, x := range samples {
		out[i] = float32(max(-1, min(1, x/loudest+float64(hiss*libm.Normal(s.Rand)))))
	}
	return out
}
