package main

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/examples/internal/check"
)

// text is one that a search goes on with.
type text struct {
	letters string
	score   float32
}

func (t text) ended() bool { return strings.HasSuffix(t.letters, ".") }

// longer are the texts that are a letter longer than some, the likeliest first.
func longer(table []float32, texts []text) (out []text) {
	for _, t := range texts {
		before := "  " + t.letters
		a := strings.IndexByte(alphabet, before[len(before)-2])
		b := strings.IndexByte(alphabet, before[len(before)-1])
		for c, p := range table[(a*vocab+b)*vocab:][:vocab] {
			out = append(out, text{t.letters + alphabet[c:c+1], t.score + p})
		}
	}
	return sorted(out)
}

func sorted(texts []text) []text {
	slices.SortStableFunc(texts, func(a, b text) int { return cmp.Compare(b.score, a.score) })
	return texts
}

// TestBeam: the program is short; its texts and scores are those of the same search in plain Go,
// to the bit; and the likeliest is the likeliest of all texts.
func TestBeam(t *testing.T) {
	check.Lines(t, 100)
	out, err := run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table, want, steps := model().F32(), []text{{}}, 0
	for ; slices.ContainsFunc(want, func(t text) bool { return !t.ended() }); steps++ {
		want = longer(table, want)[:beams]
	}
	for i, w := range want {
		got := text{spelt(out[0].I32()[i*room:][:room]), out[1].F32()[i]}
		if w.letters = strings.TrimRight(w.letters, "."); got != w {
			t.Errorf("beam %d is %v, want %v", i, got, w)
		}
	}
	if got := int(out[2].I32()[0]); got != steps {
		t.Errorf("%d steps, want %d", got, steps)
	}
	// No letter makes a text likelier, so a search of all texts, always from the likeliest one
	// on, is over where that has ended.
	all := []text{{}}
	for !all[0].ended() {
		all = sorted(append(longer(table, all[:1]), all[1:]...))
	}
	if all[0].score != want[0].score {
		t.Errorf("the best is %v, and a better text %v", want[0], all[0])
	}
}
