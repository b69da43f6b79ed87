package data

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder is how a file makes text of tokens.
type decoder struct {
	steps []decoding // none: tokens are text
	bytes bool       // tokens such as <0x0A> are bytes
}

// decoding is a step of that: other tokens. Whether a text begins with the first is said.
type decoding func(tokens []string, begins bool) []string

// text is the text of tokens.
func (d *decoder) text(tokens []string, begins bool) string {
	for _, step := range d.steps {
		tokens = step(tokens, begins)
	}
	return strings.Join(tokens, "")
}

// decodeStep is a part of a decoder.
type decodeStep struct {
	Type        string       `json:"type"`
	Parts       []decodeStep `json:"decoders"`
	Pattern     pattern      `json:"pattern"`
	Content     string       `json:"content"`
	Start       int          `json:"start"`
	Stop        int          `json:"stop"`
	Replacement string       `json:"replacement"`
	Space       *bool        `json:"add_prefix_space"`
	Scheme      string       `json:"prepend_scheme"`
}

// decoding finds out what text ids are. Of a vocabulary of bytes it is these.
func (f *tokenizerFile) decoding(ofBytes bool) (d decoder, err error) {
	if absent(f.Decoder) && ofBytes {
		return d, nil
	}
	var s decodeStep
	if !absent(f.Decoder) {
		if err := json.Unmarshal(f.Decoder, &s); err != nil {
			return d, fmt.Errorf("decoder: %w", err)
		}
	}
	all := s.flat()
	if ofBytes {
		if len(all) != 1 || all[0].Type != byteLevel {
			return d, fmt.Errorf("decoder %s: want ByteLevel, as the pre_tokenizer is",
				oneRow(f.Decoder))
		}
		return d, nil
	}
	fused, growth := false, 1.0
	for _, part := range all {
		if part.Type == "Replace" {
			growth *= part.Pattern.growth(part.Content)
		}
		if growth > maxGrowth {
			return d, fmt.Errorf("decoder %s: makes texts more than %d times as long: want less",
				oneRow(f.Decoder), maxGrowth)
		}
		step := part.decoding()
		if step == nil || part.Type == "Strip" && !fused {
			return d, fmt.Errorf("decoder %s: want Metaspace, or Replace of a String, "+
				"ByteFallback, Fuse and behind it Strip of the start, as the pre_tokenizer is not "+
				"ByteLevel", oneRow(f.Decoder))
		}
		fused = fused || part.Type == "Fuse"
		d.bytes = d.bytes || part.Type == "ByteFallback"
		d.steps = append(d.steps, step)
	}
	return d, nil
}

// flat is a decoder without sequences.
func (s decodeStep) flat() []decodeStep {
	if s.Type != "Sequence" {
		return []decodeStep{s}
	}
	var out []decodeStep
	for _, part := range s.Parts {
		out = append(out, part.flat()...)
	}
	return out
}

// decoding is what a part does, nil if that is not known.
func (s decodeStep) decoding() decoding {
	switch s.Type {
	case "Replace":
		if from, ok := s.Pattern.is(); ok {
			return each(func(token string, _ bool) string {
				return strings.ReplaceAll(token, from, s.Content)
			})
		}
	case "ByteFallback":
		return bytesJoined
	case "Fuse":
		return func(tokens []string, _ bool) []string { return []string{strings.Join(tokens, "")} }
	case "Strip":
		if s.Stop == 0 && s.Start >= 0 && utf8.RuneCountInString(s.Content) == 1 {
			return each(s.stripped)
		}
	case "Metaspace":
		return s.metaspace()
	}
	return nil
}

// metaspace is what a Metaspace does, nil if that is not known.
func (s decodeStep) metaspace() decoding {
	m, ok := preStep{Replacement: s.Replacement, Space: s.Space, Scheme: s.Scheme}.metaspace()
	if !ok {
		return nil
	}
	return each(func(token string, begins bool) string {
		if begins && m.prefix != "" {
			return strings.ReplaceAll(token, m.spaces, "")
		}
		return strings.ReplaceAll(token, m.spaces, " ")
	})
}

// each is a step that makes a token of each; begins is said of the first.
func each(of func(token string, begins bool) string) decoding {
	return func(tokens []string, begins bool) []string {
		out := make([]string, len(tokens))
		for i, token := range tokens {
			out[i] = of(token, begins && i == 0)
		}
		return out
	}
}

// stripped is the beginning of a text without so many of a character.
func (s decodeStep) stripped(token string, begins bool) string {
	for n := s.Start; begins && n > 0 && strings.HasPrefix(token, s.Content); n-- {
		token = token[len(s.Content):]
	}
	return token
}

// bytesJoined makes text of runs of tokens such as <0x0A>; of a run that is not UTF-8, U+FFFD
// for each byte.
func bytesJoined(tokens []string, _ bool) []string {
	var out []string
	var run []byte
	flush := func() {
		switch {
		case len(run) == 0:
			return
		case utf8.Valid(run):
			out = append(out, string(run))
		default:
			out = append(out, strings.Repeat("\uFFFD", len(run)))
		}
		run = run[:0]
	}
	for _, token := range tokens {
		if b, ok := byteOf(token); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, token)
	}
	flush()
	return out
}

// byteOf is the byte that a token such as <0x0A> stands for.
func byteOf(token string) (byte, bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}
