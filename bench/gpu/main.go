//go:build linux && amd64 && !nocuda

// Command gpu measures an NVIDIA GPU, and training on it beside PyTorch, and prints tables for
// docs/measurements. bench/gpu.sh is what runs all of it.
//
//	gpu [-emulate] [-seconds n] [-python path] [-rows file] PHASE
//
// A phase is one of
//
//	name        what the tables' folder is called
//	links       how fast copies are, each way and both at once
//	products    how fast matrix products are, by precision
//	kernels     what every operation of a step of three models takes, beside what the GPU's
//	            bandwidth and its products allow
//	models      steps of three models under a limit of the GPU's memory and without, here and
//	            with PyTorch and its ways to need less of it
//	precisions  the same in TF32 and in bfloat16
//	largest     the largest models and batches that memory is enough for, here and with PyTorch
//	emulator    builds the emulator and prints its folder, for GOMEM_CUDA_PATH and EMU_DIR
//
// and ends after so many seconds: then its table says what was not measured. Rows are kept in the
// file, if there is one: a later run of the phase measures those that it lacks.
//
// With -emulate all sizes are small and the GPU is emulated: then the tables show that the
// program works and nothing else, as they say.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/device/cuda/emu"
)

func main() { gauge.Main("gpu", run) }

// bench is what a phase has.
type bench struct {
	emulate bool
	python  string
	ends    time.Time // of what is measured
	rows    *journal
	gpu     cuda.Info
	w       io.Writer
	columns int     // of the table
	failed  []error // gomem's runs that failed
}

// phases are what can be asked for.
var phases = map[string]func(ctx context.Context, b *bench) error{
	"name":       func(_ context.Context, b *bench) error { return b.printed(b.folder()) },
	"links":      links,
	"products":   products,
	"kernels":    kernels,
	"models":     inF32,
	"precisions": inLess,
	"largest":    largest,
}

func run(ctx context.Context, args []string, w io.Writer) (err error) {
	f := flag.NewFlagSet("gpu", flag.ContinueOnError)
	b := &bench{w: w}
	f.BoolVar(&b.emulate, "emulate", false, "run on an emulated GPU, small")
	f.StringVar(&b.python, "python", "python3", "Python `interpreter` that has PyTorch")
	seconds := f.Float64("seconds", 600, "`time` after which it ends")
	rows := f.String("rows", "", "`file` of rows that are there, and to which others are added")
	if err := f.Parse(args); err != nil {
		return err
	}
	phase, ok := phases[f.Arg(0)]
	switch {
	case !(*seconds > 0):
		return fmt.Errorf("-seconds %v: want a positive number", *seconds)
	case f.NArg() == 1 && f.Arg(0) == "emulator":
		dir, err := emu.Build()
		return errors.Join(err, b.printed(dir))
	case f.NArg() != 1 || !ok:
		return fmt.Errorf("want one of name, links, products, kernels, models, precisions, " +
			"largest, emulator")
	}
	b.ends = time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	if err := b.find(); err != nil {
		return err
	}
	if b.rows, err = open(*rows); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.rows.close()) }()
	return b.complete(phase(ctx, b))
}

// find looks for the GPU.
func (b *bench) find() error {
	if b.emulate {
		dir, err := emu.Build()
		if err != nil {
			return err
		}
		for name, value := range map[string]string{"EMU_DIR": dir, "GOMEM_CUDA_PATH": dir,
			"XDG_CACHE_HOME": filepath.Join(dir, "cache")} {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	list, err := cuda.GPUs(b.dirs())
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return errors.New("the machine has no GPU")
	case list[0].Why != "":
		return errors.New(list[0].Why)
	}
	b.gpu = list[0]
	return nil
}

// dirs are where libraries are looked for first.
func (b *bench) dirs() []string {
	if b.emulate {
		return []string{os.Getenv("GOMEM_CUDA_PATH")}
	}
	return nil
}

// folder is the GPU's name as a folder's.
func (b *bench) folder() string {
	if b.emulate {
		return "emulator"
	}
	return strings.Join(strings.FieldsFunc(strings.ToLower(b.gpu.Name), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	}), "-")
}

func (b *bench) printed(text string) error {
	_, err := fmt.Fprintln(b.w, text)
	return err
}

// left reports whether there is time for another row.
func (b *bench) left() bool { return time.Now().Before(b.ends) }
