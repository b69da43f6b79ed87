package predict

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomem/gomem/internal/libm"
)

// Sampling says how texts are continued. The zero value takes the likeliest token
// each time, to the end of the decoder's room.
type Sampling struct {
	Tokens      int     // to write, at most; 0: as many as there is room for
	Temperature float64 // that logits are divided by, finite; 0: the likeliest token, always
	TopK        int     // draw among so many of the likeliest; 0: all
	TopP        float64 // draw among the fewest that have this share together; 0 or 1: all
	Seed        uint64
	Ends        []int32 // tokens that end a text
	First       int     // the number of the first text of the call, for what is drawn
}

// Validate reports the first field that nothing can be drawn with.
func (s Sampling) Validate() error {
	switch {
	case s.Tokens < 0:
		return fmt.Errorf("%d tokens: want 1 or more", s.Tokens)
	case !(s.Temperature >= 0 && s.Temperature <= math.MaxFloat64):
		return fmt.Errorf("temperature of %v: want a finite number from 0, such as 0.8",
			s.Temperature)
	case s.TopK < 0 || s.First < 0:
		return fmt.Errorf("top %d: want 1 or more", s.TopK)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return fmt.Errorf("top share of %v: want a number from 0 to 1", s.TopP)
	}
	return nil
}

// pick chooses a token by its logits.
func (s Sampling) pick(logits []float32, rng *rand.Rand) int32 {
	k := len(logits)
	switch {
	case s.Temperature == 0:
		k = 1
	case s.TopK > 0:
		k = min(k, s.TopK)
	}
	top := ranked(logits, k)
	if len(top) == 0 {
		return 0 // there is no number
	}
	if len(top) == 1 || math.IsInf(float64(logits[top[0]]), 0) {
		return int32(top[0]) // nothing is as likely, or nothing is likely
	}
	weights, sum := make([]float64, len(top)), 0.0
	for i, id := range top {
		weights[i] = libm.Exp((float64(logits[id]) - float64(logits[top[0]])) / s.Temperature)
		sum += weights[i]
	}
	if s.TopP > 0 && s.TopP < 1 {
		weights, sum = nucleus(weights, s.TopP*sum)
	}
	at := float64(rng.Float64() * sum)
	for i, w := range weights {
		if at -= w; at < 0 {
			return int32(top[i])
		}
	}
	return int32(top[len(weights)-1])
}

// nucleus is the fewest of the first weights that make up a sum, and their own sum.
func nucleus(weights []float64, want float64) ([]float64, float64) {
	sum := 0.0
	for i, w := range weights {
		if sum += w; sum >= want {
			return weights[:i+1], sum
		}
	}
	return weights, sum
}

// ranked is [likeliest], for any k.
func ranked(x []float32, k int) []int {
	if k <= 64 {
		return likeliest(x, k)
	}
	var all []int
	for i, v := range x {
		if v == v {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		switch {
		case x[a] > x[b]:
			return -1
		case x[a] < x[b]:
			return 1
		}
		return 0
	})
	return all[:min(k, len(all))]
}

// reader is a scorer that also takes several tokens of each row at once.
type reader interface {
	scorer
	// sizes are the numbers of tokens of a row that it takes at once, by falling
	// number; the last is 1.
	sizes() []int
	// read is step for n tokens a row, n one of the sizes: tokens are [rows n].
	read(ctx context.Context, n int, tokens []int32, position int) ([]float32, error)
}

// continuation is the continuing of prompts, a row each.
type continuation struct {
	Sampling
	room    int
	prompts [][]int32
	rngs    []*rand.Rand
	written [][]int32
	ended   []bool
	emit    func(row int, token int32)
}

// proceed continues prompts, none of which is empty or fills the room, with a row
// each. first numbers the first of them in its call. emit may be nil; it gets every
// token as it is written.
func proceed(ctx context.Context, d reader, prompts [][]int32, room, first int, o Sampling,
	emit func(row int, token int32)) ([]Text, error) {
	c := &continuation{Sampling: o, room: room, prompts: prompts, emit: emit,
		written: make([][]int32, len(prompts)), ended: make([]bool, len(prompts))}
	for i := range prompts {
		c.rngs = append(c.rngs, rand.New(rand.NewPCG(o.Seed, uint64(first+i))))
	}
	position, logits, err := c.prefill(ctx, d)
	for err == nil && position < room && !c.finished() {
		tokens := make([]int32, len(prompts))
		for row := range tokens {
			tokens[row] = c.next(row, position, logits[row])
		}
		if c.finished() {
			break
		}
		logits, err = c.read(ctx, d, 1, tokens, position)
		position++
	}
	if err != nil {
		return nil, err
	}
	if position == room { // the last token that there is room to say
		for row := range prompts {
			c.next(row, position, logits[row])
		}
	}
	texts := make([]Text, len(prompts))
	for i := range texts {
		texts[i] = Text{Tokens: c.written[i], Ended: c.ended[i]}
	}
	return texts, nil
}

// prefill reads what all prompts have, in as few steps as fit.
func (c *continuation) prefill(ctx context.Context, d reader) (position int, logits [][]float32,
	err error) {
	common := len(c.prompts[0])
	for _, p := range c.prompts {
		common = min(common, len(p))
	}
	for position < common {
		n := stepFor(d.sizes(), position, common)
		position = min(position, common-n)
		var tokens []int32
		for _, p := range c.prompts {
			tokens = append(tokens, p[position:position+n]...)
		}
		if logits, err = c.read(ctx, d, n, tokens, position); err != nil {
			return 0, nil, err
		}
		position += n
	}
	return position, logits, nil
}

// stepFor is the size of the step that reads on at a position of so many tokens: the largest that
// fits, or the next larger one if at least half of it is new. That one begins with tokens that were
// read before, whose keys and values it writes once more where they are: a step reads all weights,
// and takes little longer for more tokens.
func stepFor(sizes []int, position, tokens int) int {
	left := tokens - position
	for i := len(sizes) - 1; i >= 0; i-- {
		n := sizes[i]
		if n >= left && n <= 2*left && n <= tokens {
			return n
		}
	}
	for _, n := range sizes {
		if n <= left {
			return n
		}
	}
	return 1
}

// read is the logits by row.
func (c *continuation) read(ctx context.Context, d reader, n int, tokens []int32,
	position int) ([][]float32, error) {
	flat, err := d.read(ctx, n, tokens, position)
	if err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(flat, len(flat)/len(c.prompts))), nil
}

// next is the token of a row at a position, of the prompt or a new one.
func (c *continuation) next(row, position int, logits []float32) int32 {
	prompt := c.prompts[row]
	if position < len(prompt) {
		return prompt[position]
	}
	if c.over(row) {
		return 0 // nobody reads what follows
	}
	token := c.pick(logits, c.rngs[row])
	if slices.Contains(c.Ends, token) {
		c.ended[row] = true
		return token
	}
	c.written[row] = append(c.written[row], token)
	if c.emit != nil {
		c.emit(row, token)
	}
	return token
}

// over reports whether a row writes no more.
func (c *continuation) over(row int) bool {
	return c.ended[row] || c.Tokens > 0 && len(c.written[row]) >= c.Tokens
}

// finished reports whether no row writes more.
func (c *continuation) finished() bool {
	for row := range c.prompts {
		if !c.over(row) {
			return false
		}
	}
	return true
}
