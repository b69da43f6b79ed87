package speech_test

import (
	"fmt"

	"github.com/gomem/gomem/data/speech"
	"github.com/gomem/gomem/graph/tensor"
)

// A model's logits are read by the likeliest symbol of each frame: repetitions are
// one letter unless a blank is between them.
func Example() {
	// the symbols i, b, blank, blank, space, u, u, p, blank
	frames := []int32{9, 2, 28, 28, 0, 21, 21, 16, 28}
	logits := tensor.New(tensor.Of(tensor.F32, len(frames), 1, speech.Symbols))
	for f, symbol := range frames {
		logits.F32()[f*speech.Symbols+int(symbol)] = 1
	}
	texts, err := speech.English().Decode(logits, []int32{int32(len(frames))})
	fmt.Printf("%q %v\n", texts, err)
	fmt.Println(speech.CER(texts, []string{"i be up"}))
	// Output:
	// ["ib up"] <nil>
	// 0.2857142857142857
}
