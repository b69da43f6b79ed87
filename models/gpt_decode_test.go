package models

import (
	"math"
	"slices"
	"testing"
)

// cutsOfPrompts are ways to read so many tokens, by steps of which the last may begin with tokens
// that were read before: one by one, what fits, and as few as there can be.
func cutsOfPrompts(tokens int) map[string][]int {
	cuts := map[string][]int{"one by one": slices.Repeat([]int{1}, tokens)}
	var fit []int
	for left, i := tokens, 0; left > 0; {
		if n := gptSteps[i]; n <= left {
			fit, left = append(fit, n), left-n
		} else {
			i++
		}
	}
	cuts["what fits"] = fit
	for _, n := range gptSteps {
		if n <= tokens {
			cuts["as few as can be"] = slices.Repeat([]int{n}, (tokens+n-1)/n)
			break
		}
	}
	return cuts
}

// TestPromptsInAnyCuts: the logits after a prompt depend by rounding alone on the steps that it is
// read in, also where the last begins with tokens that were read before, near the start of a window
// or of the text. Where matrices are multiplied as integers, what is rounded to them may be another
// one: attention to several tokens adds up in another order than to one.
func TestPromptsInAnyCuts(t *testing.T) {
	for _, format := range []string{"", "q4_k"} {
		for _, window := range []int{0, 7} {
			c := gptConfig(t, "s512", LlamaBlocks)
			c.Width, c.Hidden, c.Vocab, c.Length, c.Store = 256, 256, 40, 66, format
			if c.Window = window; window > 0 {
				c.Family = "mistral"
			}
			d, err := DecodeGPT(c, 1)
			if err != nil {
				t.Fatal(err)
			}
			run := newDecoding(t, d)
			room := 1e-5
			if format != "" {
				room = 1e-4
			}
			for _, n := range []int{1, 2, 3, 31, 63, 64, 65, 66} {
				var first []float32
				for _, name := range []string{"one by one", "what fits", "as few as can be"} {
					got := prompted(t, run, n, cutsOfPrompts(n)[name])
					if first == nil {
						first = got
					}
					for i := range got {
						if !(math.Abs(float64(got[i]-first[i])) <= room) {
							t.Fatalf("%q, window %d, %d tokens, %s: logit %d is %v, one by one %v",
								format, window, n, name, i, got[i], first[i])
						}
					}
				}
			}
		}
	}
}

// prompted are the logits after so many tokens, by steps of which the last ends with them. The
// caches have something else before.
func prompted(t *testing.T, d *decoding, tokens int, steps []int) []float32 {
	t.Helper()
	for _, n := range d.Graph.Variables() {
		for _, m := range d.machines {
			if n.State {
				for i := range m.Value(n.Value(0)).F32() {
					m.Value(n.Value(0)).F32()[i] = 100
				}
			}
		}
	}
	var logits []float32
	at := 0
	for _, n := range steps {
		at = min(at, tokens-n)
		var next []int32
		for i := range n {
			next = append(next, int32(7*(at+i)+3)%int32(d.Vocab))
		}
		logits = d.step(t, next, at, []int32{0})
		at += n
	}
	return slices.Clone(logits)
}
