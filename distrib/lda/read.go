package lda

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// maxLine is the most bytes of a document.
const maxLine = 1 << 26

// ReadText adds the documents of a text to a corpus that has none, a document a line. Words are
// letters, digits, and what joins to them, in lower case; they are numbered as they come. Like
// another corpus, the words are that one's, and all others are left out. Lines without words are no
// documents.
func (c *Corpus) ReadText(r io.Reader, like *Corpus) error {
	numbers := map[string]uint32{}
	if like != nil {
		if like.Names == nil {
			return errors.New("lda: the words of the other corpus have no names")
		}
		c.Vocab, c.Names = like.Vocab, like.Names
		for i, name := range like.Names {
			numbers[name] = uint32(i)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for line := 1; lines.Scan(); line++ {
		words := c.numbered(Words(lines.Text()), numbers, like == nil)
		if len(words) == 0 {
			continue
		}
		if err := c.Add(words); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return lines.Err()
}

// Words are the words of a text.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.Nd)
	})
}

// numbered are the numbers of words; new words get some, or are left out.
func (c *Corpus) numbered(names []string, numbers map[string]uint32, grow bool) (words []uint32) {
	for _, name := range names {
		w, ok := numbers[name]
		if !ok && grow {
			w, ok = uint32(c.Vocab), true
			numbers[name] = w
			c.Names, c.Vocab = append(c.Names, name), c.Vocab+1
		}
		if ok {
			words = append(words, w)
		}
	}
	return words
}

// ReadNames reads the names of a corpus' words, a word a line.
func (c *Corpus) ReadNames(r io.Reader) error {
	var names []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		names = append(names, strings.TrimSpace(lines.Text()))
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if len(names) != c.Vocab {
		return fmt.Errorf("names of %d words, documents have %d", len(names), c.Vocab)
	}
	c.Names = names
	return nil
}

// Name is how a word is called: by its number if it has no name.
func (c *Corpus) Name(word int) string {
	if c.Names == nil {
		return fmt.Sprint(word)
	}
	return c.Names[word]
}
