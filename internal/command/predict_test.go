package command

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// trained makes the small model of a name in the directory of that name.
func trained(t *testing.T, model string, args ...string) {
	t.Helper()
	succeed(t, append([]string{"train", "--model", model, "--size", "s512", "--policy", "vanilla",
		"--save", model, "--eval-batches", "2"}, args...)...)
}

// predicted runs predict and returns standard output, and on standard error all but the
// two lines about speed and memory.
func predicted(t *testing.T, status int, args ...string) (out, errors string) {
	t.Helper()
	o := invoke(t, append([]string{"predict", "--policy", "vanilla"}, args...)...)
	if o.status != status {
		t.Fatalf("predict %q: status %d, want %d\n%s", args, o.status, status, o.stderr)
	}
	lines := strings.SplitAfter(o.stderr, "\n")
	for len(lines) > 0 && !strings.HasPrefix(lines[len(lines)-1], "gomem: ") {
		lines = lines[:len(lines)-1]
	}
	return o.stdout, strings.Join(lines, "")
}

// from makes a text standard input.
func from(t *testing.T, content []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stdin")
	write(t, path, string(content))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	was := os.Stdin
	os.Stdin = f
	t.Cleanup(func() {
		os.Stdin = was
		f.Close()
	})
}

// predictions reads JSON lines by their type.
func predictions(t *testing.T, out string) map[string][]map[string]any {
	t.Helper()
	lines := map[string][]map[string]any{}
	for line := range strings.Lines(out) {
		var x map[string]any
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines[fmt.Sprint(x["type"])] = append(lines[fmt.Sprint(x["type"])], x)
	}
	return lines
}

// TestPredictTexts: lines are translated one for one, from files and from standard
// input, the same under any plan, and what cannot be read does not stop the others.
func TestPredictTexts(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for _, model := range []string{"transformer", "moe"} {
		trained(t, model, "--data", "tsv:pairs.tsv", "--steps", "40")
		write(t, "two.txt", "the number 5\r\nthe number 77")
		out, errs := predicted(t, exitOK, "--from", model, "two.txt")
		if strings.Count(out, "\n") != 2 || !strings.Contains(out, "number") || errs != "" {
			t.Errorf("%s: %q, %q", model, out, errs)
		}
		for _, args := range [][]string{
			{"--batch", "1"},
			{"--policy", "thesis", "--partition", "2", "--device-memory", "400KiB"},
			{"--policy", "auto", "--device-memory", "320KiB", "--threads", "1"},
			{"--from", filepath.Join(model, "step-00000040.safetensors")},
		} {
			if got, _ := predicted(t, exitOK, append([]string{"--from", model, "two.txt"},
				args...)...); got != out {
				t.Errorf("%s %q: %q, before %q", model, args, got, out)
			}
		}
		from(t, []byte("the number 5\n\nbad \xff\nthe number 77\nlong"+
			strings.Repeat(" number", 40)+"\n"))
		got, errs := predicted(t, exitFailure, "--from", model)
		lines := strings.Split(got, "\n")
		if len(lines) != 6 || lines[0]+"\n"+lines[3]+"\n" != out || lines[1]+lines[2] != "" ||
			!strings.Contains(errs, "standard input:3: not UTF-8: convert the file") ||
			!strings.Contains(errs, "standard input:5: cut to the first 15 of ") {
			t.Errorf("%s: %q, %q", model, got, errs)
		}
		got, errs = predicted(t, exitFailure, "--from", model, "none.txt", "two.txt", ".", "--json")
		all := predictions(t, got)
		if len(all["error"]) != 2 || len(all["prediction"]) != 2 || len(all["summary"]) != 1 ||
			all["prediction"][0]["text"] != strings.Split(out, "\n")[0] ||
			strings.Count(errs, "\n") != 2 || !strings.Contains(errs, "gomem: none.txt: no such") {
			t.Errorf("%s: %q, %q", model, got, errs)
		}
		s := all["summary"][0]
		if s["predicted_device_peak_bytes"] != s["actual_device_peak_bytes"] ||
			s["inputs"] != 2.0 || s["failed"] != 2.0 || s["step"] != 40.0 {
			t.Errorf("%s: %v", model, s)
		}
	}
}

// TestPredictBeam: a beam's score is never worse, and short translations can be asked
// for.
func TestPredictBeam(t *testing.T) {
	inDir(t)
	trained(t, "transformer", "--data", "tsv:pairs.tsv", "--steps", "10")
	write(t, "two.txt", "the number 5\nthe number 77\n")
	score := func(args ...string) []map[string]any {
		out, _ := predicted(t, exitOK, append(
			[]string{"--from", "transformer", "two.txt", "--json"},
			args...)...)
		return predictions(t, out)["prediction"]
	}
	greedy, beam := score(), score("--beam", "4")
	for i := range greedy {
		if beam[i]["score"].(float64) < greedy[i]["score"].(float64)-1e-4 {
			t.Errorf("beam %v, greedy %v", beam[i], greedy[i])
		}
	}
	for _, line := range score("--tokens", "2") {
		if n := line["tokens"].(float64); n > 2 {
			t.Errorf("%v", line)
		}
	}
}

// TestPredictGPT: texts go on, drawn or not, the same in any batch and under any plan,
// and so with the checkpoint in public form.
func TestPredictGPT(t *testing.T) {
	inDir(t)
	for _, blocks := range []string{"gpt2", "llama"} {
		save := "run-" + blocks
		trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "20", "--blocks", blocks, "--save",
			save)
		write(t, "a.txt", "the number 5\tnumber\n")
		write(t, "b.txt", "the")
		out, errs := predicted(t, exitOK, "--from", save, "--tokens", "9", "a.txt")
		if !strings.HasPrefix(out, "the number 5\tnumber") || len(out) < 25 || errs != "" {
			t.Errorf("%q, %q", out, errs)
		}
		from(t, []byte("the number 5\tnumber"))
		same, _ := predicted(t, exitOK, "--from", save, "--tokens", "9", "--policy", "thesis",
			"--partition", "2")
		if same != out {
			t.Errorf("%q of standard input, %q of a file", same, out)
		}
		both, _ := predicted(t, exitOK, "--from", save, "--tokens", "9", "b.txt", "a.txt")
		if !strings.HasPrefix(both, "==> b.txt <==\nthe") ||
			!strings.HasSuffix(both, "==> a.txt <==\n"+out) {
			t.Errorf("%q", both)
		}
		drawn := []string{"--from", save, "--tokens", "9", "--temperature", "1.2", "--top-k", "50",
			"--top-p", "0.9", "b.txt", "a.txt", "b.txt", "--json"}
		first, _ := predicted(t, exitOK, append(drawn, "--seed", "4")...)
		alone, _ := predicted(t, exitOK, append(drawn, "--seed", "4", "--batch", "1")...)
		other, _ := predicted(t, exitOK, append(drawn, "--seed", "5")...)
		texts := func(out string) string {
			var all []any
			for _, line := range predictions(t, out)["prediction"] {
				all = append(all, line["text"])
			}
			return fmt.Sprint(all...)
		}
		if texts(first) != texts(alone) || texts(first) == texts(other) {
			t.Errorf("%q, alone %q, of another seed %q", texts(first), texts(alone), texts(other))
		}
		published(t, save, "public-"+blocks)
		for _, path := range []string{"public-" + blocks,
			"public-" + blocks + "/model.safetensors"} {
			got, _ := predicted(t, exitOK, "--from", path, "--tokens", "9", "a.txt")
			if got != out {
				t.Errorf("%s: %q, want %q", path, got, out)
			}
		}
	}
	for args, says := range map[string]string{
		"--from run-gpt2 --temperature 0 --top-k 3": "--temperature 0 draws nothing",
		"--from run-gpt2 --top-p 2":                 "top share",
		"--from run-gpt2 --beam 2":                  "--beam does nothing for gpt",
	} {
		o := invoke(t, append([]string{"predict"}, strings.Fields(args)...)...)
		if o.status != exitUsage || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: %+v", args, o)
		}
	}
	if err := os.Remove("public-gpt2/tokenizer.json"); err != nil {
		t.Fatal(err)
	}
	_, errs := predicted(t, exitFailure, "--from", "public-gpt2", "a.txt")
	if !strings.Contains(errs, "tokenizer.json") || strings.Count(errs, "\n") != 1 {
		t.Errorf("without a tokenizer: %q", errs)
	}
}

// published writes a checkpoint of gpt in public form.
func published(t *testing.T, checkpoint, dir string) {
	t.Helper()
	x, err := openCheckpoint(location(checkpoint))
	if err != nil {
		t.Fatal(err)
	}
	c, err := gptConfig(x.flags)
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.GPT(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := gomem.Compile(t.Context(), m.Graph, gomem.Options{}, train.Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := x.weights()(s, s.Variables()); err != nil {
		t.Fatal(err)
	}
	tokenizer, err := x.tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	config, err := c.PublicConfig(tokenizer.EOS())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/config.json", string(config))
	if err := tokenizer.Save(dir + "/tokenizer.json"); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(dir+"/model.safetensors", gomem.SaveOptions{NoState: true,
		Rename: c.PublicName}); err != nil {
		t.Fatal(err)
	}
}

// picture writes a PNG.
func picture(t *testing.T, path string, width, height int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		img.Set(i%width, i/width, color.RGBA{uint8(3 * i), uint8(i), 7, 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path, b.String())
	return b.Bytes()
}

// TestPredictPictures: pictures of any size, of folders and of standard input, with the
// names of the classes that training had.
func TestPredictPictures(t *testing.T) {
	inDir(t)
	trained(t, "resnet", "--data", pictured(t, "set", 60, "cats", "dogs", "ducks"), "--steps", "2")
	content := picture(t, "some/one.png", 100, 40)
	picture(t, "some/two.png", 9, 70)
	write(t, "some/notes.txt", "no picture")
	out, errs := predicted(t, exitOK, "--from", "resnet", "some", "--top", "3")
	if strings.Count(out, "\n") != 8 || !strings.HasPrefix(out, "some/one.png\n  ") || errs != "" {
		t.Errorf("%q, %q", out, errs)
	}
	from(t, content)
	alone, _ := predicted(t, exitOK, "--from", "resnet", "--json")
	line := predictions(t, alone)["prediction"][0]
	shares := line["classes"].([]any)
	if line["input"] != "-" || len(shares) != 4 { // three kinds, and the background
		t.Errorf("%v", line)
	}
	names := map[any]bool{}
	var all float64
	out, _ = predicted(t, exitOK, "--from", "resnet", "--json", "--top", "1000", "some/one.png")
	for _, s := range predictions(t, out)["prediction"][0]["classes"].([]any) {
		share := s.(map[string]any)
		names[share["name"]] = true
		all += share["share"].(float64)
	}
	if !names["cats"] || !names["dogs"] || !names["ducks"] || math.Abs(all-1) > 1e-6 {
		t.Errorf("%v, sum %v", names, all)
	}
	out, errs = predicted(t, exitFailure, "--from", "resnet", "some/notes.txt", "some/one.png",
		"nowhere", "set")
	if strings.Count(out, "%  ") != 4 || strings.Count(errs, "\n") != 3 {
		t.Errorf("%q, %q", out, errs)
	}
}

// recording writes a WAV file of so many samples.
func recording(t *testing.T, path string, samples int) []byte {
	t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("RIFF"), uint32(36+2*samples))
	b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
	b = le.AppendUint16(le.AppendUint16(b, 1), 1)
	b = le.AppendUint32(le.AppendUint32(b, 16000), 32000)
	b = le.AppendUint16(le.AppendUint16(b, 2), 16)
	b = le.AppendUint32(append(b, "data"...), uint32(2*samples))
	for i := range samples {
		b = le.AppendUint16(b, uint16(int16(9000*math.Sin(float64(i*i)/90000))))
	}
	write(t, path, string(b))
	return b
}

// TestPredictSpeech: recordings, longer than in training too.
func TestPredictSpeech(t *testing.T) {
	inDir(t)
	trained(t, "deepspeech", "--steps", "5", "--data", spoken(t, "list.csv", 120))
	content := recording(t, "a.wav", 20000)
	recording(t, "long.wav", 60000)
	out, errs := predicted(t, exitFailure, "--from", "deepspeech", "a.wav", "pairs.tsv", "long.wav")
	if !strings.HasPrefix(out, "a.wav: ") || !strings.Contains(out, "\nlong.wav: ") ||
		!strings.Contains(errs, "pairs.tsv: not a WAV file") || strings.Count(errs, "\n") != 1 {
		t.Errorf("%q, %q", out, errs)
	}
	from(t, content)
	alone, _ := predicted(t, exitOK, "--from", "deepspeech", "--json", "--beam", "4")
	line := predictions(t, alone)["prediction"][0]
	if line["input"] != "-" || math.Abs(line["seconds"].(float64)-1.25) > 0.02 {
		t.Errorf("%v", line)
	}
	if _, errs := predicted(t, exitFailure, "--from", "deepspeech", "pairs.tsv"); errs == "" {
		t.Error("nothing to transcribe is passed over in silence")
	}
}

// TestPredictSamples: what is drawn first is what training showed, in a grid or a file
// each.
func TestPredictSamples(t *testing.T) {
	inDir(t)
	trained(t, "wgan", "--steps", "1", "--samples", "shown")
	out, _ := predicted(t, exitOK, "--from", "wgan", "--samples", "4")
	got, err := os.ReadFile("samples.png")
	want, err2 := os.ReadFile("shown/step-000001.png")
	if err != nil || err2 != nil || !bytes.Equal(got, want) || out != "samples.png\n" {
		t.Errorf("%v, %v, %q: other samples than in training", err, err2, out)
	}
	out, _ = predicted(t, exitOK, "--from", "wgan", "--samples", "3", "--out", "some/dir", "--seed",
		"9", "--json")
	if len(predictions(t, out)["prediction"][0]["files"].([]any)) != 3 ||
		files(t, "some/dir") != "sample-0001.png sample-0002.png sample-0003.png" {
		t.Errorf("%q, %q", out, files(t, "some/dir"))
	}
	write(t, "file", "")
	o := invoke(t, "predict", "--from", "wgan", "--out", "file/x.png")
	if o.status != exitFailure ||
		!strings.Contains(o.stderr, "file/x.png") || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("%+v", o)
	}
}

// TestPredictRefuses: command lines and checkpoints that make no sense.
func TestPredictRefuses(t *testing.T) {
	inDir(t)
	trained(t, "transformer", "--data", "tsv:pairs.tsv", "--steps", "1")
	path := "transformer/step-00000001.safetensors"
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, "torn.safetensors", string(content[:len(content)-9]))
	broken := bytes.Clone(content)
	for i := len(broken) / 2; i < len(broken); i += 999 { // somewhere in every large variable
		broken[i] ^= 1
	}
	write(t, "broken.safetensors", string(broken))
	described(t, path, "stranger.safetensors", map[string]string{"gomem.model": "oracle"})
	described(t, path, "mute.safetensors", map[string]string{"gomem.tokenizer": ""})
	described(t, path, "garbled.safetensors", map[string]string{"gomem.tokenizer": "no bpe"})
	described(t, path, "deeper.safetensors", map[string]string{
		"gomem.config": `{"depth":"3","batch":"4","length":"16"}`})
	described(t, path, "odd.safetensors", map[string]string{
		"gomem.config": `{"depth":"many"}`})
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"", 2, "--from"},
		{"--from", 2, "--from"},
		{"--from=", 2, "it is empty"},
		{"--from nowhere", 1, "checkpoint nowhere: no such file"},
		{"--from pairs.tsv", 1, "checkpoint pairs.tsv"},
		{"--from torn.safetensors", 1, "checkpoint torn.safetensors"},
		{"--from broken.safetensors pairs.tsv", 1, "checkpoint broken.safetensors"},
		{"--from stranger.safetensors", 1, `it is of a model "oracle"`},
		{"--from mute.safetensors", 1, "it has no tokenizer"},
		{"--from garbled.safetensors", 1, "the vocabulary is damaged"},
		{"--from deeper.safetensors", 1, "is missing in the checkpoint"},
		{"--from odd.safetensors", 1, `depth "many"`},
		{"--from transformer --samples 3", 2, "--samples does nothing for transformer"},
		{"--from transformer --temperature 1", 2, "--temperature does nothing"},
		{"--from transformer --length-penalty 1", 2, "without --beam"},
		{"--from transformer --beam 2 --length-penalty -1", 2, "length penalty"},
		{"--from transformer --beam 5000", 2, "beam of 5000"},
		{"--from transformer --beam 0", 2, "--beam"},
		{"--from transformer --batch 0", 2, "--batch"},
		{"--from transformer --device null", 2, "computes nothing"},
		{"--from transformer --policy thesis --device-memory 10KiB", 1, "device memory"},
		{"--from transformer --policy fast", 2, "--policy"},
	} {
		o := invoke(t, append([]string{"predict"}, strings.Fields(c.args)...)...)
		if o.status != c.status || !strings.Contains(o.stderr, c.says) || o.stdout != "" ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("predict %s: %+v, want %d and %q", c.args, o, c.status, c.says)
		}
	}
}

// described copies a checkpoint, with another description.
func described(t *testing.T, path, to string, changes map[string]string) {
	t.Helper()
	in, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	metadata := maps.Clone(in.Metadata())
	maps.Copy(metadata, changes)
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	err = safetensors.WriteSealed(out, in.Entries(), metadata,
		safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
			v, err := in.Get(e.Name)
			return v.Data, err
		}))
	if err != nil {
		t.Fatal(err)
	}
}

// TestFlagsOf: a checkpoint's description leads back to its model.
func TestFlagsOf(t *testing.T) {
	for _, args := range []string{
		"moe --experts 4 --expert-hidden 12 --moe sparse --stacked --depth 1 --length 10 --fine",
		"moe", "transformer --depth 3 --batch 2",
		"resnet --blocks 1,2,1,1 --version v2 --pixels 40",
		"resnet --depth 26", "resnet", "wgan --nets good", "wgan --pixels 32", "deepspeech",
		"deepspeech --rnn unrolled --length 30", "gpt --length 20 --depth 1", "gpt --blocks llama",
		"topic --topics 40 --vocabulary 300 --batch 3",
		"lstm-lm --length 12 --depth 2 --dropout 0.1 --vocabulary 300",
	} {
		var c cli
		parser, err := kong.New(&c, kong.NoDefaultHelp(), kong.PostBuild(describe), enums)
		if err != nil {
			t.Fatal(err)
		}
		words := append([]string{"train", "--size", "s512", "--model"}, strings.Fields(args)...)
		if _, err := parser.Parse(words); err != nil {
			t.Fatal(err)
		}
		want, err := c.Train.build(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		flags, err := flagsOf(train.Checkpoint{Model: want.model.Name, Size: want.model.Size,
			Config: want.numbers})
		if err != nil {
			t.Fatal(err)
		}
		got, err := flags.build(io.Discard)
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if got.model.Graph.Digest() != want.model.Graph.Digest() {
			t.Errorf("%s: another graph by %v", args, want.numbers)
		}
	}
}

// TestLineReader: lines come as they are written, and files do not wait for anybody.
func TestLineReader(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	write(t, file, "one\ntwo\n\nfour")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := newLineReader([]string{file, "-", dir}, in, maxLine)
	if _, err := out.WriteString("five\nsix\nsev"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, want := range []int{3, 1} {
		for _, q := range r.next(3)[:want] {
			got = append(got, fmt.Sprint(q.Line, q.Value, q.Err))
		}
	}
	if s := strings.Join(got, " "); s != "1one<nil> 2two<nil> 3<nil> 4four<nil>" {
		t.Errorf("%q", s)
	}
	if some := r.next(9); len(some) != 2 || some[1].Value != "six" {
		t.Errorf("%v", some)
	}
	go func() { // a pipe has not room for all of it
		defer out.Close()
		long := strings.Repeat("x", maxLine+1)
		if _, err := out.WriteString("en\n" + long + "\nend"); err != nil {
			t.Error(err)
		}
	}()
	var rest []question[string]
	for some := r.next(4); len(some) > 0; some = r.next(4) {
		rest = append(rest, some...)
	}
	if len(rest) != 4 || rest[0].Value != "seven" || rest[1].Err == nil ||
		rest[2].Value != "end" || rest[3].Err == nil || rest[3].Input != dir {
		t.Errorf("%v", rest)
	}
	if text := onLine("a\x1b[2Jb\nc"); text != "a [2Jb c" {
		t.Errorf("%q", text)
	}
}
