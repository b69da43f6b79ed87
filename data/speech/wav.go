package speech

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/gomem/gomem/internal/libm"
)

// format is what a WAV file says about its samples.
type format struct {
	rate    int   // samples a second
	samples int64 // in the file
}

// maxChunk bounds what is read of a chunk that is not samples.
const maxChunk = 1 << 16

// readFormat reads a WAV file (Microsoft and IBM, 1991) up to its first sample.
// Mono samples of 16 bits, little endian, are the only ones it takes. streamed is
// for a writer who did not know the length: then the samples are what is there.
func readFormat(r io.Reader, streamed bool) (f format, err error) {
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:4]) != "RIFF" ||
		string(head[8:]) != "WAVE" {
		return f, errors.New("not a WAV file: convert it to one")
	}
	for {
		id, size, err := readChunk(r)
		switch {
		case err != nil:
			return f, err
		case id == "data" && f.rate == 0:
			return f, errors.New("WAV file without a format before its samples: convert it again")
		case id == "data" && streamed:
			return f, nil
		case id == "data":
			f.samples = int64(size) / 2
			return f, nil
		case size > maxChunk:
			return f, fmt.Errorf("WAV file with %d bytes of %q before its samples: convert it "+
				"again", size, id)
		}
		body := make([]byte, size+size%2) // chunks begin at even places
		if _, err := io.ReadFull(r, body); err != nil {
			return f, errors.New("WAV file that ends before its samples: copy or convert it again")
		}
		if id == "fmt " {
			if f.rate, err = parseFormat(body); err != nil {
				return f, err
			}
		}
	}
}

func readChunk(r io.Reader) (id string, size uint32, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", 0, errors.New("WAV file that ends before its samples: copy or convert it again")
	}
	return string(head[:4]), binary.LittleEndian.Uint32(head[4:]), nil
}

// parseFormat gives the samples a second.
func parseFormat(body []byte) (int, error) {
	if len(body) < 16 {
		return 0, fmt.Errorf("WAV format of %d bytes: convert the file again", len(body))
	}
	word := func(at int) int { return int(binary.LittleEndian.Uint16(body[at:])) }
	code, channels, bits := word(0), word(2), word(14)
	rate := binary.LittleEndian.Uint32(body[4:])
	const pcm = 1
	switch {
	case code != pcm || bits != 16:
		return 0, fmt.Errorf("WAV file of format %d with %d bits: convert it to 16-bit PCM", code,
			bits)
	case channels != 1:
		return 0, fmt.Errorf("WAV file of %d channels: convert it to mono", channels)
	case rate == 0 || rate > math.MaxInt32:
		return 0, fmt.Errorf("WAV file of %d Hz: convert it to %d Hz", rate, Rate)
	}
	return int(rate), nil
}

// readSamples reads n samples, or if n is negative all that are left.
func readSamples(r io.Reader, n int64) ([]float32, error) {
	if n >= 0 {
		r = io.LimitReader(r, 2*n)
	}
	raw, err := io.ReadAll(r)
	if err == nil && int64(len(raw)/2) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	samples := make([]float32, len(raw)/2)
	for i := range samples {
		samples[i] = float32(int16(binary.LittleEndian.Uint16(raw[2*i:]))) / (1 << 15)
	}
	return samples, nil
}

// resample changes samples at a rate to [Rate]: it is a low-pass filter, a sinc
// under a raised cosine, at the places of the new samples. Rates in a ratio of
// small numbers have few of those between two old samples, and a table of the
// filter for each.
func resample(samples []float32, rate int) []float32 {
	if rate == Rate {
		return samples
	}
	const lobes = 16
	cut := min(1, Rate/float64(rate)) // of the band that both rates have
	reach := int(math.Ceil(lobes / cut))
	table := map[int][]float64{} // by the part of a sample, in Rate-ths
	out := make([]float32, int(int64(len(samples))*Rate/int64(rate)))
	for i := range out {
		at := int64(i) * int64(rate)
		whole, part := int(at/Rate), int(at%Rate)
		if table[part] == nil {
			table[part] = sinc(reach, float64(part)/Rate, cut)
		}
		sum := 0.0
		for k, weight := range table[part] {
			if j := whole - reach + k; j >= 0 && j < len(samples) {
				sum += float64(weight * float64(samples[j]))
			}
		}
		out[i] = float32(sum)
	}
	return out
}

// sinc gives the weights of 2·reach+1 samples about a place that is a part of a
// sample after the middle one. They add up to 1.
func sinc(reach int, part, cut float64) []float64 {
	weights := make([]float64, 2*reach+1)
	sum := 0.0
	for k := range weights {
		x := float64(k-reach) - part
		weights[k] = 0.5 + float64(0.5*libm.Cos(math.Pi*max(-1, min(1, x/float64(reach)))))
		if x != 0 {
			weights[k] *= libm.Sin(math.Pi*cut*x) / (math.Pi * cut * x)
		}
		sum += weights[k]
	}
	for k := range weights {
		weights[k] /= sum
	}
	return weights
}
