// Package legible shows what files and networks bring, on a line of an error or a note: cut to
// what is read there, and quoted where it would break the line or give the terminal orders.
package legible

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Is reports whether a text stays on its line and gives a terminal no orders.
func Is(text string) bool {
	return utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Text is a text as it is, or quoted if it is not legible.
func Text(text string) string {
	if Is(text) {
		return text
	}
	return strconv.Quote(text)
}

// Cut is [Text] of the first so many characters.
func Cut(text string, most int) string { return Text(fmt.Sprintf("%.*s", most, text)) }

// Error is an error whose text is legible and has so many characters at most, but for what
// quoting adds. It wraps the error that it is given, and is it where there is nothing to change.
func Error(err error, most int) error {
	whole := err.Error()
	text := whole
	if utf8.RuneCountInString(text) > most {
		text = fmt.Sprintf("%.*s…", most, text)
	}
	if text = Text(text); text == whole {
		return err
	}
	return &shown{text, err}
}

// shown is an error that is shown as another text.
type shown struct {
	text string
	err  error
}

// Error is the text.
func (s *shown) Error() string { return s.text }

// Unwrap is the error.
func (s *shown) Unwrap() error { return s.err }
