package speech

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// header is what a WAV file begins with.
type header struct {
	code, channels, bits uint16
	rate, data           uint32 // data: bytes of samples
}

func (h header) bytes() []byte {
	b := []byte("RIFF????WAVEfmt \x10\x00\x00\x00")
	b = binary.LittleEndian.AppendUint16(b, h.code)
	b = binary.LittleEndian.AppendUint16(b, h.channels)
	b = binary.LittleEndian.AppendUint32(b, h.rate)
	b = binary.LittleEndian.AppendUint32(b, h.rate*uint32(h.channels)*uint32(h.bits)/8)
	b = binary.LittleEndian.AppendUint16(b, h.channels*h.bits/8)
	b = binary.LittleEndian.AppendUint16(b, h.bits)
	b = append(b, "data"...)
	return binary.LittleEndian.AppendUint32(b, h.data)
}

// wav is a WAV file of samples.
func wav(rate int, samples []float32) []byte {
	b := header{1, 1, 16, uint32(rate), uint32(2 * len(samples))}.bytes()
	for _, x := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(math.Round(float64(x)*(1<<15-1)))))
	}
	return b
}

// write writes a file below dir and gives its path.
func write(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWAV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Float32Range(-1, 1), 0, 50).Draw(t, "samples")
		file := wav(Rate, want)
		if rapid.Bool().Draw(t, "list") { // a chunk of odd length before the samples
			file = []byte(strings.Replace(string(file), "data", "LIST\x03\x00\x00\x00abc\x00data",
				1))
		}
		if rapid.Bool().Draw(t, "tail") {
			file = append(file, "LIST????"...)
		}
		binary.LittleEndian.PutUint32(file[4:], uint32(len(file)-8))
		got, rate, err := readSamples(bytes.NewReader(file))
		if err != nil || rate != Rate || len(got) != len(want) {
			t.Fatalf("%d samples at %d Hz, %v", len(got), rate, err)
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-4 {
				t.Fatalf("sample %d is %g, want %g", i, got[i], want[i])
			}
		}
	})
}

// lengths is a WAV file with lengths of the whole and of the samples that a header says.
func lengths(content []byte, riff, samples uint32) []byte {
	content = slices.Clone(content)
	binary.LittleEndian.PutUint32(content[4:], riff)
	binary.LittleEndian.PutUint32(content[40:], samples)
	return content
}

// TestWAVOfPipes: who writes to a pipe does not know the length and says what comes to mind:
// then the samples are what is there. A length that is right is honoured, and one that a
// file was to have and has not is told.
func TestWAVOfPipes(t *testing.T) {
	plain := wav(22050, []float32{0.5, -0.5, 0.25})
	tail := []byte("LIST\x02\x00\x00\x00ab")
	whole := uint32(len(plain) - 8)
	for _, c := range []struct {
		writer  string
		content []byte
		samples int
	}{
		{"a file", lengths(plain, whole, 6), 3},
		{"a file and more", append(lengths(plain, whole+10, 6), tail...), 3},
		{"nothing, and more", append(lengths(plain[:44], 36+10, 0), tail...), 0},
		{"GStreamer", lengths(plain, 36, 0), 3},
		{"zeros", lengths(plain, 0, 0), 3},
		{"SoX, eSpeak", lengths(plain, 0x7ffff024, 0x7ffff000), 3},
		{"arecord", lengths(plain, 0x7fffffff, 0x7fffffff), 3},
		{"FFmpeg", lengths(plain, 0xffffffff, 0xffffffff), 3},
		{"others", lengths(plain, 0xffffffff, 0xffffffdb), 3},
		{"half a sample", append(lengths(plain, 0xffffffff, 0xffffffff), 1), 3},
	} {
		got, rate, err := readSamples(bytes.NewReader(c.content))
		if err != nil || rate != 22050 || len(got) != c.samples ||
			c.samples > 0 && !slices.Equal(got, []float32{0.5, -0.5, 0.25}) {
			t.Errorf("%s: %v at %d Hz, %v; want %d", c.writer, got, rate, err, c.samples)
		}
	}
	cut := lengths(plain, whole+6, 12)
	if _, _, err := readSamples(bytes.NewReader(cut)); err == nil ||
		!strings.Contains(err.Error(), "WAV file with 3 of its 6 samples: copy it again") {
		t.Errorf("a file that is cut: %v", err)
	}
	dir := t.TempDir()
	write(t, dir, "pipe.wav", lengths(wav(Rate, tone(Rate)), 0xffffffff, 0xffffffff))
	write(t, dir, "file.wav", wav(Rate, tone(Rate)))
	s := open(t, "csv:"+write(t, dir, "list.csv", []byte(
		"wav_filename,wav_filesize,transcript\npipe.wav,0,yes\nfile.wav,1,no\n")), Options{})
	all := slices.Concat(s.Train, s.HeldOut)
	if len(all) != 2 || all[0].Frames != all[1].Frames || all[0].Frames != Frames(Rate) {
		t.Errorf("a list has %+v", all)
	}
}

// TestWAVForms: a sample is what it is however it is kept, and what is not read is refused by
// name.
func TestWAVForms(t *testing.T) {
	long := func(h header, tail string) []byte { // as what has more channels or bits needs it
		code := h.code
		h.code = extensible
		b := h.bytes()
		b[16] = 40
		more := append([]byte{22, 0, byte(h.bits), 0, 4, 0, 0, 0, byte(code), 0}, tail...)
		return slices.Insert(b, 36, more...)
	}
	half, double := math.Float32bits(-0.5), math.Float64bits(-0.5)
	words := func(x ...byte) []byte { return x }
	known := string(waveFormats)
	for _, c := range []struct {
		head    []byte
		samples []byte // −0.5
		want    string
	}{
		{header{1, 1, 8, Rate, 1}.bytes(), words(0x40), ""},
		{header{1, 1, 16, Rate, 2}.bytes(), words(0, 0xc0), ""},
		{header{1, 1, 24, Rate, 3}.bytes(), words(0, 0, 0xc0), ""},
		{header{1, 1, 32, Rate, 4}.bytes(), words(0, 0, 0, 0xc0), ""},
		{header{3, 1, 32, Rate, 4}.bytes(), binary.LittleEndian.AppendUint32(nil, half), ""},
		{header{3, 1, 64, Rate, 8}.bytes(), binary.LittleEndian.AppendUint64(nil, double), ""},
		{long(header{1, 1, 16, Rate, 2}, known), words(0, 0xc0), ""},
		{long(header{1, 1, 24, Rate, 3}, known), words(0, 0, 0xc0), ""},
		{long(header{3, 1, 32, Rate, 4}, known), binary.LittleEndian.AppendUint32(nil, half), ""},
		{long(header{6, 1, 8, Rate, 1}, known), words(0), "A-law with 8 bits: convert it"},
		{long(header{1, 1, 16, Rate, 2}, strings.Repeat("x", 14)), words(0, 0xc0),
			"unknown extensible format"},
		{header{extensible, 1, 16, Rate, 2}.bytes(), words(0, 0), "unknown extensible format"},
		{header{3, 1, 32, Rate, 4}.bytes(), words(0, 0, 0xc0, 0x7f), "sample 0 is NaN"},
		{header{3, 1, 32, Rate, 4}.bytes(), words(0, 0, 0x80, 0x7f), "sample 0 is +Inf"},
	} {
		got, _, err := readSamples(bytes.NewReader(append(c.head, c.samples...)))
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("% x: %v, want %q", c.head[20:], err, c.want)
		case c.want == "" && (err != nil || !slices.Equal(got, []float32{-0.5})):
			t.Errorf("% x: %v, %v", c.head[20:], got, err)
		}
	}
}

func TestWAVRefuses(t *testing.T) {
	good := string(wav(Rate, make([]float32, 4)))
	for _, test := range []struct{ name, file, want string }{
		{"empty", "", "not a WAV file"},
		{"mp3", "ID3\x04\x00aaaaaaaaaaaaaaaaa", "not a WAV file"},
		{"big endian", strings.Replace(good, "RIFF", "RIFX", 1), "of the form RIFX: convert it"},
		{"long", strings.Replace(good, "RIFF", "RF64", 1), "of the form RF64: convert it to RIFF"},
		{"cut in the header", good[:30], "ends before its samples"},
		{"cut before the samples", good[:36], "ends before its samples"},
		{"cut in the chunk", good[:18], "ends before its samples"},
		{"no format", strings.Replace(good, "fmt ", "fmt2", 1), "without a format"},
		{"short format", good[:16] + "\x02\x00\x00\x00ab", "format of 2 bytes"},
		{"large chunk", good[:12] + "LIST\xff\xff\xff\xff", `4294967295 bytes of "LIST"`},
		{"halves", string(header{3, 1, 16, Rate, 0}.bytes()),
			"floats with 16 bits: convert it to 16-bit PCM"},
		{"20 bits", string(header{1, 1, 20, Rate, 0}.bytes()), "PCM with 20 bits: convert it"},
		{"A-law", string(header{6, 1, 8, Rate, 0}.bytes()), "A-law with 8 bits"},
		{"µ-law", string(header{7, 1, 8, Rate, 0}.bytes()), "µ-law with 8 bits"},
		{"ADPCM", string(header{17, 1, 4, Rate, 0}.bytes()), "IMA ADPCM with 4 bits"},
		{"other", string(header{999, 1, 16, Rate, 0}.bytes()), "format 999 with 16 bits"},
		{"padded", strings.Replace(string(header{1, 1, 24, Rate, 0}.bytes()), "\x03\x00\x18",
			"\x04\x00\x18", 1), "samples of 24 bits in blocks of 4 bytes"},
		{"stereo", string(header{1, 2, 16, Rate, 0}.bytes()), "2 channels: convert it to mono"},
		{"no channel", string(header{1, 0, 16, Rate, 0}.bytes()), "0 channels"},
		{"no rate", string(header{1, 1, 16, 0, 0}.bytes()), "0 Hz: convert it to 16000 Hz"},
		{"slow", string(header{1, 1, 16, 1999, 0}.bytes()), "1999 Hz: convert it"},
		{"fast", string(header{1, 1, 16, 400_001, 0}.bytes()), "400001 Hz: convert it"},
	} {
		_, err := readFormat(strings.NewReader(test.file))
		if err == nil || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}
