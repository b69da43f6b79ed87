package command

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/data/bags"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/safetensors"
)

// TestTopicsAreFound: of drawn documents a model comes to the loss of their noise, and each of its
// topics is one of the dictionary's that they were drawn by: the cosine between the two is more
// than 0.99, and no two are the same one's.
func TestTopicsAreFound(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	const vocab, topics = 256, 32
	_, summary := trainLines(t, succeed(t, "train", "--model", "topic", "--size", "s512", "--steps",
		"3000", "--seed", "5", "--eval-every", "3000", "--save", "run", "--json"))
	noise := vocab * bags.Noise * bags.Noise / 2
	if loss := summary["eval_loss"].(float64); loss > 1.05*noise || loss < 0.8*noise {
		t.Errorf("held-out loss %g, of noise it is %g", loss, noise)
	}
	known := bags.Dictionary(5, vocab, topics)
	taken := map[int]bool{}
	for _, column := range learntTopics(t, "run", vocab) {
		best, at := 0.0, -1
		for k := range topics {
			var product, square float64
			for w, v := range column {
				product += float64(v) * float64(known[w*topics+k])
				square += float64(v) * float64(v)
			}
			if c := product / math.Sqrt(square); c > best {
				best, at = c, k
			}
		}
		if best < 0.99 || taken[at] {
			t.Errorf("a topic is nearest to topic %d, with a cosine of %g; taken %v", at, best,
				taken[at])
		}
		taken[at] = true
	}
	if len(taken) != topics {
		t.Errorf("%d topics are found, of %d", len(taken), topics)
	}
}

// learntTopics are the columns of the dictionary of a run's checkpoint.
func learntTopics(t *testing.T, dir string, vocab int) (columns [][]float32) {
	t.Helper()
	x, err := openCheckpoint(location(dir))
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(x.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"topics/0/weight", "topics/1/weight"} {
		v, err := f.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		all := v.F32()
		n := len(all) / vocab
		for k := range n {
			var column []float32
			for w := range vocab {
				column = append(column, all[w*n+k])
			}
			columns = append(columns, column)
		}
	}
	return columns
}

// TestTopicTogether: workers send each document's vectors in place of dictionaries, whatever the
// scheme, and learn what the noise leaves.
func TestTopicTogether(t *testing.T) {
	inDir(t)
	for _, scheme := range []string{"orpheus", "hybrid", "svb"} {
		o := gather(t, inMemory{}, "train", "--model", "topic", "--size", "s512", "--sync", scheme,
			"--steps", "400", "--local", "2", "--json")
		summary := summaryOf(t, o)
		if loss := summary["eval_loss"].(float64); loss > 0.1 {
			t.Errorf("%s: %g", scheme, loss)
		}
		for _, space := range []string{"device", "host"} {
			if summary["predicted_"+space+"_peak_bytes"] != summary["actual_"+space+"_peak_bytes"] {
				t.Errorf("%s: %s: %v", scheme, space, summary)
			}
		}
		first, _, _ := strings.Cut(o.stdout, "\n")
		if n := strings.Count(first, `"variable":"topics/`); n != 2 {
			t.Errorf("%s: factors of %d parts: %s", scheme, n, first)
		}
	}
}

// TestTopicOfFile: a file's documents give the model as many words as they have, and a run of it
// goes on and is evaluated by what its checkpoint says.
func TestTopicOfFile(t *testing.T) {
	inDir(t)
	var b strings.Builder
	b.WriteString("300\n50\n600\n")
	for i := range 300 {
		for _, word := range slices.Sorted(slices.Values([]int{1 + i%50, 1 + (i+7)%50})) {
			fmt.Fprintln(&b, i+1, word, 1+i%3)
		}
	}
	write(t, "docword.txt", b.String())
	args := []string{"train", "--model", "topic", "--size", "s512", "--topics", "10", "--data",
		"uci:docword.txt", "--save", "run", "--json", "--steps"}
	_, summary := trainLines(t, succeed(t, with(args, "20")...))
	if got := evaluation(t, "--from", "run"); got["loss"] != summary["eval_loss"] {
		t.Errorf("%v, the run had %v", got["loss"], summary["eval_loss"])
	}
	_, longer := trainLines(t, succeed(t, "train", "--resume", "run", "--steps", "40", "--json"))
	_, whole := trainLines(t, succeed(t, with(slices.DeleteFunc(slices.Clone(args),
		func(s string) bool { return s == "--save" || s == "run" }), "40")...))
	if longer["weights_sha256"] != whole["weights_sha256"] {
		t.Error("a run that was resumed has other weights")
	}
	for want, flags := range map[string][]string{
		"--topics is 1":                        {"--topics", "1"},
		"documents of 50 words, the model has": {"--data", "uci:docword.txt", "--vocabulary", "49"},
		"--data glyphs is not for --model":     {"--data", "glyphs"},
		"unknown source: give drawn or uci":    {"--data", "bags:x"},
		"--fine does nothing":                  {"--fine"},
		"--dropout does nothing":               {"--dropout", "0.1"},
	} {
		o := invoke(t, with([]string{"train", "--model", "topic", "--size", "s512"}, flags...)...)
		if o.status == exitOK || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %d %q", flags, o.status, o.stderr)
		}
	}
	if o := invoke(t, "predict", "--from", "run"); o.status == exitOK ||
		!strings.Contains(o.stderr, "nothing can be predicted with topic") {
		t.Errorf("%d %q", o.status, o.stderr)
	}
}
