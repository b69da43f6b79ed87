// Gpt is examples/gpt with GoMLX and its ready Transformer.
package main

import (
	"fmt"
	"log"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/dataset"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/gomlx/gomlx/ml/train/optimizer/cosineschedule"
	"github.com/gomlx/gomlx/ml/zoo/transformer"
)

const (
	vocab, length, width, heads, layers = 128, 64, 64, 4, 2

	batch, steps = 16, 1600
)

// network predicts each letter's successor.
func network(scope *model.Scope, spec any, inputs []*Node) []*Node {
	if model.GetGraphParamOr(scope, inputs[0].Graph(), model.GraphParamIsTraining, false) {
		cosineschedule.New(scope, inputs[0].Graph(), dtypes.Float32).PeriodInSteps(steps).
			LearningRate(0.004).Done()
	}
	t := transformer.New(scope).WithVocabSize(vocab).WithEmbedDim(width).WithFFNDim(4 * width).
		WithNumHeads(heads).WithHeadDim(width / heads).WithNumLayers(layers).
		WithMaxPosEmbed(length)
	return []*Node{t.Logits(inputs[0], transformer.CallOptions{})}
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
func windows(backend compute.Backend) (*dataset.InMemoryDataset, error) {
	var text strings.Builder
	for n := range 1000 {
		text.WriteString(spell(n) + ", ")
	}
	n := (text.Len()-1)/length*4 - 4
	x, y := make([]int32, n*length), make([]int32, n*length)
	for i := range x {
		at := i/length*length/4 + i%length
		x[i], y[i] = int32(text.String()[at]), int32(text.String()[at+1])
	}
	return dataset.InMemoryFromData(backend, "windows",
		[]any{tensors.FromFlatDataAndDimensions(x, n, length)},
		[]any{tensors.FromFlatDataAndDimensions(y, n, length, 1)})
}

// generate appends letters to a text, each the likeliest after those before it.
func generate(next *model.Exec, text string, letters int) (string, error) {
	for range letters {
		window := make([]int32, length)
		context := text[max(0, len(text)-length):]
		for i, letter := range []byte(context) {
			window[i] = int32(letter)
		}
		out, err := next.Call1(tensors.FromFlatDataAndDimensions(window, 1, length))
		if err != nil {
			return "", err
		}
		text += string(rune(tensors.MustCopyFlatData[int32](out)[len(context)-1]))
	}
	return text, nil
}

func main() {
	backend, store := compute.MustNew(), model.NewStore()
	data, err := windows(backend)
	if err != nil {
		log.Fatal(err)
	}
	trainer := train.NewTrainer(backend, store, network, loss.SparseCategoricalCrossEntropyLogits,
		optimizer.Adam().Done(), nil, nil)
	loop := train.NewLoop(trainer)
	if _, err := loop.RunSteps(data.BatchSize(batch, true).Shuffle().Infinite(true),
		steps); err != nil {
		log.Fatal(err)
	}
	next := model.MustNewExec(backend, store, func(scope *model.Scope, x *Node) *Node {
		return ArgMax(network(scope, nil, []*Node{x})[0], -1)
	})
	text, err := generate(next, "four hundred twenty-eight, ", 70)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n%v a step\n", text, loop.MedianTrainStepDuration())
}
