package speech

import (
	"fmt"
	"strings"
	"unicode"
)

// Alphabet is what is read, in the order of its labels from 0: that of
// DeepSpeech's alphabet.txt.
const Alphabet = " abcdefghijklmnopqrstuvwxyz'"

// Symbols is the number of labels and of the blank, which is the last symbol.
const Symbols = len(Alphabet) + 1

// silent are the marks that a transcript loses: a reader does not hear them.
const silent = `.,;:!?()[]"` + "`“”„…"

// normalise brings a transcript to Alphabet: lower case, without punctuation,
// words apart by one space and so by hyphens and dashes. It refuses what is read
// out in other letters, such as digits.
func normalise(transcript string) (string, error) {
	var b strings.Builder
	for _, r := range strings.ToLower(transcript) {
		switch {
		case r == '’' || r == '‘':
			b.WriteByte('\'')
		case unicode.IsSpace(r) || r == '-' || r == '–' || r == '—':
			b.WriteByte(' ')
		case strings.ContainsRune(Alphabet, r):
			b.WriteRune(r)
		case !strings.ContainsRune(silent, r):
			return "", fmt.Errorf("transcript with %q: write it with the letters a to z, spaces "+
				"and apostrophes", r)
		}
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	if strings.Trim(text, "' ") == "" {
		return "", fmt.Errorf("transcript without a letter: write what is said, or remove the line")
	}
	return text, nil
}

// labels gives the labels of a normalised text.
func labels(text string) []int32 {
	out := make([]int32, len(text))
	for i := range out {
		out[i] = int32(strings.IndexByte(Alphabet, text[i]))
	}
	return out
}

// Text gives the text of labels; it leaves out what is none, such as the blank.
func Text(labels []int32) string {
	text := make([]byte, 0, len(labels))
	for _, l := range labels {
		if l >= 0 && int(l) < len(Alphabet) {
			text = append(text, Alphabet[l])
		}
	}
	return string(text)
}

// framesFor is the fewest frames in which a text can be read: one a symbol, and a
// blank between equal ones.
func framesFor(text string) int {
	n := len(text)
	for i := range max(0, len(text)-1) {
		if text[i] == text[i+1] {
			n++
		}
	}
	return n
}
