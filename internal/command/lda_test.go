package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const pets = "The cat and the dog play\nDog, cat: play, play!\n\n" +
	"Stock market falls; stock prices rise\nmarket prices of stock\n"

// epochLines are the lines of epochs that a run shows, and of topics.
func epochLines(stdout string) (lines []string) {
	for _, l := range strings.Split(stdout, "\n") {
		if strings.Contains(l, `"epoch"`) || strings.Contains(l, `"topic"`) {
			lines = append(lines, l)
		}
	}
	return lines
}

// TestLDA: the topics of texts are learnt, and the same after a run that was saved; predict knows
// them, and export writes them.
func TestLDA(t *testing.T) {
	dir := t.TempDir()
	file, run, to := filepath.Join(dir, "a"), filepath.Join(dir, "run"), filepath.Join(dir, "to")
	if err := os.WriteFile(file, []byte(strings.Repeat(pets, 20)), 0o666); err != nil {
		t.Fatal(err)
	}
	command := []string{"train", "--model", "lda", "--topics", "2", "--data", "text:" + file,
		"--eval-data", "text:" + file, "--parts", "2", "--json"}
	whole := invoke(t, append(command, "--epochs", "30")...)
	if whole.status != exitOK || len(epochLines(whole.stdout)) != 32 {
		t.Fatalf("%+v", whole)
	}
	var last struct {
		Likelihood float64 `json:"log_likelihood"`
		Perplexity float64 `json:"test_perplexity"`
	}
	if err := json.Unmarshal([]byte(epochLines(whole.stdout)[29]), &last); err != nil ||
		last.Likelihood >= 0 || !(last.Perplexity > 1 && last.Perplexity < 14) {
		t.Errorf("%+v, %v", last, err)
	}
	half := invoke(t, append(command, "--epochs", "20", "--save", run)...)
	rest := invoke(t, "train", "--resume", run, "--epochs", "30", "--json")
	if half.status != exitOK || !slices.Equal(epochLines(rest.stdout),
		epochLines(whole.stdout)[20:]) {
		t.Errorf("resumed: %+v", rest)
	}
	said := invoke(t, "predict", "--from", run, "--top", "1", file)
	lines := strings.Split(said.stdout, "\n")
	if said.status != exitOK || len(lines) != 101 || lines[0][0] == lines[3][0] ||
		lines[0][0] != lines[1][0] {
		t.Errorf("%+v", said)
	}
	if o := invoke(t, "export", "--from", run, to); o.status != exitOK {
		t.Errorf("%+v", o)
	}
	if words, err := os.ReadFile(filepath.Join(to, "vocab.txt")); err != nil ||
		!strings.HasPrefix(string(words), "the\ncat\nand\ndog\nplay\n") {
		t.Errorf("vocab.txt: %q, %v", words, err)
	}
	for want, args := range map[string][]string{
		"the run there has --topics 2, not 3": {"train", "--resume", run, "--topics", "3",
			"--epochs", "40"},
		"the run there has --alpha 0.1": {"train", "--resume", run, "--alpha", "3",
			"--epochs", "40"},
		"--beam does nothing for lda": {"predict", "--from", run, "--beam", "2", file},
	} {
		if o := invoke(t, args...); o.status == exitOK || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, o, want)
		}
	}
}

// TestLDAServed: a table that workers share comes to topics as well, of what was saved too, and who
// goes on may have another schedule.
func TestLDAServed(t *testing.T) {
	inDir(t)
	write(t, "texts", strings.Repeat(pets, 20))
	command := []string{"train", "--model", "lda", "--topics", "2", "--data", "text:texts",
		"--eval-data", "text:texts", "--parts", "3", "--json",
		"--sync", "bosen", "--staleness", "0"}
	whole := succeed(t, append(command, "--epochs", "30")...)
	var last struct {
		Likelihood float64 `json:"log_likelihood"`
		Perplexity float64 `json:"test_perplexity"`
	}
	lines := epochLines(whole)
	if len(lines) != 33 { // with the beginning, and two topics
		t.Fatalf("%s", whole)
	}
	if err := json.Unmarshal([]byte(lines[30]), &last); err != nil || last.Likelihood >= 0 ||
		!(last.Perplexity > 1 && last.Perplexity < 14) {
		t.Errorf("%+v, %v", last, err)
	}
	succeed(t, append(command, "--epochs", "20", "--save", "run")...)
	rest := succeed(t, "train", "--resume", "run", "--sync", "bosen", "--staleness", "0",
		"--epochs", "30", "--json")
	if got := epochLines(rest); !slices.Equal(got, lines[20:]) {
		t.Errorf("resumed: %v, want %v", got, lines[20:])
	}
	succeed(t, "train", "--resume", "run", "--epochs", "31")
}

// TestLDAReadsCounts reads a directory of the UCI repository.
func TestLDAReadsCounts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"docword.toy.txt": "2\n3\n3\n1 1 5\n1 3 2\n2 2 4\n",
		"vocab.toy.txt":   "red\ngreen\nblue\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o := invoke(t, "train", "--model", "lda", "--data", "uci:"+dir, "--topics", "2", "--epochs",
		"9")
	if o.status != exitOK || !strings.Contains(o.stdout, "11 tokens of 3 words") ||
		!strings.Contains(o.stdout, "red") {
		t.Errorf("%+v", o)
	}
}

func TestLDARefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.txt")
	if err := os.WriteFile(empty, []byte(" \n...\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"want text:FILE":                    {"--data", "foo"},
		"no document has a word":            {"--data", "text:" + empty},
		"70000 topics: want 1 to 65535":     {"--topics", "70000"},
		"9999999 parts: want 1 to 4096":     {"--parts", "9999999"},
		"--lr does nothing for --model lda": {"--lr", "1"},
		"--filter does nothing":             {"--filter", "fp16"},
		"averages and sums at barriers":     {"--sync", "easgd"},
		"a rule that does more than add":    {"--sync", "bosen", "--rule", "adam"},
		"--disk does nothing with --sync":   {"--sync", "bosen", "--disk", "."},
		"--threads does nothing with":       {"--sync", "bsp", "--threads", "2"},
		"--block-tokens does nothing with":  {"--sync", "bsp", "--block-tokens", "2"},
		"would round the topics of words":   {"--sync", "ssp", "--filter", "fp16", "--save", empty},
	} {
		args = append([]string{"train", "--model", "lda", "--epochs", "1"}, args...)
		if o := invoke(t, args...); o.status == exitOK || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, o, want)
		}
	}
	for want, args := range map[string][]string{
		"--alpha does nothing for --model mf": {"--model", "mf", "--alpha", "1"},
		"--parts does nothing":                {"--model", "moe", "--parts", "2"},
	} {
		if o := invoke(t, append([]string{"train"}, args...)...); o.status == exitOK ||
			!strings.Contains(o.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, o, want)
		}
	}
}

// TestLDASpoilt: a directory that names fewer words than its table has is refused.
func TestLDASpoilt(t *testing.T) {
	inDir(t)
	write(t, "texts", strings.Repeat(pets, 3))
	succeed(t, "train", "--model", "lda", "--topics", "2", "--data", "text:texts", "--epochs", "1",
		"--save", "run")
	about := filepath.Join("run", "run.json")
	text, err := os.ReadFile(about)
	if err != nil {
		t.Fatal(err)
	}
	write(t, about, strings.Replace(string(text), `"cat",`, "", 1))
	o := invoke(t, "predict", "--from", "run", "texts")
	if o.status != exitFailure || !strings.Contains(o.stderr, "words have names, of ") {
		t.Errorf("%+v", o)
	}
}
