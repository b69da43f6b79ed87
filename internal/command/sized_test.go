package command

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestVocabularyIsWhatWasLearnt: of a text with few sub-words, a model with as many is
// trained, resumed, and used.
func TestVocabularyIsWhatWasLearnt(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	var small strings.Builder
	for i := range 90 {
		fmt.Fprintf(&small, "the number %d\tdie Nummer %d\n", 10+i, 10+i)
	}
	write(t, "small.tsv", small.String())
	args := []string{"train", "--model", "transformer", "--size", "s512", "--data",
		"tsv:small.tsv", "--eval-batches", "1", "--bleu", "0"}
	for _, c := range []struct {
		flags []string
		words int
	}{{nil, 0}, {[]string{"--vocabulary", "300"}, 300}} {
		dir := fmt.Sprint("run", c.words)
		flags := append(append([]string{}, args...), c.flags...)
		text := succeed(t, append(flags, "--steps", "2", "--save", dir)...)
		_, rest, _ := strings.Cut(text, "vocabulary")
		var words int
		if _, err := fmt.Sscan(rest, &words); err != nil || words >= 528 || words < 260 ||
			c.words > 0 && words != c.words {
			t.Errorf("%d sub-words, %v\n%s", words, err, text)
		}
		if strings.Contains(text, fmt.Sprint(grouped(int64(528*32)))) {
			t.Errorf("the embedding has room for the size's sub-words:\n%s", text)
		}
		succeed(t, append(flags, "--steps", "3", "--resume", dir)...)
		succeed(t, "eval", "--from", dir, "--data", "tsv:small.tsv")
		o := invoke(t, append(flags, "--steps", "4", "--resume", dir, "--dropout", "0.5")...)
		if o.status != exitFailure || !strings.Contains(o.stderr, "dropout") {
			t.Errorf("with another dropout: %+v", o)
		}
	}
}

// TestAnyNumberOfKinds: a classifier has as many classes as its pictures have kinds, few
// or more than its size would have.
func TestAnyNumberOfKinds(t *testing.T) {
	longtest.Skip(t)
	inDir(t)
	for _, kinds := range []int{3, 200} {
		dir := fmt.Sprint("kinds", kinds)
		for k := range kinds {
			if err := os.MkdirAll(fmt.Sprintf("%s/kind%03d", dir, k), 0o777); err != nil {
				t.Fatal(err)
			}
			for i := range max(1, 30/kinds) {
				img := image.NewGray(image.Rect(0, 0, 4, 4))
				img.SetGray(k%4, k/4%4, color.Gray{Y: uint8(100 + k + i)})
				var b bytes.Buffer
				if err := png.Encode(&b, img); err != nil {
					t.Fatal(err)
				}
				write(t, fmt.Sprintf("%s/kind%03d/%d.png", dir, k, i), b.String())
			}
		}
		args := []string{"train", "--model", "resnet", "--size", "s512", "--data", "dir:" + dir,
			"--eval-batches", "1"}
		succeed(t, append(args, "--steps", "1", "--save", "run"+dir)...)
		succeed(t, append(args, "--steps", "2", "--resume", "run"+dir)...)
		p := invoke(t, "predict", "--from", "run"+dir, dir+"/kind001/0.png")
		if p.status != exitOK || !strings.Contains(p.stdout, "kind0") {
			t.Errorf("of %d kinds, predict says %+v", kinds, p)
		}
	}
	o := invoke(t, "train", "--model", "resnet", "--size", "s512", "--data", "dir:kinds3",
		"--classes", "3", "--steps", "1")
	if o.status != exitFailure || !strings.Contains(o.stderr, "3 kinds of images and the backgr") {
		t.Errorf("too few classes: %+v", o)
	}
}
