package speech

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/gomem/gomem/data"
)

// oneLine reports an error that is not one line that can be printed.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q", err)
	}
}

// FuzzWAV: what is read has no more samples than the file has bytes for, whatever it claims,
// all of them numbers, and whole ones are from −1 to 1; written as floats they read as the
// same. Of anything else the error is one line.
func FuzzWAV(f *testing.F) {
	good := wav(Rate, []float32{0.5, -1, 1})
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(lengths(good, 0xffffffff, 0xffffffff))
	f.Add(lengths(good, 0, 0))
	f.Add(header{pcm, 1, 24, Rate, 1 << 30}.bytes())
	f.Add(append(header{float, 1, 64, Rate, 8}.bytes(),
		binary.LittleEndian.AppendUint64(nil, math.Float64bits(1e300))...))
	f.Add(append(header{pcm, 1, 8, 22050, 3}.bytes(), "abc"...))
	f.Add(header{pcm, 2, 16, Rate, 4}.bytes())
	f.Add(header{0x55, 1, 16, 1, 4}.bytes())
	f.Add([]byte("RIFF\xff\xff\xff\xffWAVE\n\x1b[3\xff\xff\xff\xff"))
	f.Add([]byte("RIFF....WAVEdata...."))
	f.Fuzz(func(t *testing.T, content []byte) {
		samples, rate, err := readSamples(bytes.NewReader(content))
		if err != nil {
			oneLine(t, err)
			return
		}
		if len(samples) > len(content) || rate < minRate || rate > maxRate {
			t.Errorf("%d samples at %d Hz of %d bytes", len(samples), rate, len(content))
		}
		again := header{float, 1, 32, uint32(rate), uint32(4 * len(samples))}.bytes()
		for _, x := range samples {
			again = binary.LittleEndian.AppendUint32(again, math.Float32bits(x))
		}
		if len(samples) == 0 {
			return // a length of 0 is another that is not known
		}
		same, _, err := readSamples(bytes.NewReader(again))
		if err != nil || len(same) != len(samples) {
			t.Fatalf("%d samples read as %d, %v", len(samples), len(same), err)
		}
		for i, x := range samples {
			if same[i] != x || math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				t.Errorf("sample %d is %v, then %v", i, x, same[i])
			}
		}
	})
}

// FuzzCSV: a table of utterances gives some, each with text in the letters of the set, or a
// *data.Error that names the table, and a line of it if the fault is in one.
func FuzzCSV(f *testing.F) {
	const head = "wav_filename,wav_filesize,transcript\n"
	for _, text := range []string{head + "good.wav,1,some words\n", head + "good.wav,-1,x\n",
		head + "none.wav,1,x\ngood.wav,1,\n", head + "good.wav,1,\"a\nb\"\n", head + "a,b\n",
		"\ufeff" + head + "good.wav,1,é\r\n", head + "\"good.wav\x00\",1,x\n",
		head + "\"\x1b[31m\n\",1,\u2028\n", head + "a\"b,1,x\n", "x,y\n", head, "", "\xff\n",
		"transcript," + head + "good.wav,good.wav,1,x\n", head + strings.Repeat("x,y,z\n", 20)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		write(t, dir, "good.wav", wav(Rate, make([]float32, 1000)))
		path := write(t, dir, "table.csv", text)
		s, err := Open(t.Context(), "csv:"+path, Options{}, nil)
		if err != nil {
			bad, ok := errors.AsType[*data.Error](err)
			if !ok || bad.Path != path || bad.Line > bytes.Count(text, []byte("\n"))+1 {
				t.Errorf("%+v", err)
			}
			oneLine(t, err)
			return
		}
		all := append(s.Train, s.HeldOut...)
		if len(all) == 0 || len(all) != s.Info.Pairs {
			t.Errorf("%d utterances, %d are said", len(all), s.Info.Pairs)
		}
		for _, u := range all {
			if u.Text == "" || u.Frames < 1 || strings.ContainsFunc(u.Text, func(r rune) bool {
				return !strings.ContainsRune(string(s.Letters), r)
			}) {
				t.Errorf("%+v of letters %q", u, string(s.Letters))
			}
		}
	})
}
