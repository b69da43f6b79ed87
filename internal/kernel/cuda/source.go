package cuda

import (
	"embed"
	"strings"
)

//go:embed *.cu
var files embed.FS

// order is that of the files of the source: what others use comes first.
const order = "prelude libm elements chain numbers moves reduce rows index scatter small mma " +
	"tiles attention attention_half packed conv images moe sequence update"

// added is the text of kernels of operations that a program brings.
var added []string

// AddSource appends the text of more kernels to the source. It is called from init functions.
func AddSource(text string) { added = append(added, text) }

// Source is the text of all kernels, CUDA C++ 17 without includes. It is to be compiled with
// --fmad=false: a product is fused with a sum only where the text says so, so that operations
// have the same bits alone and in a chain. A kernel begins a line with extern "C" __global__
// void, its launch bounds if it has any, and its name.
func Source() string {
	text := filesOf(order)
	for _, more := range added {
		text += "\n" + more
	}
	return text
}

// filesOf is the text of files, by their names.
func filesOf(names string) string {
	var text strings.Builder
	for name := range strings.FieldsSeq(names) {
		file, err := files.ReadFile(name + ".cu")
		if err != nil {
			panic(err) // the list and the files are of one commit
		}
		text.Write(file)
	}
	return text.String()
}
