package data

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// pattern is what parts of a tokenizer.json look for: a string or a regular expression.
type pattern struct {
	String *string `json:"String"`
	Regex  string  `json:"Regex"`
}

// is reports whether the pattern is a string, and which. It is not empty.
func (p pattern) is() (string, bool) {
	if p.String == nil {
		return "", false
	}
	return *p.String, *p.String != ""
}

// matcher finds the pattern, nil if it is one that is not known.
func (p pattern) matcher() matcher {
	if text, ok := p.is(); ok {
		return literal(text)
	}
	if e := newExpression(p.Regex); e != nil {
		return e
	}
	return nil
}

// matcher finds what text is cut at.
type matcher interface {
	// first is the place of the first match in text, its length where there is none. No match is
	// empty, and none depends on what is before text.
	first(text string) (from, to int)
}

// literal matches a string.
type literal string

func (l literal) first(text string) (from, to int) {
	if at := strings.Index(text, string(l)); at >= 0 {
		return at, at + len(l)
	}
	return len(text), len(text)
}

// expression matches a regular expression of those that the library tokenizers has.
type expression struct {
	re     *regexp.Regexp
	blanks int // the group that is white space, the last of which goes with what follows; or 0
}

// blankEnd is the end of most patterns: white space without its last character if something
// follows, and white space. Go's expressions do not look ahead.
const blankEnd = `|\s+(?!\S)|\s+`

// newExpression reads a regular expression, nil if it has what Go's do not, or mean otherwise.
func newExpression(text string) *expression {
	body, blanks := strings.CutSuffix(text, blankEnd)
	alone := text == blankEnd[1:]
	body, ok := translated(body)
	switch {
	case alone:
		body = "([" + spaceClass + "]+)"
	case !ok:
		return nil
	case blanks:
		body = "(?:" + body + ")|([" + spaceClass + "]+)"
	}
	re, err := regexp.Compile(body)
	if err != nil || re.MatchString("") {
		return nil
	}
	e := &expression{re: re}
	if blanks || alone {
		e.blanks = re.NumSubexp()
	}
	return e
}

func (e *expression) first(text string) (from, to int) {
	at := e.re.FindStringSubmatchIndex(text)
	if at == nil {
		return len(text), len(text)
	}
	from, to = at[0], at[1]
	if e.blanks > 0 && at[2*e.blanks] >= 0 && to < len(text) {
		if _, last := utf8.DecodeLastRuneInString(text[:to]); last < to-from {
			to -= last
		}
	}
	return from, to
}

// spaceClass is what is white space there: Go's \s is of ASCII.
const spaceClass = `\t-\r\x{85}\p{Z}`

// translated is a regular expression as Go has it, if it is one of those that are the same in
// both but for white space, digits and the end of a line.
func translated(text string) (string, bool) {
	var b strings.Builder
	class := false // within brackets
	for i := 0; i < len(text); i++ {
		c, rest := text[i], text[i+1:]
		switch {
		case c == '\\':
			if rest == "" {
				return "", false
			}
			escape, ok := translatedEscape(rest[0], class)
			if !ok {
				return "", false
			}
			b.WriteString(escape)
			i++
			continue
		case class && (c == '[' || c == '&' && strings.HasPrefix(rest, "&")),
			!class && (c == '^' || c == '{' && strings.HasPrefix(rest, ",")),
			!class && c == '(' && strings.HasPrefix(rest, "?") &&
				!strings.HasPrefix(rest, "?:") && !strings.HasPrefix(rest, "?i:"):
			return "", false
		case c == '$' && !class:
			b.WriteString(`(?m:$)`)
			continue
		case c == '[':
			class = true
			if strings.HasPrefix(rest, "^") {
				b.WriteByte(c)
				c, rest = '^', rest[1:]
				i++
			}
			if strings.HasPrefix(rest, "]") {
				return "", false
			}
		case c == ']':
			class = false
		}
		b.WriteByte(c)
	}
	return b.String(), true
}

// translatedEscape is what a character behind a backslash means.
func translatedEscape(c byte, class bool) (string, bool) {
	switch {
	case c == 's' && class:
		return spaceClass, true
	case c == 's':
		return "[" + spaceClass + "]", true
	case c == 'S' && !class:
		return "[^" + spaceClass + "]", true
	case c == 'd':
		return `\p{Nd}`, true
	}
	letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf
	return `\` + string(rune(c)), !letter || strings.IndexByte("pPnrtfv", c) >= 0
}

// isolated cuts before a match and behind it.
type isolated struct{ matcher }

func (m isolated) next(text string) int {
	from, to := m.first(text)
	if from > 0 {
		return from
	}
	return to
}

// cutBehind cuts behind a match, and before one that is next to another.
type cutBehind struct{ matcher }

func (m cutBehind) next(text string) int {
	_, to := m.first(text)
	return to
}

// cutBefore cuts before a match.
type cutBefore struct{ matcher }

func (m cutBefore) next(text string) int {
	from, to := m.first(text)
	if from > 0 {
		return from
	}
	from, _ = m.first(text[to:])
	return to + from
}
