package command

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// replaced writes a file with one text in it changed.
func replaced(t *testing.T, file, from, to string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%s has no %s: %v", file, from, err)
	}
	write(t, file, strings.Replace(string(text), from, to, 1))
}

// TestPublicCheckpoint: a public checkpoint is evaluated on any text, in windows that fit it;
// what ends a text and what was passed over is what its files say; and a run that begins with
// it has its network.
func TestPublicCheckpoint(t *testing.T) {
	inDir(t)
	trained(t, "gpt", "--data", "text:pairs.tsv", "--steps", "20", "--save", "run")
	succeed(t, "export", "--from", "run", "published")
	loss := func(from, data string, more ...string) map[string]any {
		return evaluation(t, append([]string{"--from", from, "--data", "text:" + data}, more...)...)
	}
	write(t, "short.txt", "the number 5\n")
	short, long := loss("published", "short.txt"), loss("published", "pairs.tsv")
	if short["batches"] != 1.0 || short["units"].(float64) > 12 || long["whole"] != true ||
		long["units"].(float64) < 1000 || long["step"] != 0.0 {
		t.Errorf("%v, %v", short, long)
	}
	run := loss("run", "short.txt")
	if n := run["units"].(float64) - 1; n != short["units"] { // its documents end with one more
		t.Errorf("%v tokens as a run's, %v as others have them", n, short["units"])
	}
	perplexity := short["metrics"].(map[string]any)["perplexity"].(float64)
	if want := math.Exp(short["loss"].(float64)); math.Abs(perplexity-want) > 1e-3*want {
		t.Errorf("perplexity %v of loss %v", perplexity, short["loss"])
	}
	again := loss("published", "pairs.tsv", "--policy", "thesis")
	if again["loss"] != long["loss"] {
		t.Errorf("%v under another plan, %v", again["loss"], long["loss"])
	}
	out := succeed(t, "eval", "--from", "published", "--data", "text:short.txt")
	if !strings.Contains(out, "public checkpoint\n") || !strings.Contains(out, "\nloss  ") {
		t.Errorf("%q", out)
	}
	write(t, "one.txt", "t")
	write(t, "a.txt", "the number")
	for args, c := range map[string]struct {
		status int
		says   string
	}{
		"":                     {2, "--data is missing"},
		"--bleu 1":             {2, "--bleu does nothing for gpt"},
		"--data tsv:pairs.tsv": {2, "is not for --model gpt"},
		"--data text:none":     {1, "none: no such file"},
		"--data text:one.txt":  {1, "single token"},
		"--data text:short.txt --device-memory 9KiB": {1, "device memory"},
	} {
		o := invoke(t, append([]string{"eval", "--from", "published"}, strings.Fields(args)...)...)
		if o.status != c.status || !strings.Contains(o.stderr, c.says) ||
			strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: %+v", args, o)
		}
	}
	got, errs := predicted(t, exitOK, "--from", "published", "--tokens", "4", "--json", "a.txt")
	first := predictions(t, got)["prediction"][0]
	if first["ended"] != false || errs != "" {
		t.Fatalf("%v, %q", first, errs)
	}
	ends := idsOf(t, "published", first["text"].(string))[:1]
	replaced(t, "published/config.json", `"eos_token_id"`, `"zeta":1,"was"`)
	write(t, "published/generation_config.json", fmt.Sprintf(`{"eos_token_id":%d}`, ends[0]))
	got, errs = predicted(t, exitOK, "--from", "published", "--tokens", "4", "--json", "a.txt")
	last := predictions(t, got)["prediction"][0]
	if last["ended"] != true || last["tokens"] != 0.0 ||
		errs != "gomem: published: config.json: nothing is known of was, zeta\n" {
		t.Errorf("%v, %q", last, errs)
	}
	train := strings.Fields("train --model gpt --size s512 --steps 1 --data text:pairs.tsv " +
		"--init published")
	if o := invoke(t, append(train, "--json")...); o.status != exitOK ||
		!strings.Contains(o.stdout, "nothing is known of was, zeta") {
		t.Errorf("%+v", o)
	}
	if o := invoke(t, append(train, "--depth", "1", "--json")...); o.status != exitOK ||
		!strings.Contains(o.stdout, "16 variables taken, 12 left over (h.1.attn.c_attn.") {
		t.Errorf("%+v", o)
	}
	succeed(t, append(train, "--save", "tuned")...)
	resume := strings.Replace(strings.Join(train, " "), "--init published", "--resume tuned", 1)
	succeed(t, strings.Fields(strings.Replace(resume, "--steps 1", "--steps 2", 1))...)
	succeed(t, "export", "--from", "tuned", "again")
	text, err := os.ReadFile("again/config.json")
	if want := fmt.Sprintf(`"eos_token_id": %d`, ends[0]); err != nil ||
		!strings.Contains(string(text), want) {
		t.Errorf("%s does not say %s: %v", text, want, err)
	}
	replaced(t, "published/config.json", "0.00001", "0.000001")
	if o := invoke(t, train...); o.status != exitFailure || !strings.Contains(o.stderr,
		"a norm's eps: 1e-06, and that of --model gpt has 1e-05: give --network published") {
		t.Errorf("%+v", o)
	}
}

// idsOf are the tokens of a text.
func idsOf(t *testing.T, checkpoint, text string) []int32 {
	t.Helper()
	x, err := openCheckpoint(location(checkpoint))
	if err != nil {
		t.Fatal(err)
	}
	return x.public.Tokenizer.Encode(text)
}
