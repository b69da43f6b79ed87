package speech

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// format is what a WAV file says about its samples.
type format struct {
	rate       int // samples a second
	code, bits int // how a sample is kept
	riff, data int64
	at         int64 // bytes before the first sample
}

// How samples are kept.
const (
	pcm        = 1
	float      = 3
	extensible = 0xfffe // a longer format says how
)

// maxChunk bounds what is read of a chunk that is not samples.
const maxChunk = 1 << 16

var errCutWAV = errors.New("WAV file that ends before its samples: copy or convert it again")

// readFormat reads a WAV file (Microsoft and IBM, 1991) up to its first sample.
func readFormat(r io.Reader) (f format, err error) {
	in := &counted{in: r}
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil || string(head[8:]) != "WAVE" {
		return f, errNoWAV
	}
	f.riff = int64(binary.LittleEndian.Uint32(head[4:]))
	switch kind := string(head[:4]); kind {
	case "RIFF":
	case "RIFX", "RF64":
		return f, fmt.Errorf("WAV file of the form %s: convert it to RIFF", kind)
	default:
		return f, errNoWAV
	}
	for {
		id, size, err := readChunk(in)
		switch {
		case err != nil:
			return f, err
		case id == "data" && f.rate == 0:
			return f, errors.New("WAV file without a format before its samples: convert it again")
		case id == "data":
			f.data, f.at = int64(size), in.n
			return f, nil
		case size > maxChunk:
			return f, fmt.Errorf("WAV file with %d bytes of %q before its samples: convert it "+
				"again", size, id)
		}
		body := make([]byte, size+size%2) // chunks begin at even places
		if _, err := io.ReadFull(in, body); err != nil {
			return f, errCutWAV
		}
		if id == "fmt " {
			if err := f.parse(body[:size]); err != nil {
				return f, err
			}
		}
	}
}

var errNoWAV = errors.New("not a WAV file: convert it to one")

// counted counts what is read.
type counted struct {
	in io.Reader
	n  int64
}

// Read reads.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.n += int64(n)
	return n, err
}

func readChunk(r io.Reader) (id string, size uint32, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", 0, errCutWAV
	}
	return string(head[:4]), binary.LittleEndian.Uint32(head[4:]), nil
}

// parse reads a chunk that says how samples are kept.
func (f *format) parse(body []byte) error {
	if len(body) < 16 {
		return fmt.Errorf("WAV format of %d bytes: convert the file again", len(body))
	}
	word := func(at int) int { return int(binary.LittleEndian.Uint16(body[at:])) }
	channels, block := word(2), word(12)
	rate := binary.LittleEndian.Uint32(body[4:])
	f.code, f.bits = word(0), word(14)
	if f.code == extensible {
		if len(body) < 40 || !bytes.Equal(body[26:40], waveFormats) {
			return errors.New("WAV file of an unknown extensible format: convert it to 16-bit PCM")
		}
		f.code = word(24)
	}
	switch {
	case f.decoder() == nil:
		return fmt.Errorf("WAV file of %s with %d bits: convert it to 16-bit PCM",
			codeName(f.code), f.bits)
	case channels != 1:
		return fmt.Errorf("WAV file of %d channels: convert it to mono", channels)
	case block != f.bits/8:
		return fmt.Errorf("WAV file with samples of %d bits in blocks of %d bytes: convert it "+
			"to 16-bit PCM", f.bits, block)
	case rate < minRate || rate > maxRate:
		return fmt.Errorf("WAV file of %d Hz: convert it to %d Hz", rate, Rate)
	}
	f.rate = int(rate)
	return nil
}

// waveFormats is how the identifier of an extensible format ends whose beginning is a code.
var waveFormats = []byte("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71")

// codeName is what a code is called (RFC 2361).
func codeName(code int) string {
	names := map[int]string{pcm: "PCM", 2: "Microsoft ADPCM", float: "floats", 6: "A-law",
		7: "µ-law", 0x11: "IMA ADPCM", 0x31: "GSM 6.10", 0x50: "MPEG", 0x55: "MP3"}
	if name, ok := names[code]; ok {
		return name
	}
	return fmt.Sprintf("format %d", code)
}

// decoder gives a sample, from −1 to 1, of its little endian bytes; nil where there is none
// for the format.
func (f *format) decoder() func(b []byte) float32 {
	const whole, ieee = pcm << 8, float << 8
	order := binary.LittleEndian
	switch f.code<<8 | f.bits {
	case whole | 8: // alone of these it has no sign
		return func(b []byte) float32 { return float32(int(b[0])-1<<7) / (1 << 7) }
	case whole | 16:
		return func(b []byte) float32 { return float32(int16(order.Uint16(b))) / (1 << 15) }
	case whole | 24:
		return func(b []byte) float32 {
			high := uint32(b[0])<<8 | uint32(b[1])<<16 | uint32(b[2])<<24
			return float32(int32(high)>>8) / (1 << 23)
		}
	case whole | 32:
		return func(b []byte) float32 { return float32(int32(order.Uint32(b))) / (1 << 31) }
	case ieee | 32:
		return func(b []byte) float32 { return math.Float32frombits(order.Uint32(b)) }
	case ieee | 64:
		return func(b []byte) float32 { return float32(math.Float64frombits(order.Uint64(b))) }
	}
	return nil
}

// unknown is the least length that a header says for want of a better one. Who writes to a
// pipe cannot come back to say the right one: most say 2³¹ − 4096, 2³¹ − 1 or 2³² − 1.
const unknown = 1<<31 - 1<<12

// samples is how many samples there are, where so many bytes are behind the header. A
// length of 0 is another that is written for want of a better one, unless the length of the
// whole file is right.
func (f *format) samples(there int64) (int64, error) {
	size, block := f.data, int64(f.bits/8)
	switch {
	case size == 0 && f.riff+8 != f.at+there:
		size = there
	case size >= unknown:
		size = min(size, there)
	case size > there:
		return 0, fmt.Errorf("WAV file with %d of its %d samples: copy it again", there/block,
			size/block)
	}
	return size / block, nil
}

// readSamples reads a recording, and gives its samples with their rate.
func readSamples(r io.Reader) ([]float32, int, error) {
	f, err := readFormat(r)
	if err != nil {
		return nil, 0, err
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, 0, err
	}
	n, err := f.samples(int64(len(raw)))
	if err != nil {
		return nil, 0, err
	}
	samples, decode, block := make([]float32, n), f.decoder(), f.bits/8
	for i := range samples {
		samples[i] = decode(raw[i*block:])
		if x := float64(samples[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, 0, fmt.Errorf("WAV file whose sample %d is %v: convert it again", i, x)
		}
	}
	return samples, f.rate, nil
}
