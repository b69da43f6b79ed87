package speech

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph/tensor"
)

// Decode reads the logits f32[T B symbols] of utterances with so many frames, of a model of
// these letters: the likeliest symbol of every frame, without repetitions, then without
// blanks. It searches for no better reading that several sequences of symbols share.
func (l Letters) Decode(logits tensor.View, frames []int32) ([]string, error) {
	t, symbols := logits.Type, l.Symbols()
	if t.DType != tensor.F32 || t.Rank() != 3 || t.Size(1) != len(frames) || t.Size(2) != symbols {
		return nil, fmt.Errorf("logits are %s, want f32[frames %d %d]", t, len(frames), symbols)
	}
	texts := make([]string, len(frames))
	for k, n := range frames {
		if n < 0 || int(n) > t.Size(0) {
			return nil, fmt.Errorf("utterance %d has %d frames, want 0 to %d", k, n, t.Size(0))
		}
		read := make([]int32, n)
		for f := range read {
			row := logits.F32()[(f*len(frames)+k)*symbols:][:symbols]
			read[f] = int32(slices.Index(row, slices.Max(row)))
		}
		texts[k] = l.Text(slices.Compact(read))
	}
	return texts, nil
}

// CER is the character error rate of texts: the insertions, deletions and
// substitutions that make them what is wanted, over the characters wanted, without the space
// around a text: that of jiwer. A character is a code point of Unicode. It is 0
// if no character is wanted and none is there, and may exceed 1. Texts beyond those
// wanted do not count.
func CER(texts, wanted []string) float64 {
	edits, characters := 0, 0
	for i, want := range wanted {
		want, have := []rune(strings.TrimSpace(want)), []rune(nil)
		if i < len(texts) {
			have = []rune(strings.TrimSpace(texts[i]))
		}
		edits += distance(have, want)
		characters += len(want)
	}
	return float64(edits) / float64(max(1, characters))
}

// distance is the edit distance of Levenshtein (1966), a row of the table at a
// time.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
