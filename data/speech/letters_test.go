package speech

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

// listOf is a CSV file of recordings of noise, a transcript each.
func listOf(t testing.TB, transcripts ...string) (spec string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "a.wav", wav(Rate, tone(2*Rate)))
	rows := "wav_filename,wav_filesize,transcript\n"
	for _, text := range transcripts {
		rows += fmt.Sprintf("a.wav,1,%q\n", text)
	}
	return "csv:" + write(t, dir, "list.csv", []byte(rows))
}

// TestLettersOfData: transcripts are read in the letters that they are written with, in
// either form of Unicode, behind those of English, which stay what they are.
func TestLettersOfData(t *testing.T) {
	for _, c := range []struct{ transcripts, texts, further string }{
		{"Hello, you.", "hello you", ""},
		{"Größe der Straßenbahn – „süß“!|ÄH", "größe der straßenbahn süß|äh", "ßäöü"},
		{"L’été, ça va ?|«Où?»|e\u0301", "l'été ça va|où|é", "àçéù"},
		{"Привет, мир", "привет мир", "веимпрт"},
		{"日本語。|नमस्ते", "日本語|नमस्ते", "तनमसे्日本語"},
	} {
		s := open(t, listOf(t, strings.Split(c.transcripts, "|")...), Options{})
		have, want := texts(s), strings.Split(c.texts, "|")
		slices.Sort(have)
		slices.Sort(want)
		further := []rune(c.further)
		further = slices.DeleteFunc(further, func(r rune) bool {
			return !strings.ContainsRune(c.texts, r)
		})
		slices.Sort(further)
		if !slices.Equal(have, want) || string(s.Letters) != Alphabet+string(further) {
			t.Errorf("%q: %q in %q, want %q in %q", c.transcripts, have, s.Letters, want,
				Alphabet+string(further))
		}
		again, err := LettersOf(s.Letters.Names())
		if err != nil || !slices.Equal(again, s.Letters) {
			t.Errorf("%q are kept as %q: %v", s.Letters, s.Letters.Names(), err)
		}
		for _, text := range have {
			labels := s.Letters.labels(text)
			if got := s.Letters.Text(labels); got != text || slices.Min(labels) < 0 ||
				slices.Max(labels) >= int32(len(again)) {
				t.Errorf("%q has the labels %v, which read %q", text, labels, got)
			}
		}
	}
	if names := English().Names(); names != nil {
		t.Errorf("English is kept as %q", names)
	}
	for _, bad := range [][]string{{"ab"}, {""}, {"a", "a"}, {"\xff"}} {
		if l, err := LettersOf(bad); err == nil {
			t.Errorf("%q are the letters %q", bad, l)
		}
	}
}

// TestLettersOfModel: a model that is given reads its own letters and no others.
func TestLettersOfModel(t *testing.T) {
	german := English().with(map[rune]bool{'ß': true, 'ä': true})
	s := open(t, listOf(t, "äh"), Options{Letters: german})
	if !slices.Equal(s.Letters, german) {
		t.Errorf("letters %q, want %q", s.Letters, german)
	}
	_, err := Open(t.Context(), listOf(t, "ja", "ñ"), Options{Letters: german}, nil)
	if err == nil || !strings.Contains(err.Error(), `list.csv:3: transcript with 'ñ', which the `+
		`model does not know: it writes " abcdefghijklmnopqrstuvwxyz'ßä"`) {
		t.Errorf("%v", err)
	}
	const frames, blank = 6, 30
	logits := tensor.New(tensor.Of(tensor.F32, frames, 1, german.Symbols()))
	for f, symbol := range []int{28, 28, blank, 28, 29, blank} {
		logits.F32()[f*german.Symbols()+symbol] = 20
	}
	for beam := range 3 {
		got, err := german.DecodeBeam(logits, []int32{frames}, beam)
		if err != nil || got[0] != "ßßä" {
			t.Errorf("a beam of %d reads %q, %v", beam, got, err)
		}
	}
	if framesFor("ßßä") != 4 {
		t.Errorf("ßßä takes %d frames", framesFor("ßßä"))
	}
}

// TestAllBadLines: what is wrong with a list is told at once, up to ten lines and how many
// more.
func TestAllBadLines(t *testing.T) {
	dir := t.TempDir()
	rows := "wav_filename,wav_filesize,transcript\n"
	write(t, dir, "good.wav", wav(Rate, tone(Rate)))
	write(t, dir, "text.wav", []byte("no sound at all, but text"))
	for i := range 4 {
		rows += fmt.Sprintf("good.wav,1,yes\nnone%d.wav,1,yes\ngood.wav,1,%d\n", i, i)
		rows += "text.wav,1,no\n"
	}
	rows += "good.wav,1\n"
	path := write(t, dir, "list.csv", []byte(rows))
	_, err := Open(context.Background(), "csv:"+path, Options{}, nil)
	bad, ok := errors.AsType[*data.Error](err)
	if !ok || bad.Line != 3 || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v", err)
	}
	said := err.Error()
	for _, want := range []string{"13 lines are wrong; line 3: ", "none0.wav\": no such file",
		"; line 4: transcript with '0'", "line 5: ", "text.wav\": not a WAV file", "; line 13: ",
		"line 15: ", "; and 3 more"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
	if strings.Contains(said, "line 16:") || strings.Contains(said, "\n") {
		t.Errorf("%q says too much", said)
	}
}

// TestEditedRecording: a recording that is edited while it is trained on, or before a run
// goes on, is another, though its length is the same.
func TestEditedRecording(t *testing.T) {
	spec := listOf(t, "yes", "no")
	s := open(t, spec, Options{})
	l := loader(t, s, LoaderOptions{Utterances: 1})
	x := tone(2 * Rate)
	x[5] = -x[5]
	if err := os.WriteFile(s.Train[0].Path, wav(Rate, x), 0o666); err != nil {
		t.Fatal(err)
	}
	if l.Train(0); l.Err() == nil || !strings.Contains(l.Err().Error(), "has changed since") {
		t.Errorf("an edited recording: %v", l.Err())
	}
	again := open(t, spec, Options{})
	if again.Info.SHA256 == s.Info.SHA256 || again.Info.Listing != s.Info.Listing {
		t.Errorf("%+v, then %+v", s.Info, again.Info)
	}
}
