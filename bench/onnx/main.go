// Command onnx compares networks that PyTorch exported with PyTorch, and prints the table of
// docs/measurements/onnx.md.
//
//	python bench/onnx/export.py DIRECTORY
//	go run ./bench/onnx [-models DIRECTORY] [-only part] [-time] [-batch n] [-python path]
//
// Every file of the directory goes through package front/onnx, and is run by a session without a
// budget under the policy vanilla, and by another, under the policy auto, within a third of the
// memory that the first takes; where no plan is so small, within the least there is. Both have to
// give the same bits: outputs, and gradients of their weighted sum by all parameters that the file
// has as PyTorch does. They are compared with what PyTorch computes in 64 bits. An error is the
// largest of any element, relative to the largest element of the array; or, of a gradient that is
// zero but for rounding, such as that of the bias of keys, to a thousandth of the largest element
// of all gradients. The program fails if an error of an output is 1e-5 or more, or that of a
// gradient 1e-4.
//
// With -time, inferences of gomem and of onnxruntime take turns, each of one thread, whose time on
// the processor is taken, and of two, whose time is the clock's; the least of all turns counts.
// gomem's networks are not trained then (onnx.Options.Untrained).
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
)

type options struct {
	models, only, python string
	time                 bool
	batch                int
}

func main() {
	gauge.Main("onnx", func(ctx context.Context, args []string, w io.Writer) error {
		o, err := parse(args, os.Stderr)
		if err != nil {
			return err
		}
		return run(ctx, o, w)
	})
}

func parse(args []string, usage io.Writer) (o options, err error) {
	f := flag.NewFlagSet("onnx", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&o.models, "models", "models", "`directory` that export.py has written")
	f.StringVar(&o.only, "only", "", "`part` of the names of files to compare, such as bert")
	f.BoolVar(&o.time, "time", false, "time inferences beside onnxruntime")
	f.IntVar(&o.batch, "batch", 0, "time this `number` of examples, where files leave it open; "+
		"0: as many as export.py had")
	f.StringVar(&o.python, "python", "/usr/bin/python3", "Python `interpreter` with onnxruntime")
	if err = f.Parse(args); err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, err
}

// files are the networks of a directory whose names have a part.
func files(dir, part string) (list []string, err error) {
	all, err := filepath.Glob(filepath.Join(dir, "*.onnx"))
	for _, path := range all {
		if strings.Contains(filepath.Base(path), part) {
			list = append(list, path)
		}
	}
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no .onnx file with %q in its name: run export.py first", dir, part)
	}
	return list, err
}

// run prints a row for each file. The error says how many differ.
func run(ctx context.Context, o options, w io.Writer) error {
	list, err := files(o.models, o.only)
	if err != nil {
		return err
	}
	var p *peer
	if o.time {
		if p, err = startPeer(ctx, o.python); err != nil {
			return err
		}
		defer p.Close()
	}
	heading(w, p)
	differ := 0
	for _, path := range list {
		cells, agrees, err := compared(ctx, path, p, o.batch)
		if err != nil {
			cells = []string{title(path), err.Error()}
		}
		row(w, cells...)
		if !agrees {
			differ++
		}
	}
	if differ > 0 {
		return fmt.Errorf("%d of %d networks differ or are refused", differ, len(list))
	}
	return nil
}

// compared is the row of a file, and whether it agrees with PyTorch.
func compared(ctx context.Context, path string, p *peer, batch int) ([]string, bool, error) {
	n, err := open(path)
	if err != nil {
		return nil, false, err
	}
	r, err := n.compare(ctx)
	if err != nil {
		return nil, false, err
	}
	cells := r.cells()
	if p != nil {
		times, err := n.times(ctx, p, batch)
		if err != nil {
			return nil, false, err
		}
		cells = append(cells, times...)
	}
	return cells, r.agrees(), nil
}
