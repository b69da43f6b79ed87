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
	"strings"

	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/internal/tensor"
)

//go:embed peer.py
var peerSource string

// peer is PyTorch with a model, in a process that waits on a pipe while gomem
// has its turn.
type peer struct {
	about string
	blas  []torch.Library
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	log   bytes.Buffer
}

// task is what the peer is to compute, and how.
type task struct {
	config
	Threads        int     `json:"threads"`
	Rate           float64 `json:"rate"`
	BalanceWeight  float64 `json:"balance_weight"`
	CapacityFactor float64 `json:"capacity_factor"`
}

// tensors are named values, in order.
type tensors struct {
	names  []string
	values map[string]tensor.View
}

func (t *tensors) add(name string, v tensor.View) {
	if t.values == nil {
		t.values = map[string]tensor.View{}
	}
	t.names = append(t.names, name)
	t.values[name] = v
}

func (t *tensors) write(w io.Writer) error {
	var entries []safetensors.Entry
	for _, name := range t.names {
		entries = append(entries, safetensors.Entry{Name: name, Type: t.values[name].Type})
	}
	get := func(e safetensors.Entry) ([]byte, error) { return t.values[e.Name].Data, nil }
	return safetensors.Write(w, entries, nil, get)
}

// startPeer starts PyTorch and gives it a model's parameters, inputs and
// constants.
func startPeer(ctx context.Context, python string, c config, threads int,
	t *tensors) (*peer, error) {
	arg, err := json.Marshal(task{c, threads, learningRate, balanceWeight, capacityFactor})
	if err != nil {
		return nil, err
	}
	p := &peer{cmd: exec.CommandContext(ctx, python, "-c", peerSource, string(arg))}
	p.cmd.Env = torch.Environment(os.Environ(), threads)
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
		return nil, fmt.Errorf("%w; %s", err, torchPackage)
	}
	var hello struct {
		About string
		BLAS  []torch.Library
	}
	err = t.write(p.in)
	if err == nil {
		err = p.answer(&hello)
	}
	if err != nil {
		return nil, errors.Join(p.explain(err), p.in.Close())
	}
	p.about, p.blas = hello.About, hello.BLAS
	return p, nil
}

// startRival starts a peer that a ratio to says something.
func startRival(ctx context.Context, python string, c config, threads int,
	t *tensors) (*peer, error) {
	p, err := startPeer(ctx, python, c, threads, t)
	if err != nil {
		return nil, err
	}
	if err := torch.AtItsBest(p.blas); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// torchPackage is what to do where PyTorch does not start.
const torchPackage = "`apt-get install python3-torch` provides PyTorch on Debian"

// explain prefers the last line that the peer complained with, its exception.
func (p *peer) explain(err error) error {
	stopped := p.cmd.Wait()
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	if last := lines[len(lines)-1]; last != "" && stopped != nil {
		return fmt.Errorf("%s; %s", last, torchPackage)
	}
	return err
}

// ask gives a command, and reads the answer into v.
func (p *peer) ask(command string, v any) error {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return p.explain(fmt.Errorf("PyTorch: %w", err))
	}
	if err := p.answer(v); err != nil {
		return p.explain(err)
	}
	return nil
}

func (p *peer) answer(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("PyTorch stopped: %w", err)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("PyTorch answers %q: %w", line, err)
	}
	return nil
}

// close ends the peer: it stops at the end of its input.
func (p *peer) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
