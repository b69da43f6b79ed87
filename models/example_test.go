package models_test

import (
	"fmt"

	"github.com/gomem/gomem/models"
)

// A language model with blocks as in LLaMA, of a size that comes with the package, but with two
// layers only. A model is a graph: nothing is computed, and no memory is taken for its weights.
func ExampleGPT() {
	c, err := models.NewGPTConfig("s512", models.LlamaBlocks)
	if err != nil {
		fmt.Println(err)
		return
	}
	c.Layers = 2
	m, err := models.GPT(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Parameters(), "parameters, as the formula says:",
		c.Parameters() == m.Graph.Parameters())
	// Output:
	// 39520 parameters, as the formula says: true
}

// What a configuration can't be is said before anything is built.
func ExampleResNetConfig_Validate() {
	c, err := models.NewResNetConfig("s64")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Validate())
	c.Classes = 0
	fmt.Println(c.Validate())
	// Output:
	// <nil>
	// classes is 0: want 2 or more
}
