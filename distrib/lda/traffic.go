package lda

import "math/bits"

// Traffic is what a worker of a corpus on a shelf has there, and what a sweep moves.
type Traffic struct {
	Disk     int64 // words of all documents, and topics of its own
	Streamed int64 // of its documents, read and written in a sweep
	Sent     int64 // to other workers in a sweep, at most: slices, and changes of the topic summary
}

// sent is the bytes of all slices as they are sent, at most: with as many topics of each word as it
// has tokens, or as there are.
func (d *division) sent() (sum int64) {
	for i := range len(d.words) - 1 {
		of := d.freq[d.words[i]:d.words[i+1]]
		sum += 8 + varint(d.words[i]) + varint(len(of))
		for _, n := range of {
			topics := min(n, d.k)
			sum += varint(n) + varint(topics) + int64(topics)*(varint(d.k-1)+1) + int64(n)/64
		}
	}
	return sum
}

// varint is how many bytes a number takes.
func varint(n int) int64 { return int64(max(1, (bits.Len(uint(n))+6)/7)) }

// Imagined is a corpus on a shelf that nobody has, to plan for: documents of the same length, and
// words that come so often.
func Imagined(docs, length int, frequencies []int) *Corpus {
	c := &Corpus{Vocab: len(frequencies), freq: frequencies, end: make([]int64, docs),
		shelf: &scratch[uint32]{}, words: make([]uint32, 0, chunk)}
	for d := range c.end {
		c.end[d] = int64(d+1) * int64(length)
	}
	return c
}

// Zipf is how often each of so many words comes among tokens by Zipf's law: the n-th n times as
// rarely as the first. They add up to all tokens.
func Zipf(tokens, vocab int) []int {
	all := 0.0
	for n := range vocab {
		all += 1 / float64(n+1)
	}
	list, sum, before := make([]int, vocab), 0.0, 0
	for n := range list {
		sum += 1 / float64(n+1)
		upTo := int(float64(tokens) * (sum / all))
		list[n], before = upTo-before, upTo
	}
	return list
}
