package models

import (
	"math"
	"slices"
	"testing"
)

// TestPackedDocuments: a document's losses are the same in a row with others as alone.
func TestPackedDocuments(t *testing.T) {
	for _, blocks := range []string{GPT2Blocks, LlamaBlocks, "windows", "scaled"} {
		c := gptConfig(t, "s512", LlamaBlocks)
		switch blocks {
		case GPT2Blocks:
			c = gptConfig(t, "s512", GPT2Blocks)
		case "windows":
			c.Family, c.Window = "mistral", 3
		case "scaled":
			c.Rotary = RotaryScaling{Kind: "linear", Factor: 4}
		}
		c.Texts, c.Length, c.Packed = 1, 12, true
		c.Dropout = 0
		sizes := []int32{5, 4, 2} // and one of padding
		var all, targets, positions []int32
		for _, n := range sizes {
			for i := range n {
				all = append(all, (7*int32(len(all))+3)%int32(c.Vocab))
				targets, positions = append(targets, all[len(all)-1]+1), append(positions, i)
			}
		}
		all, targets, positions = append(all, 0), append(targets, NoTarget), append(positions, 0)
		got := positionLosses(t, c, all, targets, positions)
		at := int32(0)
		for _, n := range sizes {
			alone := c
			alone.Packed, alone.Length = false, int(n)
			want := positionLosses(t, alone, all[at:at+n], targets[at:at+n], nil)
			for i, x := range want {
				if math.Abs(float64(got[int(at)+i]-x)) > 1e-5 {
					t.Errorf("%s: token %d of the document at %d has loss %v, alone %v", blocks, i,
						at, got[int(at)+i], x)
				}
			}
			at += n
		}
	}
}

// positionLosses are the losses of an evaluation of one text.
func positionLosses(t *testing.T, c GPTConfig, tokens, targets, positions []int32) []float32 {
	t.Helper()
	m := buildGPT(t, c)
	x := newMachine(t, m, false, m.EvalLoss, m.EvalOutputs[0])
	for i, ids := range [][]int32{tokens, targets, positions} {
		if ids != nil {
			copy(x.Value(m.Data[i]).I32(), ids)
		}
	}
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(x.Value(m.EvalOutputs[0]).F32())
}
