// Beam finds the likeliest texts of a model of letters by beam search, which is a loop of the
// graph: it is one operation of the plan, and ends when all texts have.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
)

const (
	alphabet = " abcdefghijklmnopqrstuvwxyz." // a text begins after two blanks, and ends with a dot

	vocab, room, beams, budget = len(alphabet), 24, 6, 1 << 20
)

var names = strings.Fields(`monday tuesday wednesday thursday friday saturday sunday january
	february march april may june july august september october november december`)

// model is the logarithm of each letter's probability after two others: table[a·vocab+b][c].
func model() gomem.Tensor {
	t := gomem.NewTensor(graph.Of(graph.F32, vocab*vocab, vocab))
	for _, name := range names {
		a, b := 0, 0
		for _, letter := range name + "." {
			c := strings.IndexRune(alphabet, letter)
			t.F32()[(a*vocab+b)*vocab+c]++
			a, b = b, c
		}
	}
	for i := range vocab * vocab {
		row, sum := t.F32()[i*vocab:][:vocab], float32(0)
		if i%vocab == vocab-1 {
			row[vocab-1]++ // what has ended goes on with dots
		}
		for _, count := range row {
			sum += count
		}
		for c, count := range row {
			row[c] = float32(max(-1e9, math.Log(float64(count/max(sum, 1)))))
		}
	}
	return t
}

// search is the loop: of all texts that are a letter longer, it goes on with the likeliest.
// It gives the texts, i32[beams room], their logarithms, f32[beams], and its steps, i32[].
func search(table graph.Value) []graph.Value {
	g := table.Graph()
	first := gomem.NewTensor(graph.Of(graph.F32, beams))
	for i := range first.F32()[1:] {
		first.F32()[1+i] = -1e9 // the first text is there once
	}
	zeros := func(sizes ...int) graph.Value { return ops.Zeros(g, graph.Of(graph.I32, sizes...)) }
	states := []graph.Value{zeros(beams, room), g.Constant("first", first), zeros(beams), zeros()}
	last, steps := control.While([]graph.Value{table}, states, room, unfinished, lengthen)
	return append(last[:2], steps)
}

// whole is an integer of a type.
func whole(like graph.Value, n int) graph.Value {
	return ops.Full(like.Graph(), like.Type(), float32(n))
}

// unfinished says whether the last letter of any text is no dot.
func unfinished(_, states []graph.Value) graph.Value {
	letters := ops.Mod(states[2], whole(states[2], vocab))
	return ops.Any(ops.NotEqual(letters, whole(letters, vocab-1)))
}

// lengthen has the states: texts, scores, each text's last two letters, and the place to write to.
func lengthen(same, states []graph.Value) []graph.Value {
	all := ops.Add(ops.Embedding(same[0], states[2]), ops.ExpandDims(states[1], 1))
	scores, at := ops.TopK(ops.ReshapeSizes(all, beams*vocab), beams)
	parent, letters := ops.Div(at, whole(at, vocab)), ops.Mod(at, whole(at, vocab))
	texts := ops.PutAt(ops.Take(states[0], parent, 0), ops.ExpandDims(letters, 1), states[3], 1)
	before := ops.Mod(ops.Take(states[2], parent, 0), whole(at, vocab))
	return []graph.Value{texts, scores, ops.Add(ops.Mul(before, whole(at, vocab)), letters),
		ops.Add(states[3], whole(states[3], 1))}
}

// spelt is a text of letters' numbers.
func spelt(ids []int32) string {
	var text strings.Builder
	for _, id := range ids {
		text.WriteByte(alphabet[id])
	}
	return strings.TrimRight(text.String(), ". ")
}

// run searches.
func run(ctx context.Context) ([]gomem.Tensor, error) {
	g := graph.New()
	table := g.Input("table", graph.Of(graph.F32, vocab*vocab, vocab))
	s, err := gomem.Compile(ctx, g, gomem.Options{Policy: "auto", DeviceBytes: budget},
		gomem.Target{Name: "search", Fetches: search(table)})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Step(ctx, "search", gomem.Feeds{table: model()})
}

func main() {
	out, err := run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for i, score := range out[1].F32() {
		fmt.Printf("%.4f %s\n", math.Exp(float64(score)), spelt(out[0].I32()[i*room:][:room]))
	}
	fmt.Println(out[2].I32()[0], "steps of", room)
}
