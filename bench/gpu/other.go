//go:build !linux || !amd64 || nocuda

// Command gpu measures an NVIDIA GPU, on Linux and x86-64 only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "gpu: this build has no GPUs: they need Linux on x86-64")
	os.Exit(1)
}
