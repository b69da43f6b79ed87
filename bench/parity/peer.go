package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

//go:embed parity.py
var peerSource string

// peer is a process with PyTorch that compares the records it is given.
type peer struct {
	about string
	dir   string // for the files that it reads
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	log   bytes.Buffer
	close func() error // ends the process, which stops at the end of its input
}

// missingError says why there is nothing to compare with.
type missingError struct{ reason string }

func (e *missingError) Error() string {
	return e.reason + "; Debian's python3-torch provides PyTorch for /usr/bin/python3"
}

// startPeer starts PyTorch. The error is a *missingError where there is none.
func startPeer(ctx context.Context, python string) (*peer, error) {
	path, err := exec.LookPath(python)
	if err != nil {
		return nil, &missingError{fmt.Sprintf("no Python interpreter at %s", python)}
	}
	p := &peer{cmd: exec.CommandContext(ctx, path, "-c", peerSource)}
	p.cmd.Stderr = &p.log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if p.dir, err = os.MkdirTemp("", "gomem-parity-"); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	p.close = sync.OnceValue(func() error {
		return errors.Join(p.in.Close(), p.cmd.Wait(), os.RemoveAll(p.dir))
	})
	return p, p.greet()
}

// greet hears what the process is, or closes it.
func (p *peer) greet() error {
	var hello struct{ About, Missing string }
	if err := p.answer(&hello); err != nil {
		return err
	}
	p.about = hello.About
	if hello.Missing == "" {
		return nil
	}
	if err := p.close(); err != nil {
		return err
	}
	return &missingError{hello.Missing}
}

// answer is what PyTorch says of a record.
type answer struct {
	Loss      float64
	Gradients []gradient
	Failed    string // what went wrong instead
}

// gradient is a comparison of one parameter's.
type gradient struct {
	Name           string
	Error, Error32 float64 // of gomem, and of PyTorch in 32 bits
}

// ask compares a record.
func (p *peer) ask(r record) (a answer, err error) {
	path := filepath.Join(p.dir, "record.safetensors")
	if err := save(path, r); err != nil {
		return a, err
	}
	if _, err := fmt.Fprintln(p.in, path); err != nil {
		return a, p.explain(err)
	}
	if err := p.answer(&a); err != nil {
		return a, err
	}
	if a.Failed != "" {
		return a, fmt.Errorf("PyTorch: %s", a.Failed)
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

func (p *peer) answer(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return p.explain(err)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return p.explain(fmt.Errorf("answer %q: %w", line, err))
	}
	return nil
}

// explain closes a process that did not answer, and prefers the last line that it
// complained with, its exception.
func (p *peer) explain(err error) error {
	if stopped := p.close(); stopped != nil {
		err = stopped
	}
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		err = errors.New(last)
	}
	return fmt.Errorf("PyTorch stopped: %w", err)
}
