package speech

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
)

// drawnLogits are logits of one utterance, in which few symbols are likely.
func drawnLogits(seed uint64, frames int, likely ...int) tensor.View {
	rng := rand.New(rand.NewPCG(seed, 1))
	v := tensor.New(tensor.Of(tensor.F32, frames, 1, Symbols))
	for i := range v.F32() {
		v.F32()[i] = -50
	}
	for f := range frames {
		for _, symbol := range likely {
			v.F32()[f*Symbols+symbol] = float32(rng.NormFloat64())
		}
	}
	return v
}

// probabilities adds up the sequences of every text, by brute force.
func probabilities(logits tensor.View, symbols []int) map[string]float64 {
	out := map[string]float64{}
	var visit func(f int, read []int32, p float64)
	visit = func(f int, read []int32, p float64) {
		if f == logits.Type.Size(0) {
			out[English().Text(slices.Compact(slices.Clone(read)))] += p
			return
		}
		row := logShares(logits.F32()[f*Symbols:][:Symbols])
		for _, s := range symbols {
			visit(f+1, append(slices.Clone(read), int32(s)), p*math.Exp(row[s]))
		}
	}
	visit(0, nil, 1)
	return out
}

// TestBeamFindsTheLikeliest: with room for all, the search finds the likeliest text,
// whose probability is that of all its sequences.
func TestBeamFindsTheLikeliest(t *testing.T) {
	longtest.Skip(t)
	symbols := []int{1, 2, Symbols - 1}
	better := 0
	for seed := range uint64(30) {
		logits := drawnLogits(seed, 6, symbols...)
		all := probabilities(logits, symbols)
		got, err := English().DecodeBeam(logits, []int32{6}, 500)
		if err != nil {
			t.Fatal(err)
		}
		for text, p := range all {
			if p > all[got[0]]+1e-9 {
				t.Errorf("seed %d: %q with %v, but %q has %v", seed, got[0], all[got[0]], text, p)
			}
		}
		greedy, err := English().DecodeBeam(logits, []int32{6}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if all[got[0]] > all[greedy[0]]+1e-9 {
			better++
		}
	}
	if better == 0 {
		t.Error("the likeliest sequence was always of the likeliest text: nothing was tested")
	}
}

// TestBeamEdges: no frames, several utterances, and what is refused.
func TestBeamEdges(t *testing.T) {
	one := drawnLogits(1, 4, 3, Symbols-1)
	two := tensor.New(tensor.Of(tensor.F32, 4, 2, Symbols))
	for f := range 4 {
		for k := range 2 {
			copy(two.F32()[(2*f+k)*Symbols:], one.F32()[f*Symbols:][:Symbols])
		}
	}
	alone, err := English().DecodeBeam(one, []int32{4}, 8)
	both, err2 := English().DecodeBeam(two, []int32{4, 0}, 8)
	if err != nil || err2 != nil || both[0] != alone[0] || both[1] != "" {
		t.Errorf("%q, %v; %q, %v", alone, err, both, err2)
	}
	if _, err := English().DecodeBeam(one, []int32{5}, 8); err == nil {
		t.Error("more frames than there are")
	}
	if _, err := English().DecodeBeam(one, []int32{4}, maxBeam+1); err == nil ||
		!strings.Contains(err.Error(), "beam of 4097") {
		t.Errorf("%v", err)
	}
}
