package data

import "bytes"

// outline is Go source without what documentation has no use for, the bodies of functions
// and all that variables and constants are: most of it, and what takes a parser longest.
// Lines of what is left that were next to each other are still, so comments belong to what
// they did. It is the text itself where that is not known how to be done, or is no Go; what
// is wrong with what was left out is not found.
func outline(text []byte) []byte {
	o := outliner{text: text, out: make([]byte, 0, len(text)/4)}
	for o.blank() {
		if !o.declaration() {
			return text
		}
	}
	if o.at < len(text) {
		return text // in the middle of something
	}
	return append(o.out, text[o.kept:]...)
}

// outliner goes through Go source.
type outliner struct {
	text []byte
	at   int // read so far
	kept int // of which so much is in out, or is left out
	out  []byte
}

// leave leaves out the text from a place to where the outliner is, for something else.
func (o *outliner) leave(from int, instead string) {
	o.out = append(append(o.out, o.text[o.kept:from]...), instead...)
	o.kept = o.at
}

// blank goes on to the next token, over blanks, comments and semicolons. It reports whether
// there is one.
func (o *outliner) blank() bool {
	for o.at < len(o.text) {
		switch c := o.text[o.at]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';':
			o.at++
		case c == '/':
			if !o.comment() {
				return false
			}
		default:
			return true
		}
	}
	return false
}

// declaration goes over a declaration that begins here, and leaves out what it can. It
// reports whether it is one.
func (o *outliner) declaration() bool {
	from := o.at
	switch o.word() {
	case "func":
		body := o.to(true)
		if body == '{' {
			open := o.at
			if !o.nested() {
				return false
			}
			o.leave(open, "{}")
		}
		return body != 0
	case "var", "const":
		if o.to(false) == 0 {
			return false
		}
		o.leave(from, "var _ T")
		return true
	case "package", "import", "type":
		return o.to(false) != 0
	}
	return false
}

// word goes over a word, of letters and digits.
func (o *outliner) word() string {
	from := o.at
	for o.at < len(o.text) && wordly(o.text[o.at]) {
		o.at++
	}
	return string(o.text[from:o.at])
}

// wordly reports whether a byte can be in a word.
func wordly(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c >= 0x80
}

// to goes on to the end of a declaration, which is a newline or a semicolon: the first
// outside of brackets after what can be an end. If that of a function is the bracket of its
// body, it is that. It returns what is there, 0 if it is not found.
func (o *outliner) to(body bool) byte {
	var last byte  // of the token before
	typed := false // it is one that a type in braces begins with
	for o.at < len(o.text) {
		c := o.text[o.at]
		switch {
		case c == ';' || c == '\n' && ends(last):
			return c
		case c == '{' && body && !typed:
			return c
		case c == '{' || c == '(' || c == '[':
			if !o.nested() {
				return 0
			}
			last, typed = ')', false
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			o.at++
		case c == '/' && o.begins("//", "/*"):
			from := o.at
			if !o.comment() || bytes.IndexByte(o.text[from:o.at], '\n') >= 0 {
				return 0 // which is a newline, too
			}
		case c == '"' || c == '\'' || c == '`':
			if !o.quoted() {
				return 0
			}
			last, typed = c, false
		case wordly(c):
			word := o.word()
			last, typed = c, word == "struct" || word == "interface"
		default:
			last, typed = c, false
			o.at++
		}
	}
	return 0
}

// ends reports whether a newline ends a declaration after a token that ends so.
func ends(c byte) bool { return wordly(c) || bytes.IndexByte([]byte(")]}\"'`"), c) >= 0 }

// begins reports whether the text goes on with one of some.
func (o *outliner) begins(with ...string) bool {
	for _, w := range with {
		if bytes.HasPrefix(o.text[o.at:], []byte(w)) {
			return true
		}
	}
	return false
}

// nested goes over a bracket, all in it, and the one that closes it.
func (o *outliner) nested() bool {
	depth := 0
	for o.at < len(o.text) {
		switch c := o.text[o.at]; c {
		case '{', '(', '[':
			depth++
		case '}', ')', ']':
			if depth--; depth == 0 {
				o.at++
				return true
			}
		case '"', '\'', '`':
			if !o.quoted() {
				return false
			}
			continue
		case '/':
			if o.begins("//", "/*") {
				if !o.comment() {
					return false
				}
				continue
			}
		}
		o.at++
	}
	return false
}

// quoted goes over a string or a character.
func (o *outliner) quoted() bool {
	quote := o.text[o.at]
	for o.at++; o.at < len(o.text); o.at++ {
		switch c := o.text[o.at]; {
		case c == quote:
			o.at++
			return true
		case c == '\n' && quote != '`':
			return false
		case c == '\\' && quote != '`':
			o.at++
		}
	}
	return false
}

// comment goes over a comment, but not the newline behind it. It reports whether there is
// one that ends.
func (o *outliner) comment() bool {
	rest := o.text[o.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			o.at += end
			return true
		}
		o.at = len(o.text)
		return true
	case bytes.HasPrefix(rest, []byte("/*")):
		if end := bytes.Index(rest[2:], []byte("*/")); end >= 0 {
			o.at += end + 4
			return true
		}
	}
	return false
}
