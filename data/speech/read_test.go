package speech

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tone is a second of sound, by samples.
func tone(samples int) []float32 {
	x := make([]float32, samples)
	for i := range x {
		x[i] = float32(math.Sin(float64(i*i) / 9000))
	}
	return x
}

// TestFeaturesAreTheBatchs: a recording read alone has the features that a batch has.
func TestFeaturesAreTheBatchs(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "a.wav", wav(Rate, tone(Rate)))
	csv := write(t, dir, "list.csv", []byte("wav_filename,wav_filesize,transcript\na.wav,"+
		"32044,yes\n"))
	set, err := Open(context.Background(), "csv:"+csv, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	u := slices.Concat(set.Train, set.HeldOut)[0]
	want, err := set.features(u)
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewReader().Features(path)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d numbers, %v; a batch has %d", len(got), err, len(want))
	}
	whole := wav(Rate, tone(Rate))
	streamed := slices.Clone(whole)
	copy(streamed[len(whole)-2*Rate-4:], []byte{255, 255, 255, 255})
	for _, content := range [][]byte{whole, streamed, append(whole, "LIST\x02\x00\x00\x00ab"...)} {
		got, err := NewReader().FeaturesOf(bytes.NewReader(content))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("of a stream: %d numbers, %v", len(got), err)
		}
	}
	if s := Seconds(u.Frames); math.Abs(s-1) > 0.02 {
		t.Errorf("a second lasts %v s", s)
	}
	write(t, dir, "b.WAV", nil)
	if paths, err := List(dir); err != nil ||
		!slices.Equal(paths, []string{path, filepath.Join(dir, "b.WAV")}) {
		t.Errorf("%v, %v", paths, err)
	}
}

// TestFeaturesErrors: what is no recording is an error.
func TestFeaturesErrors(t *testing.T) {
	dir := t.TempDir()
	for says, path := range map[string]string{
		"not a WAV file":        write(t, dir, "text.wav", []byte("no sound, but enough of it")),
		"WAV file of 7 samples": write(t, dir, "short.wav", wav(Rate, tone(7))),
		"no such file":          filepath.Join(dir, "none.wav"),
	} {
		_, err := NewReader().Features(path)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v does not say %q", path, err, says)
		}
	}
}
