package images_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gomem/gomem/data/images"
)

// Letters and digits are drawn as they are needed.
func Example() {
	set, err := images.Open(context.Background(), "glyphs", images.Options{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	loader, err := images.NewLoader(set,
		images.LoaderOptions{Images: 8, Size: 32, Scale: images.Symmetric})
	if err != nil {
		log.Fatal(err)
	}
	batch := loader.HeldOut(0)
	fmt.Println(set.Classes, "kinds, from", set.ClassNames[0], "to", set.ClassNames[61])
	fmt.Println("pixels", batch.Inputs[0].Type, "and labels", batch.Inputs[1].Type)
	for _, label := range batch.Inputs[1].I32() {
		fmt.Print(set.ClassNames[label-1])
	}
	fmt.Println()
	// Output:
	// 62 kinds, from 0 to z
	// pixels f32[8 3 32 32] and labels i32[8]
	// STUVWXYZ
}
