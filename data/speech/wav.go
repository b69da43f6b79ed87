package speech

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	case rate < minRate || rate > maxRate:
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
