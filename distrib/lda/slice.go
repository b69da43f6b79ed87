package lda

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// slice is the rows of the word-topic table of words [from, from+len(rows)).
type slice struct {
	from int
	rows []row
}

// newSlice is rows of words of these frequencies, that have no token yet.
func newSlice(from int, frequencies []int, topics int) *slice {
	s := &slice{from: from, rows: make([]row, len(frequencies))}
	for i, n := range frequencies {
		s.rows[i] = newRow(n, topics)
	}
	return s
}

// within is which of a document's words, in ascending order, are of the slice: [from, to).
func (s *slice) within(words []uint32) (from, to int) {
	from, _ = slices.BinarySearch(words, uint32(s.from))
	n, _ := slices.BinarySearch(words[from:], uint32(s.from+len(s.rows)))
	return from, from + n
}

// count adds the tokens of a block that are of the slice.
func (s *slice) count(b *block) {
	for d := range b.docs {
		words, topic := b.doc(d)
		from, to := s.within(words)
		for i := from; i < to; i++ {
			s.rows[int(words[i])-s.from].put(topic[i], 1)
		}
	}
}

// sum adds the tokens of each topic.
func (s *slice) sum(to []int32) {
	for i := range s.rows {
		for _, c := range s.rows[i].cells {
			if c.count > 0 {
				to[c.topic] += int32(c.count)
			}
		}
	}
}

// append appends the slice as others read it: where it begins, how many words it has, and of each
// its tokens in all, and how many of them are counted, by topic.
func (s *slice) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.from))
	b = binary.AppendUvarint(b, uint64(len(s.rows)))
	for i := range s.rows {
		r := &s.rows[i]
		b = binary.AppendUvarint(b, uint64(r.tokens))
		topics := 0
		r.each(func(uint16, uint32) { topics++ })
		b = binary.AppendUvarint(b, uint64(topics))
		r.each(func(topic uint16, n uint32) {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(topic)), uint64(n))
		})
	}
	return b
}

// readSlice reads what append has appended.
func readSlice(b []byte, topics int) (*slice, error) {
	short := false
	next := func(most uint64) int {
		x, n := binary.Uvarint(b)
		if n <= 0 || x > most {
			short, n, x = true, 0, 0
		}
		b = b[n:]
		return int(x)
	}
	s := &slice{from: next(1 << 32)}
	s.rows = make([]row, next(uint64(len(b))))
	for i := range s.rows {
		r := newRow(next(MaxTokens), topics)
		for range next(uint64(topics)) {
			r.put(uint16(next(uint64(topics-1))), next(MaxTokens))
		}
		if s.rows[i] = r; short {
			break
		}
	}
	if short || len(b) > 0 {
		return nil, fmt.Errorf("lda: a slice of %d words is cut short, or more than that",
			len(s.rows))
	}
	return s, nil
}
