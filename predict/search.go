package predict

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/internal/libm"
)

// Search says how texts are looked for. The zero value is greedy search.
type Search struct {
	Beams   int     // texts that are gone on with, at most; 0 means 1, which is greedy
	Penalty float64 // α of the length penalty ((5+n)/6)^α that scores are divided by; 0: none
	Tokens  int     // of a text, its end included, at most; 0: as many as the decoder has room for
}

// maxBeams keeps a mistyped number from taking all memory.
const maxBeams = 1 << 10

// Validate reports the first field that no search can have.
func (s Search) Validate() error {
	switch {
	case s.Beams < 0 || s.Beams > maxBeams:
		return fmt.Errorf("beam of %d: want 1 to %d", s.Beams, maxBeams)
	case !(s.Penalty >= 0 && s.Penalty <= 10):
		return fmt.Errorf("length penalty of %v: want 0 to 10", s.Penalty)
	case s.Tokens < 0:
		return fmt.Errorf("texts of %d tokens: want 1 or more", s.Tokens)
	}
	return nil
}

// divisor is the length penalty of a text of so many tokens, its end included.
func (s Search) divisor(tokens int) float64 {
	return libm.Pow(float64(5+tokens)/6, s.Penalty)
}

// Text is a text that was written.
type Text struct {
	Tokens []int32 // without its end
	Score  float64 // log-probability, its end's included, over the length penalty
	Ended  bool    // by the model; otherwise there was no room for more
}

// scorer is a decoder at work. step takes a token for each row at a position, from
// 0, after which each row continues what its parent row had, and gives the logits of
// the next, [rows vocab].
type scorer interface {
	step(ctx context.Context, tokens []int32, position int, parents []int32) ([]float32, error)
}

// hypothesis is a text that goes on.
type hypothesis struct {
	tokens []int32
	logp   float64
	parent int // its beam before the last token
}

// sentence is the search for one text.
type sentence struct {
	Search
	limit  int     // tokens, the end included
	ends   []int32 // the tokens that end a text
	alive  []hypothesis
	greedy int // the place of the greedy text among those alive, −1 when it has ended
	ended  []Text
}

// search looks for n texts, each after a start token. Rows n·Beams.. of the decoder
// are one text's beams.
func search(ctx context.Context, d scorer, n, limit int, start int32, ends []int32,
	o Search) ([]Text, error) {
	o.Beams = max(o.Beams, 1)
	if o.Tokens > 0 {
		limit = min(limit, o.Tokens)
	}
	sentences := make([]*sentence, n)
	for i := range sentences {
		sentences[i] = &sentence{Search: o, limit: limit, ends: ends,
			alive: []hypothesis{{tokens: []int32{start}}}}
	}
	rows := n * o.Beams
	tokens, parents := make([]int32, rows), make([]int32, rows)
	for i := range parents {
		parents[i] = int32(i)
	}
	for position := 0; position < limit; position++ {
		running := false
		for k, s := range sentences {
			s.feed(k*o.Beams, tokens, parents)
			running = running || !s.done()
		}
		if !running {
			break
		}
		logits, err := d.step(ctx, tokens, position, parents)
		if err != nil {
			return nil, err
		}
		vocab := len(logits) / rows
		for k, s := range sentences {
			if !s.done() {
				s.advance(logits[k*o.Beams*vocab:][:o.Beams*vocab], vocab)
			}
		}
	}
	texts := make([]Text, n)
	for i, s := range sentences {
		texts[i] = s.best()
	}
	return texts, nil
}

// feed sets the next tokens of the rows from first on. Rows that nothing is alive in
// repeat the first.
func (s *sentence) feed(first int, tokens, parents []int32) {
	for i := range s.Beams {
		h := s.alive[0]
		if i < len(s.alive) {
			h = s.alive[i]
		}
		tokens[first+i] = h.tokens[len(h.tokens)-1]
		parents[first+i] = int32(first + h.parent)
	}
}

// length is the number of tokens that every text alive has, without the start.
func (s *sentence) length() int { return len(s.alive[0].tokens) - 1 }

// done reports whether nothing that is alive can become the best.
func (s *sentence) done() bool {
	if s.greedy < 0 && len(s.ended) >= s.Beams || s.length() >= s.limit {
		return true
	}
	if len(s.ended) == 0 {
		return false
	}
	most := math.Inf(-1)
	for _, h := range s.alive {
		most = max(most, h.logp)
	}
	return s.best().Score >= most/s.divisor(s.limit)
}

// candidate is a text alive with one more token.
type candidate struct {
	beam  int
	token int32
	logp  float64
}

// advance goes on by a token, of which the logits of each beam are given.
func (s *sentence) advance(logits []float32, vocab int) {
	var all []candidate
	var greedy candidate
	for i, h := range s.alive {
		row := logits[i*vocab:][:vocab]
		norm := logSum(row)
		// as many as there are beams may go on, whatever ends
		for rank, id := range likeliest(row, s.Beams+len(s.ends)) {
			c := candidate{i, int32(id), h.logp + float64(row[id]) - norm}
			if rank == 0 && i == s.greedy {
				greedy = c
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.logp, a.logp) })
	s.choose(all, greedy)
}

// choose ends texts, and takes those that go on: the best, and the greedy one in any
// case.
func (s *sentence) choose(all []candidate, greedy candidate) {
	before, was := s.alive, s.greedy
	s.alive, s.greedy = nil, -1
	for rank, c := range all {
		isGreedy := was >= 0 && c == greedy
		switch {
		case slices.Contains(s.ends, c.token):
			if rank < s.Beams || isGreedy {
				s.end(before[c.beam], c)
			}
		case len(s.alive) < s.Beams:
			if isGreedy {
				s.greedy = len(s.alive)
			}
			s.alive = append(s.alive, after(before[c.beam], c))
		case isGreedy:
			s.greedy = s.Beams - 1
			s.alive[s.greedy] = after(before[c.beam], c)
		}
	}
	if len(s.alive) == 0 { // a vocabulary of nothing but ends
		s.alive, s.limit = before, 0
	}
}

// after is a text with one more token.
func after(h hypothesis, c candidate) hypothesis {
	return hypothesis{append(slices.Clone(h.tokens), c.token), c.logp, c.beam}
}

// end ends a text with the token of a candidate.
func (s *sentence) end(h hypothesis, c candidate) {
	s.ended = append(s.ended, Text{slices.Clone(h.tokens[1:]), c.logp / s.divisor(len(h.tokens)),
		true})
}

// best is the best text, among those that there was no room to end, too.
func (s *sentence) best() Text {
	all := s.ended
	if s.length() >= s.limit && s.limit > 0 {
		for _, h := range s.alive {
			all = append(all, Text{h.tokens[1:], h.logp / s.divisor(s.length()), false})
		}
	}
	if len(all) == 0 {
		return Text{}
	}
	best := all[0]
	for _, t := range all[1:] {
		if t.Score > best.Score {
			best = t
		}
	}
	return best
}

// likeliest are the places of the k largest of x, the largest first, and of equal
// ones the first first. What is no number is the least.
func likeliest(x []float32, k int) []int {
	k = min(k, len(x))
	top := make([]int, 0, k+1)
	for i, v := range x {
		if v != v || len(top) == k && !(v > x[top[k-1]]) {
			continue
		}
		at := len(top)
		for at > 0 && v > x[top[at-1]] {
			at--
		}
		top = slices.Insert(top, at, i)
		top = top[:min(len(top), k)]
	}
	return top
}

// logSum is the logarithm of the sum of exponentials.
func logSum(x []float32) float64 {
	most := math.Inf(-1)
	for _, v := range x {
		if float64(v) > most {
			most = float64(v)
		}
	}
	if math.IsInf(most, 0) {
		return most
	}
	sum := 0.0
	for _, v := range x {
		if v == v {
			sum += libm.Exp(float64(v) - most)
		}
	}
	return most + libm.Log(sum)
}
