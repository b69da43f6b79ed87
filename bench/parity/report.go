package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
)

// tolerance is the relative difference that is too large.
const tolerance = 1e-4

// result is one comparison.
type result struct {
	name string
	record
	answer
}

// lossError is how far gomem's loss is from the truth, relative to it.
func (r result) lossError() float64 {
	return math.Abs(float64(r.loss)-r.Loss) / max(math.Abs(r.Loss), 1e-30)
}

// worst is the gradient that differs most.
func (r result) worst() gradient {
	return slices.MaxFunc(r.Gradients, func(a, b gradient) int {
		return cmp.Compare(a.Error, b.Error)
	})
}

// worst32 is the largest difference of PyTorch in 32 bits.
func (r result) worst32() float64 {
	return slices.MaxFunc(r.Gradients,
		func(a, b gradient) int { return cmp.Compare(a.Error32, b.Error32) }).Error32
}

// agrees holds for no NaN.
func (r result) agrees() bool { return r.lossError() < tolerance && r.worst().Error < tolerance }

func (r result) cells() []string {
	w := r.worst()
	return []string{
		r.name, fmt.Sprint(r.elements), fmt.Sprint(r.gradients),
		fmt.Sprintf("%.6f", r.loss), fmt.Sprintf("%.8f", r.Loss), fmt.Sprintf("%.0e",
			r.lossError()),
		flagged(w.Error), "`" + w.Name + "`", fmt.Sprintf("%.0e", r.worst32()),
	}
}

// flagged is a difference, bold where it is too large.
func flagged(x float64) string {
	if x < tolerance {
		return fmt.Sprintf("%.0e", x)
	}
	return fmt.Sprintf("**%.0e**", x)
}

func heading(w io.Writer, about string) {
	columns := []string{
		"model", "parameters", "gradients", "loss, gomem", "loss, PyTorch", "relative error",
		"gradients' worst relative error", "in the gradient of", "PyTorch's own in 32 bits",
	}
	fmt.Fprintf(w, "%s %s/%s beside %s in 64-bit floats, size %s\n\n", runtime.Version(),
		runtime.GOOS, runtime.GOARCH, about, smallest)
	fmt.Fprintf(w, "| %s |\n|---|%s\n", strings.Join(columns, " | "),
		strings.Repeat("---:|", len(columns)-1))
}
