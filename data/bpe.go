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
	chunks    [][]int32       // each distinct chunk, as symbols
	frequency []int           // of each chunk in the text
	place     map[merge]int32 // of each adjacent pair that there is or was, in tallies
	tallies   []tally
	queue     candidates

	merges int     // so far
	fresh  []int32 // places of the pairs that came with the last one
}

// tally is what is known of two symbols.
type tally struct {
	merge
	count int     // how often they meet in the text
	where []int32 // chunks that hold, or held, the pair
	by    int     // the last merge that it came with, 0 for none
}

func newTrainer(frequencies map[string]int, bytes *[256]int32) *trainer {
	t := &trainer{place: map[merge]int32{}}
	length := 0
	for chunk := range frequencies {
		length += len(chunk)
	}
	all := make([]int32, 0, length)
	for chunk, frequency := range frequencies {
		from := len(all)
		for i := range len(chunk) {
			all = append(all, bytes[chunk[i]])
		}
		t.chunks = append(t.chunks, all[from:])
		t.frequency = append(t.frequency, frequency)
		t.addPairs(len(t.chunks) - 1)
	}
	for _, p := range t.tallies {
		t.queue = append(t.queue, candidate{p.merge, p.count})
	}
	heap.Init(&t.queue)
	return t
}

// tally finds a pair, which may be met for the first time.
func (t *trainer) tally(left, right int32) int32 {
	m := merge{left, right}
	at, known := t.place[m]
	if !known {
		at = int32(len(t.tallies))
		t.place[m] = at
		t.tallies = append(t.tallies, tally{merge: m})
	}
	return at
}

// addPairs counts the adjacent pairs of a new chunk.
func (t *trainer) addPairs(chunk int) {
	symbols := t.chunks[chunk]
	for i := range len(symbols) - 1 {
		p := &t.tallies[t.tally(symbols[i], symbols[i+1])]
		p.count += t.frequency[chunk]
		p.locate(chunk)
	}
}

// locate notes that chunk, the one in work, holds the pair.
func (p *tally) locate(chunk int) {
	if n := len(p.where); n == 0 || p.where[n-1] != int32(chunk) {
		p.where = append(p.where, int32(chunk))
	}
}

// mostFrequent removes and returns the pair to merge next. Counts in the queue
// are upper bounds, as an old pair only ever loses occurrences: one that turns
// out stale goes back with its true count.
func (t *trainer) mostFrequent() (merge, bool) {
	for len(t.queue) > 0 {
		top := &t.queue[0]
		switch count := t.tallies[t.place[top.merge]].count; {
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
	at := t.tally(m.left, m.right)
	where := t.tallies[at].where
	t.tallies[at].where = nil
	t.merges++
	t.fresh = t.fresh[:0]
	for _, chunk := range where {
		t.rewrite(int(chunk), m, id)
		symbols := t.chunks[chunk]
		for i := range len(symbols) - 1 {
			if symbols[i] == id || symbols[i+1] == id {
				t.came(t.tally(symbols[i], symbols[i+1]), int(chunk))
			}
		}
	}
	for _, next := range t.fresh {
		p := &t.tallies[next]
		heap.Push(&t.queue, candidate{p.merge, p.count})
	}
}

// came notes a pair that came with the present merge into a chunk.
func (t *trainer) came(pair int32, chunk int) {
	p := &t.tallies[pair]
	p.locate(chunk)
	if p.by != t.merges {
		p.by = t.merges
		t.fresh = append(t.fresh, pair)
	}
}

// rewrite replaces m by id in one chunk, from the left. The pairs of what goes with its
// neighbours are counted out, those of what comes in.
func (t *trainer) rewrite(chunk int, m merge, id int32) {
	symbols, frequency := t.chunks[chunk], t.frequency[chunk]
	kept := symbols[:0]
	for i := 0; i < len(symbols); i++ {
		if i+1 == len(symbols) || symbols[i] != m.left || symbols[i+1] != m.right {
			kept = append(kept, symbols[i])
			continue
		}
		t.count(m.left, m.right, -frequency)
		if n := len(kept); n > 0 {
			t.count(kept[n-1], m.left, -frequency)
			t.count(kept[n-1], id, frequency)
		}
		i++
		if i+1 < len(symbols) {
			t.count(m.right, symbols[i+1], -frequency)
			t.count(id, symbols[i+1], frequency)
		}
		kept = append(kept, id)
	}
	t.chunks[chunk] = kept
}

// count adds to how often two symbols meet.
func (t *trainer) count(left, right int32, frequency int) {
	t.tallies[t.tally(left, right)].count += frequency
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
