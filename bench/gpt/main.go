// Command gpt puts language models beside PyTorch's, and prints the tables of
// docs/measurements/gpt.md.
//
//	go run ./bench/gpt [-part name] [-python path] [-dir folder]
//
// PyTorch writes networks with random weights as public checkpoints, in which GPT-2
// and LLaMA are distributed, and both sides read them: the small GPT-2 (124 million
// parameters), and a LLaMA of 1.1 billion, TinyLlama's shapes, in 16-bit numbers. The
// parts are
//
//   - continue: the likeliest continuation of a prompt by the GPT-2, with keys and
//     values kept, which must be the same token by token, and the loss;
//   - stream: the same by the LLaMA, here within 256 MiB of device memory, through
//     which the weights go layer by layer;
//   - train: steps of AdamW with clipped gradients by the GPT-2, here within 512 MiB;
//   - attention: attention by itself, and its gradient;
//   - loss: the loss of a large vocabulary without its logits beside that of its logits,
//     which takes no PyTorch, and up to 6 GB.
//
// Each side's turn has a process or a session of its own, one after the other, so
// that neither has the other's memory. The memory of gomem's host and device is the
// plan's, which a run matches to the byte; PyTorch's is the largest resident set of
// its process, the interpreter and libraries included. Networks are written to a
// temporary folder below the one given, and removed: 0.5 and 2.2 GB. Parts of whole
// networks take up to 6 GB of memory on either side.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/bench/internal/torch"
)

type options struct {
	parts       []part
	python, dir string
}

func main() {
	gauge.Main("gpt", func(ctx context.Context, args []string, w io.Writer) error {
		o, err := parse(args, os.Stderr)
		if err != nil {
			return err
		}
		return run(ctx, o, w)
	})
}

func parse(args []string, usage io.Writer) (options, error) {
	f := flag.NewFlagSet("gpt", flag.ContinueOnError)
	f.SetOutput(usage)
	name := f.String("part", "", "`name` of the part to run, such as train (default all)")
	python := f.String("python", "/usr/bin/python3", "Python `interpreter` that has PyTorch")
	dir := f.String("dir", os.TempDir(), "`folder` for the networks")
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	o := options{parts: parts(), python: *python, dir: *dir}
	o.parts = slices.DeleteFunc(o.parts, func(p part) bool {
		return *name != "" && p.name != *name
	})
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case len(o.parts) == 0:
		return o, fmt.Errorf("-part %q: want continue, stream, train, attention or "+
			"loss", *name)
	}
	return o, nil
}

// run runs the parts, or says that there is nothing to compare with.
func run(ctx context.Context, o options, w io.Writer) error {
	dir, err := os.MkdirTemp(o.dir, "gomem-gpt-")
	if err != nil {
		return err
	}
	b := &bench{python: o.python, dir: dir, made: map[string]string{}}
	for i, p := range o.parts {
		if err = p.run(ctx, b, w, i == 0); err != nil {
			err = fmt.Errorf("%s: %w", p.name, err)
			break
		}
	}
	if missing, ok := errors.AsType[*torch.ErrMissing](err); ok {
		fmt.Fprintln(w, "not compared:", missing)
		err = nil
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// bench is where networks are, and who makes them.
type bench struct {
	python, dir string
	made        map[string]string // folders of networks, by their names
}

// alone has PyTorch answer one request in a process of its own.
func (b *bench) alone(ctx context.Context, do string, arguments map[string]any,
	reply any) (about string, err error) {
	p, err := startPeer(ctx, b.python)
	if err != nil {
		return "", err
	}
	err = p.ask(do, arguments, reply)
	about = p.About
	if slow := torch.AtItsBest(p.BLAS); slow != nil {
		about += " (" + slow.Error() + ")"
	}
	return about, errors.Join(err, p.Close())
}

// network is the folder of one that PyTorch makes when it is first asked for.
func (b *bench) network(ctx context.Context, name string) (string, error) {
	if dir, ok := b.made[name]; ok {
		return dir, nil
	}
	dir := filepath.Join(b.dir, strings.ReplaceAll(name, " ", "-"))
	arguments := networks()[name]
	arguments["directory"] = dir
	_, err := b.alone(ctx, "make", arguments, nil)
	b.made[name] = dir
	return dir, err
}
