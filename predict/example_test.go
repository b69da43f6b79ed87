package predict_test

import (
	"context"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/predict"
)

// A classifier's numbers as shares.
func ExampleTop() {
	for _, s := range predict.Top([]float32{0, 3, 1}, 2) {
		fmt.Printf("class %d with %.1f%%\n", s.Class, 100*s.Share)
	}
	// Output:
	// class 1 with 84.4%
	// class 2 with 11.4%
}

// Translating in 512 KiB of device memory, with a model that has learnt nothing: the
// weights would come from a checkpoint by predict.Checkpoint(path).
func ExampleTexts_Translate() {
	ctx := context.Background()
	config, err := models.NewTransformerConfig("s512")
	if err != nil {
		fmt.Println(err)
		return
	}
	const texts, beams = 2, 3
	d, err := models.DecodeTransformer(config, texts, beams)
	if err != nil {
		fmt.Println(err)
		return
	}
	options := gomem.Options{DeviceBytes: 512 << 10}
	planned, err := gomem.Plan(ctx, d.Graph, options, predict.TextTargets(d)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	random := func(s *gomem.Session, _ []graph.Value) error { return s.Initialize(1) }
	t, err := predict.OpenTexts(planned, options, d, random)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	sources := [][]int32{{17, 4, 99}, {5}, {23, 42}}
	found, err := t.Translate(ctx, sources, predict.Search{Beams: beams, Penalty: 0.6, Tokens: 4})
	fmt.Println(len(found), "translations, error:", err)
	// Output: 3 translations, error: <nil>
}
