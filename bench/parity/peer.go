package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomem/gomem/bench/internal/torch"
)

//go:embed parity.py
var peerSource string

// peer is a process with PyTorch that compares the records it is given.
type peer struct {
	*torch.Process
	dir string // for the files that it reads
}

// startPeer starts PyTorch. The error is a *torch.ErrMissing where there is none.
func startPeer(ctx context.Context, python string) (*peer, error) {
	p, err := torch.Start(ctx, python, peerSource)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gomem-parity-")
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &peer{p, dir}, nil
}

// close ends the process and removes its files.
func (p *peer) close() error { return errors.Join(p.Close(), os.RemoveAll(p.dir)) }

// answer is what PyTorch says of a record.
type answer struct {
	Loss      float64
	Loss32    float64 // PyTorch's in 32 bits, or with autocast where gomem is in bfloat16
	Gradients []gradient
}

// gradient is a comparison of one parameter's.
type gradient struct {
	Name           string
	Error, Error32 float64 // of gomem, and of PyTorch in 32 bits or with autocast
}

// ask compares a record.
func (p *peer) ask(r record) (a answer, err error) {
	path := filepath.Join(p.dir, "record.safetensors")
	if err := save(path, r); err != nil {
		return a, err
	}
	if err := p.Ask(path, &a); err != nil {
		return a, err
	}
	if len(a.Gradients) != r.gradients {
		return a, fmt.Errorf("PyTorch compares %d gradients of %d", len(a.Gradients), r.gradients)
	}
	return a, nil
}

func save(path string, r record) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return r.write(f)
}
