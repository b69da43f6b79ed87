package speech

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Alphabet is what is read of English, in the order of its labels from 0: that of
// DeepSpeech's alphabet.txt. Every set of letters begins with it.
const Alphabet = " abcdefghijklmnopqrstuvwxyz'"

// Symbols is the number of labels of English and of the blank, which is the last symbol.
const Symbols = len(Alphabet) + 1

// Letters are what a model reads, in the order of their labels from 0: those of [Alphabet],
// and behind them what else the transcripts are written with.
type Letters []rune

// English is [Alphabet] alone.
func English() Letters { return Letters(Alphabet) }

// LettersOf are letters by their names; no names are English.
func LettersOf(names []string) (Letters, error) {
	if len(names) == 0 {
		return English(), nil
	}
	var l Letters
	for _, name := range names {
		r, n := utf8.DecodeRuneInString(name)
		if n != len(name) || r == utf8.RuneError || slices.Contains(l, r) {
			return nil, fmt.Errorf("letters that are not one each, such as %.20q", name)
		}
		l = append(l, r)
	}
	return l, nil
}

// Names are what [LettersOf] makes the letters of; nil of English.
func (l Letters) Names() []string {
	if string(l) == Alphabet {
		return nil
	}
	names := make([]string, len(l))
	for i, r := range l {
		names[i] = string(r)
	}
	return names
}

// Symbols is the number of labels and of the blank, which is the last symbol.
func (l Letters) Symbols() int { return len(l) + 1 }

// with are the letters with those of a text behind them, in their order.
func (l Letters) with(further map[rune]bool) Letters {
	out := slices.Clone(l)
	for r := range further {
		if !slices.Contains(l, r) {
			out = append(out, r)
		}
	}
	slices.Sort(out[len(l):])
	return out
}

// labels gives the labels of a normalised text of these letters.
func (l Letters) labels(text string) []int32 {
	out := make([]int32, 0, len(text))
	for _, r := range text {
		out = append(out, int32(slices.Index(l, r)))
	}
	return out
}

// Text gives the text of labels; it leaves out what is none, such as the blank.
func (l Letters) Text(labels []int32) string {
	text := make([]rune, 0, len(labels))
	for _, label := range labels {
		if label >= 0 && int(label) < len(l) {
			text = append(text, l[label])
		}
	}
	return string(text)
}

// silent are the marks that a transcript loses: a reader does not hear them. Of English
// sentences that are found somewhere, those with the further ones are left out.
const (
	silent  = `.,;:!?()[]"` + "`“”„…"
	further = "«»‹›‚¿¡·、。，！？：；「」『』《》（）"
)

// normalise brings a transcript to letters: lower case, composed (Unicode's form NFC),
// without punctuation, words apart by one space and so by hyphens and dashes. It refuses
// what is read out in other letters, such as digits, and what is English all but
// [Alphabet].
func normalise(transcript string, english bool) (string, error) {
	var b strings.Builder
	for _, r := range norm.NFC.String(strings.ToLower(transcript)) {
		switch {
		case r == '’' || r == '‘':
			b.WriteByte('\'')
		case unicode.IsSpace(r) || r == '-' || r == '–' || r == '—':
			b.WriteByte(' ')
		case strings.ContainsRune(Alphabet, r):
			b.WriteRune(r)
		case strings.ContainsRune(silent, r):
		case english:
			return "", fmt.Errorf("transcript with %q: write it with the letters a to z, spaces "+
				"and apostrophes", r)
		case unicode.IsLetter(r) || unicode.IsMark(r):
			b.WriteRune(r)
		case !strings.ContainsRune(further, r):
			return "", fmt.Errorf("transcript with %q: write it as it is said, with letters, "+
				"spaces and apostrophes", r)
		}
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	if strings.Trim(text, "' ") == "" {
		return "", fmt.Errorf("transcript without a letter: write what is said, or remove the line")
	}
	return text, nil
}

// framesFor is the fewest frames in which a text can be read: one a symbol, and a
// blank between equal ones.
func framesFor(text string) int {
	n, last := 0, rune(-1)
	for _, r := range text {
		n++
		if r == last {
			n++
		}
		last = r
	}
	return n
}
