package data

import (
	"math"
	"regexp"
	"strings"
	"unicode"

	"github.com/gomem/gomem/internal/libm"
)

// BLEU scores translations against references, from 0 to 100: corpus-level BLEU-4
// of Papineni et al. (2002), case-sensitive, with tokens as mteval-v13a has them
// and the exponential smoothing of orders without a match (Chen and Cherry 2014,
// method 3), which is the default of sacreBLEU (Post 2018): signature
// case:mixed, tok:13a, smooth:exp. Each of references has one text for every
// translation.
func BLEU(translations []string, references ...[]string) float64 {
	var s bleuCounts
	for i, translation := range translations {
		var refs [][]string
		for _, r := range references {
			refs = append(refs, tokenize13a(r[i]))
		}
		s.add(tokenize13a(translation), refs)
	}
	return s.score()
}

// bleuOrder is the longest n-gram that counts.
const bleuOrder = 4

// bleuCounts are n-grams of translations, by n−1, and those also in a reference.
type bleuCounts struct {
	all, matched       [bleuOrder]int
	length, references int // tokens
}

func (s *bleuCounts) add(words []string, references [][]string) {
	s.length += len(words)
	s.references += closest(len(words), references)
	most := map[string]int{}
	for _, r := range references {
		for gram, n := range grams(r) {
			most[gram] = max(most[gram], n)
		}
	}
	for gram, n := range grams(words) {
		order := strings.Count(gram, " ")
		s.all[order] += n
		s.matched[order] += min(n, most[gram])
	}
}

// closest is the length of the reference nearest in length, the shorter of two.
func closest(n int, references [][]string) int {
	best := -1
	for _, r := range references {
		d, known := abs(len(r)-n), abs(best-n)
		if best < 0 || d < known || d == known && len(r) < best {
			best = len(r)
		}
	}
	return max(best, 0)
}

func abs(n int) int { return max(n, -n) }

// grams counts the n-grams of words for all n, as words with spaces between.
func grams(words []string) map[string]int {
	counts := map[string]int{}
	for i := range words {
		for n := 1; n <= bleuOrder && i+n <= len(words); n++ {
			counts[strings.Join(words[i:i+n], " ")]++
		}
	}
	return counts
}

// score is the geometric mean of the precisions, times the penalty for brevity.
func (s *bleuCounts) score() float64 {
	if s.matched[0] == 0 {
		return 0
	}
	logs, orders, smooth := 0.0, 0, 1.0
	for n := range bleuOrder {
		if s.all[n] == 0 {
			break
		}
		matched := float64(s.matched[n])
		if matched == 0 {
			smooth *= 2
			matched = 1 / smooth
		}
		logs += libm.Log(matched / float64(s.all[n]))
		orders++
	}
	if orders < bleuOrder {
		return 0
	}
	brevity := math.Min(0, 1-float64(s.references)/float64(s.length))
	return 100 * libm.Exp(brevity+float64(logs/bleuOrder))
}

// The rules of mteval-v13a, in order.
var rules13a = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile("([\\{-\\~\\[-\\` -\\&\\(-\\+\\:-\\@\\/])"), " $1 "},
	{regexp.MustCompile(`([^0-9])([\.,])`), "$1 $2 "},
	{regexp.MustCompile(`([\.,])([^0-9])`), " $1 $2"},
	{regexp.MustCompile(`([0-9])(-)`), "$1 $2 "},
}

// entities13a are replaced one after the other, so that &amp;lt; becomes <.
var entities13a = [][2]string{{"<skipped>", ""}, {"-\n", ""}, {"\n", " "}, {"&quot;", `"`},
	{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}}

func tokenize13a(text string) []string {
	for _, e := range entities13a {
		text = strings.ReplaceAll(text, e[0], e[1])
	}
	text = " " + text + " "
	for _, r := range rules13a {
		text = r.find.ReplaceAllString(text, r.put)
	}
	return strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f // as Python has it
	})
}
