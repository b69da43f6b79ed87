package speech

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/libm"
)

// DecodeBeam is [Letters.Decode] by the text that is the likeliest, rather than by the
// likeliest sequence of symbols: a text is read by every sequence that it is left of
// without repetitions and blanks, and their probabilities add up. The search is
// Hannun et al.'s (2014) over prefixes, of which it keeps so many; there is no language
// model. A beam of 1 or less is Decode.
func (l Letters) DecodeBeam(logits tensor.View, frames []int32, beam int) ([]string, error) {
	greedy, err := l.Decode(logits, frames)
	if err != nil || beam <= 1 {
		return greedy, err
	}
	if beam > maxBeam {
		return nil, fmt.Errorf("beam of %d: want 1 to %d", beam, maxBeam)
	}
	texts := make([]string, len(frames))
	inParallel(len(frames), func(k int) {
		rows := make([][]float64, frames[k])
		for f := range rows {
			rows[f] = logShares(logits.F32()[(f*len(frames)+k)*l.Symbols():][:l.Symbols()])
		}
		texts[k] = l.searchPrefixes(rows, beam)
	})
	return texts, nil
}

const maxBeam = 1 << 12

// logShares are the logarithms of a softmax.
func logShares(logits []float32) []float64 {
	most := float64(slices.Max(logits))
	sum := 0.0
	for _, x := range logits {
		sum += libm.Exp(float64(x) - most)
	}
	out := make([]float64, len(logits))
	for i, x := range logits {
		out[i] = float64(x) - most - libm.Log(sum)
	}
	return out
}

// prefix is a text so far, with the logarithms of the probabilities of the sequences
// for it: those that end in a blank, and those that end in its last letter.
type prefix struct {
	text          string
	blank, letter float64
}

// total is the logarithm of the probability of the text.
func (p prefix) total() float64 { return addLogs(p.blank, p.letter) }

// searchPrefixes finds a text of logarithms of probabilities, [frames symbols].
func (l Letters) searchPrefixes(rows [][]float64, beam int) string {
	never := math.Inf(-1)
	alive := []prefix{{blank: 0, letter: never}}
	for _, row := range rows {
		next := map[string]*prefix{}
		at := func(text string) *prefix {
			if next[text] == nil {
				next[text] = &prefix{text, never, never}
			}
			return next[text]
		}
		for _, p := range alive {
			l.extend(p, row, at)
		}
		alive = alive[:0]
		for _, p := range next {
			alive = append(alive, *p)
		}
		slices.SortFunc(alive, func(a, b prefix) int {
			return cmp.Or(cmp.Compare(b.total(), a.total()), cmp.Compare(a.text, b.text))
		})
		alive = alive[:min(len(alive), beam)]
	}
	return alive[0].text
}

// extend adds to prefixes what a frame makes of one.
func (l Letters) extend(p prefix, row []float64, at func(text string) *prefix) {
	same := at(p.text)
	same.blank = addLogs(same.blank, p.total()+row[len(l)])
	last, size := utf8.DecodeLastRuneInString(p.text)
	for c, letter := range l {
		from := p.total()
		if size > 0 && last == letter {
			same.letter = addLogs(same.letter, p.letter+row[c]) // it goes on
			from = p.blank                                      // or comes again, after a blank
		}
		longer := at(p.text + string(letter))
		longer.letter = addLogs(longer.letter, from+row[c])
	}
}

// addLogs is the logarithm of the sum of what two logarithms are of.
func addLogs(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + libm.Log1p(libm.Exp(b-a))
}
