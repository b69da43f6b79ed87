package data

import (
	"container/heap"
	"context"
)

// trainingBytes bounds the text that the tokenizer is trained on: beyond it,
// the frequencies that decide merges hardly change.
const trainingBytes = 8 << 20

// minFrequency is how often two symbols must meet to be worth an id.
const minFrequency = 2

// TrainTokenizer learns a vocabulary of size ids from the training pairs of c,
// sources and targets alike. size counts PAD, EOS and the 256 bytes. Where the
// text has too few frequent pairs, fewer ids are used (see Used).
func TrainTokenizer(ctx context.Context, c *Corpus, size int) (*Tokenizer, error) {
	tok, err := newTokenizer(size)
	if err != nil {
		return nil, err
	}
	t := newTrainer(chunkFrequencies(c.Train), &tok.bytes)
	for tok.Used() < size {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		m, ok := t.mostFrequent()
		if !ok {
			break
		}
		t.apply(m, int32(tok.Used()))
		if err := tok.add(m); err != nil {
			return nil, err
		}
	}
	return tok, nil
}

// chunkFrequencies counts the chunks of every k-th pair, with the smallest k
// that keeps the text within trainingBytes.
func chunkFrequencies(pairs []Pair) map[string]int {
	total := 0
	for _, p := range pairs {
		total += len(p.Source) + len(p.Target)
	}
	stride := 1 + total/trainingBytes
	frequencies := map[string]int{}
	for i := 0; i < len(pairs); i += stride {
		for _, text := range []string{pairs[i].Source, pairs[i].Target} {
			countChunks(frequencies, text, byClass)
		}
	}
	return frequencies
}

// trainer is the state of byte-pair encoding. Its tables may be built in any
// order: counts are sums, and the heap's order is total.
type trainer struct {
	chunks    [][]int32         // each distinct chunk, as symbols
	frequency []int             // of each chunk in the text
	count     map[merge]int     // of each adjacent pair, in the text
	where     map[merge][]int32 // chunks that hold, or held, the pair
	queue     candidates
}

func newTrainer(frequencies map[string]int, bytes *[256]int32) *trainer {
	t := &trainer{count: map[merge]int{}, where: map[merge][]int32{}}
	for chunk, frequency := range frequencies {
		symbols := make([]int32, len(chunk))
		for i := range symbols {
			symbols[i] = bytes[chunk[i]]
		}
		t.chunks = append(t.chunks, symbols)
		t.frequency = append(t.frequency, frequency)
		t.addPairs(len(t.chunks) - 1)
	}
	for m, count := range t.count {
		t.queue = append(t.queue, candidate{m, count})
	}
	heap.Init(&t.queue)
	return t
}

// addPairs counts the adjacent pairs of a new chunk.
func (t *trainer) addPairs(chunk int) {
	symbols := t.chunks[chunk]
	for i := range len(symbols) - 1 {
		m := merge{symbols[i], symbols[i+1]}
		t.count[m] += t.frequency[chunk]
		t.locate(m, chunk)
	}
}

// locate notes that chunk, the one in work, holds m.
func (t *trainer) locate(m merge, chunk int) {
	in := t.where[m]
	if len(in) == 0 || in[len(in)-1] != int32(chunk) {
		t.where[m] = append(in, int32(chunk))
	}
}

// mostFrequent removes and returns the pair to merge next. Counts in the queue
// are upper bounds, as an old pair only ever loses occurrences: one that turns
// out stale goes back with its true count.
func (t *trainer) mostFrequent() (merge, bool) {
	for len(t.queue) > 0 {
		top := &t.queue[0]
		switch count := t.count[top.merge]; {
		case count < minFrequency:
			heap.Pop(&t.queue)
		case count < top.count:
			top.count = count
			heap.Fix(&t.queue, 0)
		default:
			return heap.Pop(&t.queue).(candidate).merge, true
		}
	}
	return merge{}, false
}

// apply replaces every occurrence of m by the symbol id, and queues the pairs
// that come with it.
func (t *trainer) apply(m merge, id int32) {
	fresh := map[merge]struct{}{}
	for _, chunk := range t.where[m] {
		t.rewrite(int(chunk), m, id)
		symbols := t.chunks[chunk]
		for i := range len(symbols) - 1 {
			if next := (merge{symbols[i], symbols[i+1]}); next.left == id || next.right == id {
				t.locate(next, int(chunk))
				fresh[next] = struct{}{}
			}
		}
	}
	delete(t.where, m)
	for next := range fresh {
		heap.Push(&t.queue, candidate{next, t.count[next]})
	}
}

// rewrite replaces m by id in one chunk. All its pairs are counted out before
// and in again after: chunks are short.
func (t *trainer) rewrite(chunk int, m merge, id int32) {
	symbols := t.chunks[chunk]
	t.recount(symbols, -t.frequency[chunk])
	kept := symbols[:0]
	for i := 0; i < len(symbols); i++ {
		if i+1 < len(symbols) && symbols[i] == m.left && symbols[i+1] == m.right {
			kept = append(kept, id)
			i++
		} else {
			kept = append(kept, symbols[i])
		}
	}
	t.recount(kept, t.frequency[chunk])
	t.chunks[chunk] = kept
}

// recount adds frequency to the count of every adjacent pair of symbols.
func (t *trainer) recount(symbols []int32, frequency int) {
	for i := range len(symbols) - 1 {
		t.count[merge{symbols[i], symbols[i+1]}] += frequency
	}
}

// candidate is a pair with the count it had when it was queued.
type candidate struct {
	merge
	count int
}

// candidates is a heap: the most frequent first, then the smaller ids.
type candidates []candidate

func (c candidates) Len() int      { return len(c) }
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

func (c candidates) Less(i, j int) bool {
	a, b := c[i], c[j]
	switch {
	case a.count != b.count:
		return a.count > b.count
	case a.left != b.left:
		return a.left < b.left
	}
	return a.right < b.right
}

// Push adds a candidate, for container/heap.
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }

// Pop removes the last candidate, for container/heap.
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
