package predict

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// oracle is a model of texts whose logits are drawn anew after every text, and follow
// from it. It remembers what its rows have read.
type oracle struct {
	seed  uint64
	vocab int
	rows  [][]int32
	steps []int
	fails bool
}

func newOracle(seed uint64, vocab, rows int, steps ...int) *oracle {
	return &oracle{seed: seed, vocab: vocab, rows: make([][]int32, rows), steps: steps}
}

// logits are those after a text.
func (o *oracle) logits(text []int32) []float32 {
	h := fnv.New64a()
	for _, id := range text {
		h.Write([]byte{byte(id), byte(id >> 8)})
	}
	rng := rand.New(rand.NewPCG(o.seed, h.Sum64()))
	out := make([]float32, o.vocab)
	for i := range out {
		out[i] = float32(math.Round(6*rng.NormFloat64()) / 2) // ties are common
	}
	return out
}

func (o *oracle) step(_ context.Context, tokens []int32, position int,
	parents []int32) ([]float32, error) {
	if o.fails {
		return nil, errors.New("the oracle is silent")
	}
	before := slices.Clone(o.rows)
	var out []float32
	for i := range o.rows {
		o.rows[i] = append(slices.Clone(before[parents[i]][:position]), tokens[i])
		out = append(out, o.logits(o.rows[i])...)
	}
	return out, nil
}

func (o *oracle) sizes() []int { return o.steps }

func (o *oracle) read(_ context.Context, n int, tokens []int32, position int) ([]float32, error) {
	var out []float32
	for i := range o.rows {
		o.rows[i] = append(slices.Clone(o.rows[i][:position]), tokens[i*n:][:n]...)
		out = append(out, o.logits(o.rows[i])...)
	}
	return out, nil
}

// score is that of a text by definition.
func (o *oracle) score(s Search, start int32, text []int32) float64 {
	logp := 0.0
	read := []int32{start}
	for _, id := range text {
		row := o.logits(read)
		logp += float64(row[id]) - logSum(row)
		read = append(read, id)
	}
	return logp / s.divisor(len(text))
}

// greedily takes the likeliest token, the first of several, until an end.
func (o *oracle) greedily(start int32, ends []int32, limit int) (text []int32) {
	for len(text) < limit {
		row := o.logits(append([]int32{start}, text...))
		id := int32(slices.Index(row, slices.Max(row)))
		text = append(text, id)
		if slices.Contains(ends, id) {
			break
		}
	}
	return text
}

// every visits every text up to a limit: those that end, and those that have no room.
func every(vocab, limit int, ends, text []int32, visit func([]int32)) {
	for id := range int32(vocab) {
		next := append(slices.Clone(text), id)
		if slices.Contains(ends, id) || len(next) == limit {
			visit(next)
		} else {
			every(vocab, limit, ends, next, visit)
		}
	}
}

// whole is a text with the end that it has lost.
func whole(text Text, o *oracle, start int32, ends []int32, s Search) []int32 {
	if !text.Ended {
		return text.Tokens
	}
	best, most := []int32(nil), math.Inf(-1)
	for _, end := range ends {
		t := append(slices.Clone(text.Tokens), end)
		if score := o.score(s, start, t); score > most {
			best, most = t, score
		}
	}
	return best
}

// TestSearchLaws: a beam of 1 is greedy search; no beam is worse; one that has room for
// every text finds the best; scores are those of the texts.
func TestSearchLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		vocab, limit := rapid.IntRange(2, 5).Draw(t, "vocab"), rapid.IntRange(1, 5).Draw(t, "limit")
		n := rapid.IntRange(1, 3).Draw(t, "texts")
		ends := []int32{1, 0}[:rapid.IntRange(1, 2).Draw(t, "ends")]
		penalty := rapid.SampledFrom([]float64{0, 0.6, 1, 3}).Draw(t, "penalty")
		const start = 0
		for _, beams := range []int{1, 2, 3, 700} {
			s := Search{Beams: beams, Penalty: penalty}
			if beams == 1 {
				s.Beams = 0
			}
			o := newOracle(seed, vocab, n*beams)
			got, err := search(context.Background(), o, n, limit, start, ends, s)
			if err != nil {
				t.Fatal(err)
			}
			greedy := o.greedily(start, ends, limit)
			text := whole(got[0], o, start, ends, s)
			switch {
			case len(got) != n || math.Abs(got[0].Score-o.score(s, start, text)) > 1e-9:
				t.Fatalf("beam %d: %+v, its score is %v", beams, got, o.score(s, start, text))
			case beams == 1 && !slices.Equal(got[0].Tokens, withoutEnd(greedy, ends)):
				t.Fatalf("beam of 1 %v, greedy %v", got[0], greedy)
			case got[0].Score < o.score(s, start, greedy)-1e-12:
				t.Fatalf("beam %d: %v is worse than greedy %v", beams, got[0], greedy)
			}
			if best := o.best(s, start, ends, limit); beams == 700 &&
				math.Abs(got[0].Score-best) > 1e-9 {
				t.Fatalf("beam of all: %v, the best is %v", got[0], best)
			}
		}
	})
}

// best is the score of the best text.
func (o *oracle) best(s Search, start int32, ends []int32, limit int) float64 {
	best := math.Inf(-1)
	every(o.vocab, limit, ends, nil, func(text []int32) {
		best = max(best, o.score(s, start, text))
	})
	return best
}

func withoutEnd(text, ends []int32) []int32 {
	if n := len(text); n > 0 && slices.Contains(ends, text[n-1]) {
		return text[:n-1]
	}
	return text
}

// TestSearchEdges: limits, failures and logits without numbers.
func TestSearchEdges(t *testing.T) {
	ctx := context.Background()
	o := newOracle(3, 5, 2)
	got, err := search(ctx, o, 1, 9, 0, nil, Search{Beams: 2, Tokens: 4})
	if err != nil || len(got[0].Tokens) != 4 || got[0].Ended {
		t.Errorf("without an end: %v, %v", got, err)
	}
	o.fails = true
	if _, err := search(ctx, o, 1, 9, 0, nil, Search{Beams: 2}); err == nil {
		t.Error("a failure is passed over")
	}
	nan := float32(math.NaN())
	if got := likeliest([]float32{nan, 1, nan, 3, 1}, 9); !slices.Equal(got, []int{3, 1, 4}) {
		t.Errorf("likeliest %v", got)
	}
	s := &sentence{Search: Search{Beams: 2}, limit: 5, alive: []hypothesis{{tokens: []int32{0}}}}
	s.advance([]float32{nan, nan, nan, nan}, 2)
	if !s.done() || len(s.best().Tokens) != 0 {
		t.Errorf("no numbers: %+v", s)
	}
}

// TestContinue: greedy continuations are greedy texts after their prompts, whatever is
// beside them and whatever steps prompts are read in.
func TestContinue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		const vocab, room = 6, 12
		n := rapid.IntRange(1, 4).Draw(t, "texts")
		var prompts [][]int32
		for range n {
			prompts = append(prompts, rapid.SliceOfN(rapid.Int32Range(0, vocab-1), 1,
				room-1).Draw(t, "prompt"))
		}
		steps := rapid.SampledFrom([][]int{{1}, {4, 1}, {8, 3, 1}}).Draw(t, "steps")
		s := Sampling{Ends: []int32{1}, Tokens: rapid.IntRange(0, 6).Draw(t, "tokens")}
		o := newOracle(seed, vocab, n, steps...)
		emitted := make([][]int32, n)
		got, err := proceed(context.Background(), o, prompts, room, 0, s,
			func(row int, token int32) { emitted[row] = append(emitted[row], token) })
		if err != nil {
			t.Fatal(err)
		}
		for i, prompt := range prompts {
			want, read, ended := []int32(nil), slices.Clone(prompt), false
			for len(read) <= room && (s.Tokens == 0 || len(want) < s.Tokens) && !ended {
				row := o.logits(read)
				id := int32(slices.Index(row, slices.Max(row)))
				if ended = id == 1; !ended {
					want, read = append(want, id), append(read, id)
				}
			}
			if !slices.Equal(got[i].Tokens, want) || got[i].Ended != ended ||
				!slices.Equal(emitted[i], want) {
				t.Fatalf("after %v: %v, want %v, ended %t", prompt, got[i], want, ended)
			}
		}
	})
}

// TestStepsOfPrompts: a prompt is read to its end, by steps within it that leave no gap, in no more
// of them than the largest that fit one after the other.
func TestStepsOfPrompts(t *testing.T) {
	for _, sizes := range [][]int{{64, 16, 4, 1}, {8, 3, 1}, {1}} {
		for tokens := 1; tokens < 300; tokens++ {
			steps, plain := 0, 0
			for position := 0; position < tokens; steps++ {
				n := stepFor(sizes, position, tokens)
				if !slices.Contains(sizes, n) || n > tokens {
					t.Fatalf("a step of %d at %d of %d", n, position, tokens)
				}
				position = min(position+n, tokens)
			}
			rest := tokens
			for _, n := range sizes {
				plain, rest = plain+rest/n, rest%n
			}
			if steps > plain || sizes[0] == 64 && tokens == 127 && steps != 2 {
				t.Errorf("%d tokens by %v take %d steps, by what fits %d", tokens, sizes, steps,
					plain)
			}
		}
	}
}

// TestSampling: what is drawn follows from the seed, stays within the limits, and comes
// as often as it is likely.
func TestSampling(t *testing.T) {
	logits := []float32{0, 2, 1, float32(math.NaN()), -3}
	count := func(s Sampling) (n [5]int) {
		rng := rand.New(rand.NewPCG(1, 1))
		for range 20000 {
			n[s.pick(logits, rng)]++
		}
		return n
	}
	if n := count(Sampling{}); n != [5]int{0, 20000, 0, 0, 0} {
		t.Errorf("greedy: %v", n)
	}
	if n := count(Sampling{Temperature: 1, TopK: 2}); n[0]+n[3]+n[4] > 0 || n[2] == 0 {
		t.Errorf("of the best two: %v", n)
	}
	// e², e and 1 of e²+e+1+e⁻³: 0.66, 0.24, 0.09
	if n := count(Sampling{Temperature: 1, TopP: 0.7}); n[0]+n[3]+n[4] > 0 || n[2] == 0 {
		t.Errorf("of a share of 0.7: %v", n)
	}
	if n := count(Sampling{Temperature: 1, TopP: 1e-9}); n[1] != 20000 {
		t.Errorf("of no share: %v", n)
	}
	n := count(Sampling{Temperature: 1})
	for i, want := range []float64{0.0896, 0.662, 0.2435, 0, 0.00446} {
		if got := float64(n[i]) / 20000; math.Abs(got-want) > 0.015 {
			t.Errorf("%d comes with %v, want %v", i, got, want)
		}
	}
	if hot := count(Sampling{Temperature: 100}); hot[4] < 4000 {
		t.Errorf("very hot: %v", hot)
	}
	for _, heat := range []float64{1e7, 1e300, math.MaxFloat64} {
		s := Sampling{Temperature: heat, TopP: 1}
		if err := s.Validate(); err != nil {
			t.Errorf("temperature %v: %v", heat, err)
		}
		for i, n := range count(s) {
			want := 0.25
			if i == 3 {
				want = 0 // it is no number
			}
			if share := float64(n) / 20000; math.Abs(share-want) > 0.05*want {
				t.Errorf("temperature %v: %d comes with %v, want %v", heat, i, share, want)
			}
		}
	}
	if n := count(Sampling{Temperature: math.SmallestNonzeroFloat64}); n[1] != 20000 {
		t.Errorf("nearly no temperature: %v", n)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, sign := range []int{1, -1} {
		none := float32(math.Inf(sign))
		if got := (Sampling{Temperature: 1}).pick([]float32{none, none}, rng); got != 0 {
			t.Errorf("of %v: %d", none, got)
		}
	}
	long := make([]float32, 500)
	for i := range long {
		long[i] = float32((i*7 + 3) % 500)
	}
	if a, b := ranked(long, 60), ranked(long, 100); !slices.Equal(a, b[:60]) {
		t.Errorf("ranked %v, %v", a, b[:60])
	}
	for _, s := range []Sampling{{Tokens: -1}, {Temperature: -1}, {Temperature: math.NaN()},
		{Temperature: math.Inf(1)}, {TopK: -1}, {TopP: 1.5}, {TopP: math.NaN()}} {
		if err := s.Validate(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// TestSeeds: rows draw from sources of their own, which their place in the call
// selects.
func TestSeeds(t *testing.T) {
	draw := func(first int, rows int) [][]int32 {
		o := newOracle(1, 40, rows, 1)
		prompts := slices.Repeat([][]int32{{7, 7}}, rows)
		texts, err := proceed(context.Background(), o, prompts, 20, first,
			Sampling{Temperature: 2, Seed: 4}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out [][]int32
		for _, text := range texts {
			out = append(out, text.Tokens)
		}
		return out
	}
	all := draw(0, 3)
	if slices.Equal(all[0], all[1]) || slices.Equal(all[1], all[2]) {
		t.Errorf("rows draw alike: %v", all)
	}
	if alone := draw(1, 1); !slices.Equal(alone[0], all[1]) {
		t.Errorf("alone %v, among others %v", alone[0], all[1])
	}
}
