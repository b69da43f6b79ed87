package bags

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/gomem/gomem/data"
)

// counted is documents by the words that they have.
type counted struct {
	start []int64 // of each document, and behind the last
	word  []int32
	count []float32
}

func (c *counted) size() int { return len(c.start) - 1 }

func (c *counted) fill(i int, words []float32) {
	for k := c.start[i]; k < c.start[i+1]; k++ {
		words[c.word[k]] += c.count[k]
	}
	scaled(words)
}

// some is those documents of others that it names.
type some struct {
	of   source
	list []int32
}

func (s some) size() int                   { return len(s.list) }
func (s some) fill(i int, words []float32) { s.of.fill(int(s.list[i]), words) }

// maxLine is the most bytes of a line.
const maxLine = 1 << 16

// readUCI reads a file such as docword.nips.txt: three lines with the number of documents, of words
// and of lines to come, each of which has a document, a word, both from 1, and how often it comes;
// documents in ascending order.
func readUCI(ctx context.Context, spec, path string, o Options) (*Set, error) {
	p := &uci{}
	file, err := p.parse(ctx, spec, path)
	if err != nil {
		return nil, err
	}
	s := p.set(spec, path, o)
	s.Info.Summarize([]data.File{file})
	return s.checked()
}

// parse reads such a file.
func (p *uci) parse(ctx context.Context, spec, path string) (file data.File, err error) {
	f, _, err := data.OpenFile(path)
	if err != nil {
		return file, data.FileError(spec, path, err)
	}
	defer f.Close()
	hashed := data.Hash(path, f)
	in, err := data.Unmarked(hashed)
	if err != nil {
		return file, &data.Error{Spec: spec, Path: path, Err: err}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	number := 0
	for err == nil && lines.Scan() {
		if number++; number%4096 == 0 && ctx.Err() != nil {
			return file, context.Cause(ctx)
		}
		err = p.line(bytes.Fields(lines.Bytes()))
	}
	switch {
	case err != nil:
	case lines.Err() != nil:
		err, number = data.Remedied(lines.Err()), number+1
	default:
		err, number = p.finish(), 0
	}
	if err != nil {
		return file, &data.Error{Spec: spec, Path: path, Line: number, Err: err}
	}
	if file, err = hashed.File(); err != nil {
		return file, data.FileError(spec, path, err)
	}
	return file, nil
}

// uci is what has been read of a file.
type uci struct {
	head []int // documents, words, and lines that come
	counted
	lines int

	// documents is how many have begun. Where each takes them, only the last one is here.
	documents int
	each      func(c *counted) error
}

// line takes the words of a line.
func (p *uci) line(words [][]byte) error {
	if len(words) == 0 {
		return nil
	}
	if len(p.head) < 3 {
		n, err := strconv.Atoi(string(words[0]))
		if err != nil || len(words) != 1 || n < 1 || n > 1<<40 {
			return fmt.Errorf("%.60q: want a number alone, of documents, of words and of lines",
				bytes.Join(words, []byte(" ")))
		}
		if p.head = append(p.head, n); len(p.head) == 2 {
			return checkVocab(n)
		}
		return nil
	}
	var n [3]int
	for i := range n {
		if len(words) != 3 {
			return fmt.Errorf("%d numbers, want a document, a word and how often it comes",
				len(words))
		}
		var err error
		if n[i], err = strconv.Atoi(string(words[i])); err != nil || n[i] < 1 {
			return fmt.Errorf("%.60q is no number from 1", words[i])
		}
	}
	return p.add(n[0], n[1], n[2])
}

// add takes a line's numbers.
func (p *uci) add(document, word, count int) error {
	if p.lines++; p.lines > p.head[2] {
		return fmt.Errorf("more than the %d lines that were announced", p.head[2])
	}
	switch at := p.documents; {
	case document > p.head[0] || word > p.head[1]:
		return fmt.Errorf("word %d of document %d, there are %d of %d", word, document, p.head[1],
			p.head[0])
	case document < at:
		return fmt.Errorf("document %d behind document %d: want them in ascending order", document,
			at)
	}
	for p.documents < document {
		if err := p.hand(); err != nil {
			return err
		}
		p.start = append(p.start, int64(len(p.word)))
		p.documents++
	}
	p.word, p.count = append(p.word, int32(word-1)), append(p.count, float32(count))
	return nil
}

// finish reports what is missing.
func (p *uci) finish() error {
	if len(p.head) < 3 {
		return errors.New("no documents: want their number, that of words and that of lines")
	}
	if p.lines < p.head[2] {
		return fmt.Errorf("%d lines, and %d were announced", p.lines, p.head[2])
	}
	if err := p.hand(); err != nil {
		return err
	}
	p.start = append(p.start, int64(len(p.word)))
	return nil
}

// hand gives the document that has ended to who takes each, and forgets it.
func (p *uci) hand() error {
	if p.each == nil || p.documents == 0 {
		return nil
	}
	err := p.each(&p.counted)
	p.start, p.word, p.count = p.start[:0], p.word[:0], p.count[:0]
	return err
}

// set is the documents that were read. Those without words are left out.
func (p *uci) set(spec, path string, o Options) *Set {
	train, held := some{of: &p.counted}, some{of: &p.counted}
	for i := range p.counted.size() {
		if p.start[i] == p.start[i+1] {
			continue
		}
		to := &train
		if data.HeldOut(strconv.Itoa(i+1), o.EvalShare) {
			to = &held
		}
		to.list = append(to.list, int32(i))
	}
	s := &Set{Vocab: p.head[1], train: train, heldOut: held}
	s.Info = data.Info{Spec: spec, Path: path, Noun: "document", HeldOut: len(held.list),
		Pairs: len(train.list) + len(held.list)}
	s.Info.Dropped, s.Info.Reason = p.head[0]-s.Info.Pairs, "without words"
	return s
}

// Counts reads a file such as docword.nips.txt, and hands out each document as it ends: how many
// words there are, and those of the document, from 0, each as often as it comes, most at most. They
// are the caller's until the next document.
func Counts(ctx context.Context, spec, path string, most int,
	document func(vocab int, words []uint32) error) error {
	var words []uint32
	p := &uci{}
	p.each = func(c *counted) error {
		words = words[:0]
		for k, w := range c.word {
			n := int(c.count[k])
			if n > maxCount || n > most-len(words) {
				return fmt.Errorf("more than %d words in a document", most)
			}
			for range n {
				words = append(words, uint32(w))
			}
		}
		return document(p.head[1], words)
	}
	_, err := p.parse(ctx, spec, path)
	return err
}

// maxCount is up to where a float32 counts.
const maxCount = 1 << 24
