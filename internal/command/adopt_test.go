package command

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/internal/longtest"
)

// TestResumeTakesTheRun: a run goes on from its directory alone, as if it had never stopped;
// flags that are given have to be the run's, and one that is not is named with both values
// before any data is read.
func TestResumeTakesTheRun(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	args := []string{"train", "--model", "transformer", "--size", "s512", "--data",
		"tsv:pairs.tsv", "--batch", "12", "--depth", "1", "--bleu", "0", "--eval-batches", "1",
		"--optimizer", "adamw", "--clip", "0.5", "--dropout", "0.2", "--lr", "0.003",
		"--schedule", "cosine", "--warmup", "1", "--seed", "7", "--eval-share", "0.1", "--json"}
	_, whole := trainLines(t, succeed(t, with(args, "--steps", "4", "--save", "whole")...))
	rest := []string{"train", "--resume", "whole/step-00000002.safetensors", "--save", "rest",
		"--bleu", "0", "--eval-batches", "1", "--json"}
	if o := invoke(t, rest...); o.status != exitFailure ||
		!strings.Contains(o.stderr, "step-00000002") {
		t.Errorf("a step that was not saved: %+v", o)
	}
	succeed(t, with(args, "--steps", "4", "--save", "parts", "--save-every", "2")...)
	rest[2] = "parts/step-00000002.safetensors"
	for _, more := range [][]string{nil, {"--batch", "12", "--lr", "3e-3", "--depth", "1"}} {
		_, got := trainLines(t, succeed(t, with(rest, more...)...))
		if got["weights_sha256"] != whole["weights_sha256"] ||
			got["eval_loss"] != whole["eval_loss"] {
			t.Errorf("%v: the rest of a run ends with %v %v, the whole with %v %v", more,
				got["weights_sha256"], got["eval_loss"], whole["weights_sha256"],
				whole["eval_loss"])
		}
		if err := os.RemoveAll("rest"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove("pairs.tsv"); err != nil { // nothing is read of it
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, value, kept string }{
		{"model", "moe", "transformer"}, {"size", "s64", "s512"}, {"batch", "16", "12"},
		{"depth", "2", "1"}, {"dropout", "0.5", "0.2"}, {"optimizer", "sgd", "adamw"},
		{"clip", "1", "0.5"}, {"lr", "0.1", "0.003"}, {"schedule", "linear", "cosine"},
		{"warmup", "0", "1"}, {"seed", "8", "7"}, {"eval-share", "0.2", "0.1"},
		{"accumulate", "2", "(the default)"}, {"vocabulary", "300", ""},
	} {
		o := invoke(t, with(rest, "--"+c.flag, c.value)...)
		says := fmt.Sprintf("was made with --%s %s", c.flag, c.kept)
		if o.status != exitFailure || o.stdout != "" || !strings.Contains(o.stderr, says) ||
			!strings.Contains(o.stderr, "this run has --"+c.flag+" "+c.value) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%+v does not say %q", o, says)
		}
	}
	o := invoke(t, "train", "--resume", "whole")
	if o.status != exitFailure || !strings.Contains(o.stderr, "is at step 4 already, the run is "+
		"to reach 4: ask for more steps") {
		t.Errorf("a run that is done: %+v", o)
	}
}

// TestLatest: the file that names a run's latest checkpoint stands for it, as its directory
// and the checkpoint do, for every command that takes one.
func TestLatest(t *testing.T) {
	inDir(t)
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "2", "--save", "run")
	write(t, "a.txt", "the number")
	want, _ := predicted(t, exitOK, "--from", "run", "--tokens", "9", "a.txt")
	for _, from := range []string{"run/latest", "run/step-00000002.safetensors", "run/"} {
		if got, _ := predicted(t, exitOK, "--from", from, "--tokens", "9", "a.txt"); got != want {
			t.Errorf("%s: %q, want %q", from, got, want)
		}
		succeed(t, "eval", "--from", from, "--eval-batches", "1")
		succeed(t, "export", "--from", from, filepath.Join("out", filepath.Base(from)))
	}
	succeed(t, "train", "--resume", "run/latest", "--steps", "3")
	write(t, "run/latest", "nonsense\n")
	if o := invoke(t, "eval", "--from", "run/latest"); o.status != exitFailure ||
		!strings.Contains(o.stderr, "checkpoint run/latest: names no checkpoint") {
		t.Errorf("%+v", o)
	}
}

// TestNothingHeldOut: a run that evaluates nothing begins with a warning.
func TestNothingHeldOut(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	write(t, "few.tsv", strings.Repeat("one\tun\n", 1)+"two\tdeux\nthree\ttrois\n")
	args := []string{"train", "--model", "transformer", "--size", "s512", "--batch", "2", "--data",
		"tsv:few.tsv", "--steps", "1", "--bleu", "0"}
	o := invoke(t, args...)
	if o.status != exitOK || !strings.Contains(o.stderr, "gomem: warning: nothing is held out of "+
		"tsv:few.tsv") || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("%+v", o)
	}
	lines, _ := trainLines(t, invoke(t, with(args, "--json")...).stdout)
	if lines[1].Type != "warning" || !strings.Contains(lines[1].Text, "nothing is held out") {
		t.Errorf("%+v", lines)
	}
	o = invoke(t, with(args, "--batch", "8")...)
	if o.status != exitFailure || o.stdout != "" || !strings.Contains(o.stderr,
		"3 training pairs of up to 16 tokens do not fill one batch of 8: give batches "+
			"of 3 or fewer, or "+
			"a larger corpus") {
		t.Errorf("%+v", o)
	}
}

// TestStrictPictures: a picture that cannot be read is left out and said, or refused.
func TestStrictPictures(t *testing.T) {
	inDir(t)
	faces := pictured(t, "faces", 30, "cats", "dogs")
	write(t, "faces/cats/bad.png", "no picture")
	args := []string{"train", "--model", "resnet", "--size", "s512", "--data", faces, "--batch",
		"4", "--steps", "1", "--eval-share", "0.3"}
	text := strings.Join(strings.Fields(succeed(t, with(args, "--save", "run")...)), " ")
	if !strings.Contains(text, "1 path left out, the first faces/cats/bad.png (not a whole PNG") {
		t.Errorf("%s", text)
	}
	for _, c := range [][]string{with(args, "--strict"), {"eval", "--from", "run", "--strict"}} {
		if o := invoke(t, c...); o.status != exitFailure || o.stdout != "" ||
			!strings.Contains(o.stderr, "faces/cats/bad.png: not a whole PNG") {
			t.Errorf("%v: %+v", c, o)
		}
	}
	if o := invoke(t, with(tiny, "--strict")...); o.status != exitUsage {
		t.Errorf("%+v", o)
	}
}

// recorded is a list of recordings of a hum, by their transcripts.
func recorded(t *testing.T, name string, transcripts ...string) (spec string) {
	t.Helper()
	rows := "wav_filename,wav_filesize,transcript\n"
	for i, text := range transcripts {
		b := []byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
		b = binary.LittleEndian.AppendUint32(b, speech.Rate)
		b = binary.LittleEndian.AppendUint32(b, 2*speech.Rate)
		b = append(b, "\x02\x00\x10\x00data"...)
		b = append(b, "\xff\xff\xff\xff"...) // as a pipe has it
		for s := range 2 * speech.Rate {
			level := 9000 * math.Sin(float64(s)*float64(20+i)/900)
			b = binary.LittleEndian.AppendUint16(b, uint16(int16(level)))
		}
		wav := fmt.Sprintf("%s%d.wav", name, i)
		write(t, wav, string(b))
		rows += fmt.Sprintf("%s,0,%s\n", wav, text)
	}
	write(t, name+".csv", rows)
	return "csv:" + name + ".csv"
}

// TestGermanSpeech: a model writes the letters of its transcripts, which its checkpoint keeps
// for whoever evaluates it, goes on or predicts.
func TestGermanSpeech(t *testing.T) {
	inDir(t)
	var texts []string
	for i := range 8 {
		texts = append(texts, fmt.Sprintf("größe und straße %c", 'a'+i))
	}
	args := []string{"train", "--model", "deepspeech", "--size", "s512", "--batch", "4",
		"--data", recorded(t, "de", texts...), "--eval-share", "0.3", "--length", "120",
		"--save", "run"}
	text := succeed(t, with(args, "--steps", "1")...)
	if !strings.Contains(text, "letters") || !strings.Contains(text, "xyz'ßö") {
		t.Errorf("%s", text)
	}
	succeed(t, "train", "--resume", "run", "--steps", "2")
	own := evaluation(t, "--from", "run")
	if own["whole"] != false {
		t.Errorf("%v", own)
	}
	evaluation(t, "--from", "run", "--data", recorded(t, "two", "straße", "fuß"))
	o := invoke(t, "eval", "--from", "run", "--data", recorded(t, "fr", "voilà"))
	if o.status != exitFailure || !strings.Contains(o.stderr, "fr.csv:2: transcript with 'à', "+
		"which the model does not know") {
		t.Errorf("%+v", o)
	}
	if out, _ := predicted(t, exitOK, "--from", "run", "de0.wav"); !strings.HasPrefix(out,
		"de0.wav: ") {
		t.Errorf("%q", out)
	}
}

// TestEditedData: data that is edited is other data, though its size is the same.
func TestEditedData(t *testing.T) {
	inDir(t)
	succeed(t, with(tiny, "--steps", "1", "--save", "run")...)
	pairs, err := os.ReadFile("pairs.tsv")
	edited := bytes.Replace(pairs, []byte("number 7 is 49"), []byte("number 7 is 48"), 1)
	if err = errors.Join(err, os.WriteFile("pairs.tsv", edited, 0o600)); err != nil ||
		bytes.Equal(edited, pairs) {
		t.Fatal(err)
	}
	o := invoke(t, "train", "--resume", "run", "--steps", "2")
	if o.status != exitFailure || !strings.Contains(o.stderr, "was made with data") ||
		o.stdout != "" {
		t.Errorf("%+v", o)
	}
	if own := evaluation(t, "--from", "run", "--eval-batches", "1"); own["whole"] != true {
		t.Errorf("%v", own)
	}
}

// TestBadText: every reader of text refuses what is none, with its line, and reads what
// begins with a byte order mark; and says where there is no room for what is asked for.
func TestBadText(t *testing.T) {
	inDir(t)
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "1", "--save", "run")
	trained(t, "transformer", "--data", "tsv:pairs.tsv", "--steps", "1", "--bleu", "0", "--save",
		"pairs")
	write(t, "plain", "the number\n")
	write(t, "marked", "\ufeffthe number\n")
	write(t, "utf16", "\xff\xfet\x00h\x00e\x00\n\x00")
	write(t, "zero", "the\x00number\n")
	for _, run := range []string{"run", "pairs"} {
		want, _ := predicted(t, exitOK, "--from", run, "--tokens", "4", "plain")
		if got, _ := predicted(t, exitOK, "--from", run, "--tokens", "4", "marked"); got != want {
			t.Errorf("%s: behind a mark %q, else %q", run, got, want)
		}
		for file, says := range map[string]string{"utf16": "iconv -f UTF-16 -t UTF-8",
			"zero": "a byte of zero"} {
			if _, errors := predicted(t, exitFailure, "--from", run, file); !strings.Contains(
				errors, says) || !strings.Contains(errors, file) {
				t.Errorf("%s of %s: %q", run, file, errors)
			}
		}
		o := invoke(t, "predict", "--from", run, "--tokens", "5000", "plain")
		if o.status != exitOK || !strings.Contains(o.stderr, "of 5000 tokens, the model's texts "+
			"have at most") {
			t.Errorf("%s: %+v", run, o)
		}
	}
	write(t, "points", "\ufeff1 1:0.5 2:1\n2 1:-1\n")
	succeed(t, "train", "--model", "mlr", "--data", "libsvm:points", "--epochs", "1")
	write(t, "points", "\xff\xfe1\x00 \x001\x00:\x001\x00\n\x00")
	for spec, says := range map[string]string{"libsvm:points": "iconv", "libsvm:.": "a directory"} {
		if o := invoke(t, "train", "--model", "mlr", "--data", spec); o.status != exitFailure ||
			!strings.Contains(o.stderr, says) {
			t.Errorf("%s: %+v", spec, o)
		}
	}
}

// TestMillionsOfSteps: a number of steps is kept as it is read, also one that ends in zeros; and of
// checkpoints that have it with an exponent it is read.
func TestMillionsOfSteps(t *testing.T) {
	for n, want := range map[count]string{0: "", 300: "300", 1_000_000: "1000000",
		12_000_000: "12000000"} {
		got := inWords(n)
		var back count
		err := back.UnmarshalText([]byte(unpowered(got)))
		if got != want || n > 0 && (err != nil || back != n) {
			t.Errorf("%d is kept as %q and read as %d", n, got, back)
		}
	}
	for text, want := range map[string]string{"1e+06": "1000000", "1.2e+07": "12000000", "": "",
		"many": "many", "1.5": "1.5", "1e+99": "1e+99"} {
		if got := unpowered(text); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}
