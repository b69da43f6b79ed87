// Gpt learns to count: a decoder-only Transformer reads numbers in words, letter by
// letter, and then goes on counting where a text ends.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/train"
)

const (
	vocab, length, width, heads, layers = 128, 64, 64, 4, 2

	batch, budget = 16, 2 << 20
)

// network predicts each letter's successor.
func network() *nn.Model {
	m := nn.NewModel()
	x, y := m.Input("x", graph.I32, batch, length), m.Input("y", graph.I32, batch, length)
	net := func(c *nn.Ctx) graph.Value {
		h := nn.Positions(c.In("positions"), nn.Embedding(c.In("letters"), x, vocab, width), length)
		for i := range layers {
			block := c.In(fmt.Sprint("block", i))
			norm := nn.LayerNorm(block.In("norm0"), h)
			h = ops.Add(h, nn.Attention(block.In("attention"), norm,
				nn.AttentionOptions{Heads: heads, Causal: true}))
			norm = nn.LayerNorm(block.In("norm1"), h)
			wide := nn.Gelu(nn.Linear(block.In("wide"), norm, 4*width))
			h = ops.Add(h, nn.Linear(block.In("narrow"), wide, width))
		}
		return nn.Linear(c.In("out"), nn.LayerNorm(c.In("norm"), h), vocab)
	}
	m.Minimize(nn.CrossEntropy(net(m.Training()), y), nn.Adam{},
		nn.MinimizeOptions{Rate: nn.CosineDecay{Rate: 0.004, Warmup: 50, Total: 1600}})
	logits := net(m.Evaluation())
	m.Evaluate(nn.CrossEntropy(logits, y), nn.Accuracy(logits, y))
	m.Output(ops.ArgMax(logits, -1))
	return m
}

var ones = strings.Fields(`zero one two three four five six seven eight nine ten eleven twelve
	thirteen fourteen fifteen sixteen seventeen eighteen nineteen`)
var tens = strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")

// spell is a number below a thousand in words.
func spell(n int) string {
	switch {
	case n < 20:
		return ones[n]
	case n < 100:
		return strings.TrimSuffix(tens[n/10]+"-"+ones[n%10], "-zero")
	}
	return strings.TrimSuffix(ones[n/100]+" hundred "+spell(n%100), " zero")
}

// windows are the letters of the numbers up to a thousand, and their successors.
func windows() (*data.Examples, error) {
	var text strings.Builder
	for n := range 1000 {
		text.WriteString(spell(n) + ", ")
	}
	ids := graph.Of(graph.I32, length)
	return data.FromFunc(data.ExamplesOptions{Batch: batch}, (text.Len()-1)/length*4-4,
		func(i int, row []gomem.Tensor) {
			for k := range length {
				row[0].I32()[k] = int32(text.String()[i*length/4+k])
				row[1].I32()[k] = int32(text.String()[i*length/4+k+1])
			}
		}, ids, ids)
}

// generate appends letters to a text, each the likeliest after those before it.
func generate(ctx context.Context, s *gomem.Session, m *nn.Model, text string, letters int) (string,
	error) {
	x, y := gomem.NewTensor(m.Data[0].Type()), gomem.NewTensor(m.Data[1].Type())
	for range letters {
		context := text[max(0, len(text)-length):]
		for i, letter := range []byte(context) {
			x.I32()[i] = int32(letter)
		}
		out, err := s.Step(ctx, "eval", gomem.Feeds{m.Data[0]: x, m.Data[1]: y})
		if err != nil {
			return "", err
		}
		text += string(rune(out[len(out)-1].I32()[len(context)-1]))
	}
	return text, nil
}

func main() {
	m := network()
	batches, err := windows()
	if err == nil {
		_, err = train.Run(context.Background(), train.Options{
			Model: m, Loader: batches, Steps: 1600, EvalEvery: 200,
			Session: gomem.Options{Policy: "auto", DeviceBytes: budget},
			Observe: train.Show(os.Stdout),
			After: func(ctx context.Context, s *gomem.Session) error {
				text, err := generate(ctx, s, m, "four hundred twenty-eight, ", 70)
				fmt.Println(text)
				return err
			},
		})
	}
	if err != nil {
		log.Fatal(err)
	}
}
