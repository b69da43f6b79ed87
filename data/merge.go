package data

import "container/heap"

// encodeLong is encodeChunk for a chunk of any length, in time n·log n: a heap
// has the merges that are possible, and symbols are a list.
func (t *Tokenizer) encodeLong(ids []int32, chunk string) []int32 {
	begun := t.begun(nil, chunk)
	if len(begun) == 0 {
		return ids
	}
	l := symbolList{tok: t, symbols: make([]symbol, len(begun))}
	for i, id := range begun {
		l.symbols[i] = symbol{id: id, before: i - 1, after: i + 1}
	}
	l.symbols[len(begun)-1].after = -1
	for i := range l.symbols {
		l.offer(i)
	}
	for len(l.queue) > 0 {
		l.apply(heap.Pop(&l.queue).(possible))
	}
	for at := 0; at >= 0; at = l.symbols[at].after {
		ids = append(ids, l.symbols[at].id)
	}
	return ids
}

// symbolList is a chunk that is being encoded.
type symbolList struct {
	tok     *Tokenizer
	symbols []symbol
	queue   possibles
}

// symbol is an id, with the places of its neighbours; −1 for none. One that was
// merged into its left neighbour has no id.
type symbol struct {
	id            int32
	before, after int
}

// gone is the id of a symbol that was merged into another.
const gone = -1

// offer queues the merge of a symbol with the next, if there is one.
func (l *symbolList) offer(at int) {
	if at < 0 || l.symbols[at].after < 0 {
		return
	}
	pair := merge{l.symbols[at].id, l.symbols[l.symbols[at].after].id}
	if rank, ok := l.tok.rank[pair]; ok {
		heap.Push(&l.queue, possible{rank, at})
	}
}

// apply merges two symbols, unless one of them is another by now.
func (l *symbolList) apply(p possible) {
	left := &l.symbols[p.at]
	if left.id == gone || left.after < 0 {
		return
	}
	right := &l.symbols[left.after]
	if l.tok.merges[p.rank] != (merge{left.id, right.id}) {
		return
	}
	left.id, right.id = l.tok.made[p.rank], gone
	left.after = right.after
	if left.after >= 0 {
		l.symbols[left.after].before = p.at
	}
	l.offer(left.before)
	l.offer(p.at)
}

// possible is a merge by its rank, and the place of the symbol on its left.
type possible struct{ rank, at int }

// possibles is a heap: the earliest merge first, the leftmost of several.
type possibles []possible

func (p possibles) Len() int      { return len(p) }
func (p possibles) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

func (p possibles) Less(i, j int) bool {
	return p[i].rank < p[j].rank || p[i].rank == p[j].rank && p[i].at < p[j].at
}

// Push appends a merge, for container/heap.
func (p *possibles) Push(x any) { *p = append(*p, x.(possible)) }

// Pop removes the last merge, for container/heap.
func (p *possibles) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
