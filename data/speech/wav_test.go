package speech

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
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
		r := bytes.NewReader(file)
		f, err := readFormat(r, false)
		if err != nil || f.rate != Rate || f.samples != int64(len(want)) {
			t.Fatalf("%+v, %v", f, err)
		}
		got, err := readSamples(r, f.samples)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d samples, %v", len(got), err)
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-4 {
				t.Fatalf("sample %d is %g, want %g", i, got[i], want[i])
			}
		}
	})
}

func TestWAVStreamed(t *testing.T) {
	file := append(header{1, 1, 16, 22050, 0x7ffff000}.bytes(), 1, 0, 2, 0, 3)
	r := bytes.NewReader(file)
	f, err := readFormat(r, true)
	if err != nil || f.rate != 22050 {
		t.Fatalf("%+v, %v", f, err)
	}
	if x, err := readSamples(r, -1); err != nil || len(x) != 2 {
		t.Errorf("samples %v, %v, want 2", x, err)
	}
}

func TestWAVRefuses(t *testing.T) {
	good := string(wav(Rate, make([]float32, 4)))
	for _, test := range []struct{ name, file, want string }{
		{"empty", "", "not a WAV file"},
		{"mp3", "ID3\x04\x00aaaaaaaaaaaaaaaaa", "not a WAV file"},
		{"big endian", strings.Replace(good, "RIFF", "RIFX", 1), "not a WAV file"},
		{"cut in the header", good[:30], "ends before its samples"},
		{"cut before the samples", good[:36], "ends before its samples"},
		{"cut in the chunk", good[:18], "ends before its samples"},
		{"no format", strings.Replace(good, "fmt ", "fmt2", 1), "without a format"},
		{"short format", good[:16] + "\x02\x00\x00\x00ab", "format of 2 bytes"},
		{"large chunk", good[:12] + "LIST\xff\xff\xff\xff", `4294967295 bytes of "LIST"`},
		{"floats", string(header{3, 1, 32, Rate, 0}.bytes()),
			"format 3 with 32 bits: convert it to 16-bit PCM"},
		{"8 bits", string(header{1, 1, 8, Rate, 0}.bytes()), "format 1 with 8 bits"},
		{"stereo", string(header{1, 2, 16, Rate, 0}.bytes()), "2 channels: convert it to mono"},
		{"no channel", string(header{1, 0, 16, Rate, 0}.bytes()), "0 channels"},
		{"no rate", string(header{1, 1, 16, 0, 0}.bytes()), "0 Hz: convert it to 16000 Hz"},
		{"slow", string(header{1, 1, 16, 1999, 0}.bytes()), "1999 Hz: convert it"},
		{"fast", string(header{1, 1, 16, 400_001, 0}.bytes()), "400001 Hz: convert it"},
	} {
		_, err := readFormat(strings.NewReader(test.file), false)
		if err == nil || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := readSamples(strings.NewReader("abc"), 2); err == nil {
		t.Error("samples that are not there were read")
	}
}
