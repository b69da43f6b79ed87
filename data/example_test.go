package data_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gomem/gomem/data"
)

func Example() {
	dir, err := os.MkdirTemp("", "data")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "pairs.tsv")
	text := "ein Haus\ta house\nzwei Häuser\ttwo houses\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	corpus, err := data.Open(ctx, "tsv:"+file, nil)
	if err != nil {
		log.Fatal(err)
	}
	tok, err := data.TrainTokenizer(ctx, corpus, 264)
	if err != nil {
		log.Fatal(err)
	}
	loader, err := data.NewLoader(corpus, tok, data.LoaderOptions{Pairs: 2, Length: 12})
	if err != nil {
		log.Fatal(err)
	}
	batch := loader.Train(0)
	fmt.Println(corpus.Info.Pairs, "pairs;", tok)
	source, target := batch.Inputs[0], batch.Inputs[1]
	fmt.Println("ids", source.Type, "with", batch.Units, "target tokens")
	for row := range 2 {
		fmt.Printf("%s -> %s\n", tok.Decode(source.I32()[12*row:][:12]),
			tok.Decode(target.I32()[12*row:][:12]))
	}
	// Output:
	// 2 pairs; byte-level BPE, 264 ids (6 merges)
	// ids i32[2 12] with 11 target tokens
	// zwei Häuser -> two houses
	// ein Haus -> a house
}
