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
	"os/exec"
	"strings"
)

//go:embed gpt.py
var peerSource string

// peer is a process with PyTorch that answers requests.
type peer struct {
	about string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	log   bytes.Buffer
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
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	var hello struct{ About, Missing string }
	if err := p.answer(&hello); err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.about = hello.About
	if hello.Missing != "" {
		if err := p.close(); err != nil {
			return nil, err
		}
		return nil, &missingError{hello.Missing}
	}
	return p, nil
}

// close ends the process, which stops at the end of its input.
func (p *peer) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// ask sends a request, what to do and its arguments, and reads the reply.
func (p *peer) ask(do string, arguments map[string]any, reply any) error {
	request := map[string]any{"do": do}
	for k, v := range arguments {
		request[k] = v
	}
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.in, "%s\n", line); err != nil {
		return p.explain(err)
	}
	return p.answer(reply)
}

// answer reads a line.
func (p *peer) answer(reply any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return p.explain(err)
	}
	var failed struct{ Failed string }
	if err := json.Unmarshal(line, &failed); err != nil {
		return err
	}
	if failed.Failed != "" {
		return fmt.Errorf("PyTorch: %s", failed.Failed)
	}
	if reply == nil {
		return nil
	}
	return json.Unmarshal(line, reply)
}

// explain adds what the process has said last to an error of its pipes.
func (p *peer) explain(err error) error {
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	return fmt.Errorf("PyTorch: %w: %s", err, lines[len(lines)-1])
}
