package speech

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gomem/gomem/data"
)

// open opens a spec that must be good.
func open(t testing.TB, spec string, o Options) *Set {
	t.Helper()
	s, err := Open(context.Background(), spec, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// goTree makes a Go source tree of doc comments.
func goTree(t testing.TB, comments ...string) {
	t.Helper()
	root := t.TempDir()
	t.Setenv("GOROOT", root)
	var b strings.Builder
	b.WriteString("package p\n")
	for i, c := range comments {
		fmt.Fprintf(&b, "\n// %s\nfunc F%d() {}\n", c, i)
	}
	write(t, root, "src/p/p.go", []byte(b.String()))
}

// texts gives the texts of both parts in their order.
func texts(s *Set) []string {
	var out []string
	for _, u := range slices.Concat(s.Train, s.HeldOut) {
		out = append(out, u.Text)
	}
	return out
}

func TestFormant(t *testing.T) {
	goTree(t, "Reads a file. It may fail.", "Reads a file.", "Holds 4 bytes.", "Don't panic!",
		"Copyright 2020 nobody.")
	s := open(t, "formant", Options{Seed: 1})
	if got, want := texts(s), []string{"reads a file", "don't panic"}; !slices.Equal(got, want) {
		t.Errorf("texts %q, want %q", got, want)
	}
	if i := s.Info; i.Spec != "formant" || i.Pairs != 2 || i.Dropped != 3 || i.Files != 1 ||
		i.SHA256 == "" || i.Bytes == 0 {
		t.Errorf("info %+v", i)
	}
	if !strings.Contains(s.Info.String(), "2 utterances") ||
		!strings.Contains(s.Info.String(),
			"3 utterances dropped (repeated, or with digits or symbols)") {
		t.Errorf("%q", s.Info)
	}
	for _, u := range s.Train {
		x, err := s.features(u)
		if err != nil || len(x) != u.Frames*Coefficients {
			t.Errorf("%q: %d features, %v, want %d frames", u.Text, len(x), err, u.Frames)
		}
	}
	if one := open(t, "formant", Options{MaxUtterances: 1}); one.Info.Pairs != 1 {
		t.Errorf("%d utterances, want 1", one.Info.Pairs)
	}
}

func TestFormantOfToolchain(t *testing.T) {
	s, err := Open(context.Background(), "formant", Options{MaxUtterances: 2000}, nil)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("needs the Go source tree: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.HeldOut); s.Info.Pairs != 2000 || n < 15 || n > 80 || n != s.Info.HeldOut {
		t.Errorf("%d utterances of %d are held out, want about 40 of 2000", n, s.Info.Pairs)
	}
	letters, seconds := 0, 0.0
	for _, u := range s.Train {
		letters, seconds = letters+len(u.Text), seconds+float64(u.Frames)*hop/Rate
	}
	if rate := float64(letters) / seconds; rate < 10 || rate > 22 {
		t.Errorf("%.1f letters a second", rate)
	}
}

// csvOf makes a CSV file with the rows "a.wav,BYTES,hello" and "sub/b.wav,BYTES,It's
// me." and their WAV files.
func csvOf(t testing.TB) (path string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "a.wav", wav(Rate, make([]float32, 16000)))
	write(t, dir, "sub/b.wav", wav(Rate, speak("it's me", 1)))
	return write(t, dir, "train.csv",
		[]byte("\ufeffwav_filename,wav_filesize,transcript\na.wav,32044,hello\n"+
			"sub/b.wav,1,\"It's, me.\"\n"))
}

func TestCSV(t *testing.T) {
	path := csvOf(t)
	var calls []int
	s, err := Open(context.Background(), "csv:"+path, Options{}, func(n int) {
		calls = append(calls, n)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := texts(s), []string{"hello", "it's me"}; !slices.Equal(got, want) ||
		!slices.Equal(calls, []int{1, 2, 3}) {
		t.Errorf("texts %q, want %q; progress %v", got, want, calls)
	}
	if i := s.Info; i.Files != 3 || i.Pairs != 2 || i.Path != path || i.Noun != "utterance" {
		t.Errorf("info %+v", i)
	}
	if u := s.Train[0]; u.Frames != 49 || u.Path != filepath.Join(filepath.Dir(path), "a.wav") {
		t.Errorf("utterance %+v", u)
	}
	recorded, err := s.features(s.Train[1])
	if err != nil {
		t.Fatal(err)
	}
	spoken := s.analyser.features(speak("it's me", 1))
	for i := range spoken {
		if math.Abs(float64(recorded[i]-spoken[i])) > 0.1 {
			t.Fatalf("feature %d is %g, before it was recorded %g", i, recorded[i], spoken[i])
		}
	}
	if one := open(t, "csv:"+path, Options{MaxUtterances: 1}); one.Info.Pairs != 1 ||
		one.Info.Files != 2 {
		t.Errorf("info %+v, want 1 utterance", one.Info)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	const names = "wav_filename,wav_filesize,transcript\n"
	write(t, dir, "good.wav", wav(Rate, make([]float32, 1000)))
	write(t, dir, "slow.wav", wav(800, make([]float32, 1000)))
	write(t, dir, "short.wav", wav(Rate, make([]float32, 1000))[:1000])
	write(t, dir, "text.wav", []byte("this is a long text and no sound"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.wav"), 0o600); err != nil {
		t.Skip(err)
	}
	n := 0
	file := func(scheme, content string) string {
		n++
		return scheme + ":" + write(t, dir, fmt.Sprintf("%d.csv", n), []byte(content))
	}
	csv := func(rows string) string { return file("csv", names+"good.wav,2044,yes\n"+rows) }
	for _, test := range []struct {
		spec, want string
		line       int
	}{
		{"", "data: empty spec: give formant, csv:FILE or espeak:FILE", 0},
		{"formant:x", "unknown source: give formant", 0},
		{"formants", "unknown source", 0},
		{"wav:x", "unknown source", 0},
		{"a\nb", `data "a\nb": unknown source`, 0},
		{"csv:", "no path", 0},
		{"espeak", "no path", 0},
		{"csv:" + dir + "/none", "no such file or directory: check the path", 0},
		{"csv:" + dir, "a directory, not a regular file: give a file", 0},
		{"espeak:" + dir + "/none", "check the path", 0},
		{"espeak:" + dir, "not a regular file", 0},
		{file("csv", ""), "no column wav_filename: begin with wav_filename,", 1},
		{file("csv", "wav_filename,transcript\n"), "no column wav_filesize", 1},
		{file("csv", "\"\n"), "not a CSV file", 1},
		{file("csv", names), "no utterances: give a source that holds some", 0},
		{csv("good.wav,2044\n"), "wrong number of fields: correct the CSV", 3},
		{csv("good.wav,2044,\"no\n"), "correct the CSV", 3},
		{csv("good.wav,2044,4 files\n"), "transcript with '4'", 3},
		{csv("good.wav,2044,\n"), "transcript without a letter", 3},
		{csv("good.wav,many,no\n"), `wav_filesize is "many"`, 3},
		{csv("good.wav,-1,no\n"), `wav_filesize is "-1"`, 3},
		{csv(",2044,no\n"), "no wav_filename", 3},
		{csv("none.wav,2044,no\n"), `none.wav": no such file or directory: check the path`, 3},
		{csv(".,2044,no\n"), "not a regular file", 3},
		{csv("text.wav,2044,no\n"), `text.wav": not a WAV file`, 3},
		{csv("slow.wav,2044,no\n"), `slow.wav": WAV file of 800 Hz: convert it to 16000 Hz`, 3},
		{csv("\ngood.wav,1,yes\nshort.wav,2044,no\n"),
			"WAV file with 478 of its 1000 samples: copy it again", 5},
		{csv("pipe.wav,2044,no\n"), `pipe.wav": a pipe, not a regular file: give a file`, 3},
		{"csv:" + dir + "/pipe.wav", "a pipe, not a regular file: give a file", 0},
		{"espeak:" + dir + "/pipe.wav", "a pipe, not a regular file: give a file", 0},
		{file("espeak", "Hello.\n\nTwo 2.\n"), "transcript with '2'", 3},
		{file("espeak", strings.Repeat("a", 1<<17)), "line of more than", 1},
	} {
		s, err := Open(context.Background(), test.spec, Options{}, nil)
		bad, ok := errors.AsType[*data.Error](err)
		if s != nil || !ok {
			t.Errorf("%q: %v, %v, want a *data.Error", test.spec, s, err)
			continue
		}
		if bad.Line != test.line || bad.Spec != test.spec ||
			!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %q at line %d, want %q at %d", test.spec, err, bad.Line, test.want,
				test.line)
		}
	}
	if _, err := Open(context.Background(), "formant", Options{MaxUtterances: -1},
		nil); err == nil || !strings.Contains(err.Error(), "limit of -1 utterances") {
		t.Errorf("a negative limit: %v", err)
	}
}

func TestNoGoSource(t *testing.T) {
	t.Setenv("GOROOT", t.TempDir())
	_, err := Open(context.Background(), "formant", Options{}, nil)
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "data formant: ") ||
		!strings.Contains(err.Error(), "install Go or set GOROOT") {
		t.Errorf("%v", err)
	}
}

func TestOpenCancelled(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	goTree(t, "Reads a file.")
	for _, spec := range []string{"formant", "csv:" + csvOf(t), "espeak:" +
		write(t, t.TempDir(), "a.txt", []byte("hello\n"))} {
		if _, err := Open(ctx, spec, Options{}, nil); !errors.Is(err, stop) {
			t.Errorf("%s: %v, want the cause", spec, err)
		}
	}
}

// fakeESpeak puts a program of that name on the PATH, and nothing else.
func fakeESpeak(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if script == "" {
		return
	}
	if err := os.Chmod(write(t, dir, "espeak", []byte("#!/bin/sh\n"+script+"\n")),
		0o777); err != nil {
		t.Fatal(err)
	}
}

func TestESpeak(t *testing.T) {
	dir := t.TempDir()
	path := "espeak:" + write(t, dir, "text.txt", []byte("Hello, you.\n\nRead files\n"))
	sound := wav(22050, make([]float32, 22050))
	copy(sound[40:], "\x00\xf0\xff\x7f") // as written to a pipe
	write(t, dir, "sound.wav", sound)
	fakeESpeak(t, `[ "$1 $2 $4" = "--stdout -s -p" ] && /bin/cat "`+dir+`/sound.wav"`)
	var calls []int
	s, err := Open(context.Background(), path, Options{}, func(n int) { calls = append(calls, n) })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := texts(s), []string{"hello you", "read files"}; !slices.Equal(got, want) ||
		s.Train[0].Frames != 49 {
		t.Errorf("texts %q, want %q; %d frames", got, want, s.Train[0].Frames)
	}
	if !slices.Equal(calls, []int{1, 2}) || s.Info.Files != 1 {
		t.Errorf("progress %v, info %+v", calls, s.Info)
	}
	if x, err := s.features(s.Train[0]); err != nil || len(x) != 49*Coefficients {
		t.Errorf("%d features, %v", len(x), err)
	}
	for script, want := range map[string]string{
		"":                            "neither espeak-ng nor espeak is on the PATH",
		"echo 'no voice' >&2; exit 1": `text.txt:1: "`,
		"exit 3":                      "exit status 3",
		"echo hello":                  "not a WAV file",
	} {
		fakeESpeak(t, script)
		_, err := Open(context.Background(), path, Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", script, err, want)
		}
	}
}
