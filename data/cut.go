package data

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cut says how text is cut into the chunks that merges never cross.
type cut uint8

const (
	byClass  cut = iota // runs of one class of bytes, of 64 bytes at most
	byGPT2              // as GPT-2 does
	byTriple            // as GPT-4 and LLaMA 3 do: numbers by three digits
	byDigit             // the same, digit by digit, as Qwen 2 does
	numerals            // numbers from what is around them, as SmolLM does
	digits              // each digit alone
	uncut               // not at all
)

// patterns are the regular expressions that the methods of cut compute; they
// look ahead, which those of Go cannot.
var patterns = [...]string{
	byGPT2:   `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	byTriple: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + modernRest,
	byDigit:  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + modernRest,
}

const modernRest = ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// next returns the length of the chunk that text, which is not empty, begins
// with.
func (c cut) next(text string) int {
	switch c {
	case byGPT2:
		return nextGPT2(text)
	case byTriple:
		return nextModern(text, 3)
	case byDigit:
		return nextModern(text, 1)
	case numerals:
		return nextNumeral(text, len(text))
	case digits:
		return nextNumeral(text, 1)
	case uncut:
		return len(text)
	}
	return nextChunk(text)
}

// nextNumeral is a run of numbers, of most characters at most, or what is before one.
func nextNumeral(text string, most int) int {
	if n := runOf(text, numeral, most); n > 0 {
		return n
	}
	if at := strings.IndexFunc(text, unicode.IsNumber); at >= 0 {
		return at
	}
	return len(text)
}

// nextGPT2 is the first match of GPT-2's pattern.
func nextGPT2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	start := 0
	if text[0] == ' ' && len(text) > 1 {
		start = 1
	}
	class, _ := kindAt(text[start:])
	if class == blank {
		return blanks(text)
	}
	return start + runOf(text[start:], class, len(text))
}

// nextModern is the first match of the pattern of GPT-4 and its followers.
func nextModern(text string, digits int) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	class, size := kindAt(text)
	if class == numeral {
		return runOf(text, numeral, digits)
	}
	if class == letters {
		return runOf(text, letters, len(text))
	}
	if n := runOf(text[size:], letters, len(text)); n > 0 && text[0] != '\r' && text[0] != '\n' {
		return size + n
	}
	if text[0] == ' ' && runOf(text[1:], other, 1) > 0 {
		class, size = other, 1
	}
	if class == other {
		n := size + runOf(text[size:], other, len(text))
		return n + len(text[n:]) - len(strings.TrimLeft(text[n:], "\r\n"))
	}
	run := runOf(text, blank, len(text))
	if end := strings.LastIndexAny(text[:run], "\r\n"); end >= 0 {
		return end + 1
	}
	return blanks(text)
}

// contractions are the endings that are chunks of their own.
var contractions = [...]string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

// contraction is the length of the contraction that text begins with, 0 for
// none.
func contraction(text string, anyCase bool) int {
	if text[0] != '\'' {
		return 0
	}
	for _, c := range contractions {
		n := len(c)
		if anyCase {
			n = runesLength(text, len(c))
		}
		if n <= len(text) && (text[:n] == c || anyCase && strings.EqualFold(text[:n], c)) {
			return n
		}
	}
	return 0
}

// runesLength is the length of the first n characters of text.
func runesLength(text string, n int) int {
	size := 0
	for range n {
		_, one := utf8.DecodeRuneInString(text[size:])
		size += one
	}
	return size
}

// blanks is what is left of white space: all of it but the last character,
// which belongs to what follows, if something does and there are two.
func blanks(text string) int {
	run := runOf(text, blank, len(text))
	if run == len(text) {
		return run
	}
	_, last := utf8.DecodeLastRuneInString(text[:run])
	if last == run {
		return run
	}
	return run - last
}

// kindOf groups characters as the patterns do.
type kindOf uint8

const (
	other   kindOf = iota // also a byte that is no character
	letters               // \p{L}
	numeral               // \p{N}
	blank                 // \s
)

// kindAt is the kind of text's first character, and its length in bytes.
func kindAt(text string) (kindOf, int) {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case r == utf8.RuneError && size < 2:
		return other, size
	case unicode.IsLetter(r):
		return letters, size
	case unicode.IsNumber(r):
		return numeral, size
	case unicode.IsSpace(r):
		return blank, size
	}
	return other, size
}

// runOf is the length of the run of a kind, of most characters at most, that text
// begins with.
func runOf(text string, kind kindOf, most int) int {
	n := 0
	for n < len(text) && most > 0 {
		k, size := kindAt(text[n:])
		if k != kind {
			break
		}
		n += size
		most--
	}
	return n
}

// nextChunk returns the length of the chunk that text, which is not empty,
// begins with: a run of one class of bytes, and the space before it.
func nextChunk(text string) int {
	n := 1
	if text[0] == ' ' && len(text) > 1 {
		n = 2
	}
	class := classOf(text[n-1])
	for n < len(text) && n < maxChunkBytes && classOf(text[n]) == class {
		n++
	}
	return n
}

// byteClass groups the bytes that a chunk may hold together.
type byteClass uint8

const (
	punctuation byteClass = iota
	letter                // and every byte of a character beyond ASCII
	digit
	space
)

func classOf(b byte) byteClass {
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', b >= 0x80:
		return letter
	case '0' <= b && b <= '9':
		return digit
	case b == ' ', '\t' <= b && b <= '\r':
		return space
	}
	return punctuation
}
