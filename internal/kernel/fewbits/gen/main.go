// Command gen writes the assembly of package fewbits: the kernels that unpack blocks of every
// format and multiply by them, for AVX-512 and for AVX2, and the Go file that declares them. Its
// output depends on nothing but its own text. Run it as go generate does, in the folder of package
// fewbits.
package main

import (
	"fmt"
	"go/format"
	"os"
)

func main() {
	for name, text := range generate() {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

// generate returns the text of every generated file by name.
func generate() map[string]string {
	declarations, err := format.Source([]byte(stubs(avx512, avx2)))
	if err != nil {
		panic(err) // the text is the generator's own
	}
	return map[string]string{
		"avx512_amd64.s":   avx512.assembly(),
		"avx2_amd64.s":     avx2.assembly(),
		"kernels_amd64.go": string(declarations),
	}
}
