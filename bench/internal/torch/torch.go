// Package torch talks to a Python process that has PyTorch: what benchmarks and tests
// compare with. A request is a line, and so is a reply, in JSON; the first line that the
// process says is what it is, {"about": …}, or why it has no PyTorch, {"missing": …}. It
// stops at the end of its input.
package torch

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
)

// ErrMissing says why there is nothing to compare with.
type ErrMissing struct{ Reason string }

// Error names what would provide it.
func (e *ErrMissing) Error() string {
	return e.Reason + "; Debian's python3-torch provides PyTorch for /usr/bin/python3"
}

// Process runs a program.
type Process struct {
	About string    // versions and threads, in its own words
	BLAS  []Library // those of linear algebra that it has loaded, if it says so

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	log bytes.Buffer
	end func() error
}

//go:embed prelude.py
var prelude string

// Start runs a program's source, in an environment if one is given, and hears what it is:
// the program ends with serve(answer), which is there already, as PyTorch is, with a function
// from a line to what is to be the reply. The error is an *[ErrMissing] where there is no
// interpreter, or no PyTorch.
func Start(ctx context.Context, python, source string, env ...string) (*Process, error) {
	path, err := exec.LookPath(python)
	if err != nil {
		return nil, &ErrMissing{fmt.Sprintf("no Python interpreter at %s", python)}
	}
	p := &Process{cmd: exec.CommandContext(ctx, path, "-c", prelude+source)}
	p.cmd.Env, p.cmd.Stderr = env, &p.log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.end = sync.OnceValue(func() error { return errors.Join(p.in.Close(), p.cmd.Wait()) })
	return p, p.greet()
}

// greet hears what the process is, or closes it.
func (p *Process) greet() error {
	var hello struct {
		About, Missing string
		BLAS           []Library
	}
	if err := p.Answer(&hello); err != nil {
		return err
	}
	p.About, p.BLAS = hello.About, hello.BLAS
	if hello.Missing == "" {
		return nil
	}
	if err := p.Close(); err != nil {
		return err
	}
	return &ErrMissing{hello.Missing}
}

// PID is the process' number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Give has bytes written to the process, which reads them by itself.
func (p *Process) Give(write func(io.Writer) error) error {
	if err := write(p.in); err != nil {
		return p.explain(err)
	}
	return nil
}

// Close ends the process, once.
func (p *Process) Close() error { return p.end() }

// Ask sends a line and reads the reply.
func (p *Process) Ask(line string, reply any) error {
	err := p.Give(func(w io.Writer) error {
		_, err := fmt.Fprintln(w, line)
		return err
	})
	if err != nil {
		return err
	}
	return p.Answer(reply)
}

// Answer reads a reply. One that has {"failed": …} is an error, after which the process
// takes other requests; it has ended after any other error.
func (p *Process) Answer(reply any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return p.explain(err)
	}
	var failed struct{ Failed string }
	if err = json.Unmarshal(line, &failed); err == nil && reply != nil {
		err = json.Unmarshal(line, reply)
	}
	if err != nil {
		return p.explain(fmt.Errorf("answer %q: %w", line, err))
	}
	if failed.Failed != "" {
		return fmt.Errorf("PyTorch: %s", failed.Failed)
	}
	return nil
}

// explain closes a process that did not answer, and prefers the last line that it
// complained with, its exception.
func (p *Process) explain(err error) error {
	if stopped := p.Close(); stopped != nil {
		err = stopped
	}
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		err = errors.New(last)
	}
	return fmt.Errorf("PyTorch stopped: %w", err)
}
