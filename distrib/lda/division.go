package lda

// division is how documents are divided into parts and these into blocks, and words into slices.
type division struct {
	freq      []int      // of the words
	documents []int      // where each part begins, and behind the last
	words     []int      // the same of each slice
	blocks    [][]extent // of each part
	k         int        // topics
}

// divide divides a corpus.
func (c *Corpus) divide(o Options) *division {
	d := &division{freq: c.Frequencies(), k: o.Topics}
	d.documents = cuts(c.length, c.Docs(), o.Parts)
	d.words = cuts(func(w int) int { return d.freq[w] }, c.Vocab, perPart*o.Parts)
	for p := range o.Parts {
		d.blocks = append(d.blocks, c.extents(d.documents[p], d.documents[p+1], o.BlockTokens))
	}
	return d
}

// rounds is how many blocks the part has that has most of them.
func (d *division) rounds() (n int) {
	for _, of := range d.blocks {
		n = max(n, len(of))
	}
	return n
}

// room is the most that the proposals of a slice's words take: words, topics in lists, and columns
// of alias tables.
type room struct{ words, listed, columns int }

// room is that of the slice that takes most of each.
func (d *division) room() (most room) {
	for i := range len(d.words) - 1 {
		var r room
		for _, n := range d.freq[d.words[i]:d.words[i+1]] {
			r.words++
			if heavy(n, d.k) {
				r.columns += d.k
			} else {
				r.listed += n
			}
		}
		most = room{max(most.words, r.words), max(most.listed, r.listed),
			max(most.columns, r.columns)}
	}
	return most
}
