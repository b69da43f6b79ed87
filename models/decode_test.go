package models

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/reference"
)

// TestTablesInParts: a decoder whose embedding is read in parts has the logits of one
// that reads it whole.
func TestTablesInParts(t *testing.T) {
	transformer, err := NewTransformerConfig("s512")
	if err != nil {
		t.Fatal(err)
	}
	moe := config(t, "s512")
	for name, decoder := range map[string]func(partBytes int) (*Decoder, error){
		"transformer": func(n int) (*Decoder, error) {
			return decodeTransformer(transformer, 2, 2, n)
		},
		"moe": func(n int) (*Decoder, error) { return decodeMoE(moe, 2, 2, n) },
	} {
		whole, err := decoder(partBytes)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := decoder(10 * 1000)
		if err != nil {
			t.Fatal(err)
		}
		if err := parts.Graph.Verify(); err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, n := range parts.Graph.Nodes() {
			if n.OpName() == "embedding-part" {
				count++
			}
		}
		if want := 2 * partsOf(parts.Vocab, 32, 10*1000); count != want || want < 4 {
			t.Errorf("%s: %d parts are looked up, want %d", name, count, want)
		}
		a, b := oneStep(t, whole), oneStep(t, parts)
		rng := rand.New(rand.NewPCG(1, 2))
		for at := range 5 {
			tokens, parents := make([]int32, 4), []int32{1, 1, 2, 3}
			for i := range tokens {
				tokens[i] = int32(rng.IntN(whole.Vocab))
			}
			want := slices.Clone(a(tokens, at, parents))
			compareLogits(t, name, b(tokens, at, parents), want)
		}
	}
}

// oneStep executes a decoder's step of one token, without a source.
func oneStep(t *testing.T, d *Decoder) func(tokens []int32, at int, parents []int32) []float32 {
	t.Helper()
	s := d.Steps[len(d.Steps)-1]
	threads := pool.New(1)
	t.Cleanup(threads.Close)
	roots := []graph.NodeID{s.Logits.Node.ID, s.Parent.Node.ID}
	for _, n := range s.Updates {
		roots = append(roots, n.ID)
	}
	live := d.Graph.Ancestors(roots)
	r, err := reference.New(d.Graph, live, threads)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range d.Graph.Variables() {
		if live[n.ID] && !n.State {
			machine{Machine: r}.fill(n)
		}
	}
	return func(tokens []int32, at int, parents []int32) []float32 {
		copy(r.Value(s.Tokens).I32(), tokens)
		r.Value(s.Position).I32()[0] = int32(at)
		copy(r.Value(s.Parent).I32(), parents)
		if err := r.Step(); err != nil {
			t.Fatal(err)
		}
		return r.Value(s.Logits).F32()
	}
}
