package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gomem/gomem/bench/internal/torch"
)

//go:embed gloo.py
var script string

// gloo is PyTorch's workers.
type gloo []*torch.Process

func startGloo(ctx context.Context, s settings, n int, at place) (crew, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		return nil, err
	}
	var all gloo
	for rank := range n {
		python, err := at.command(rank, s.python)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		p, err := torch.Start(ctx, python, script, append(os.Environ(), fmt.Sprint("RANK=", rank),
			fmt.Sprint("WORLD_SIZE=", n), "MASTER_ADDR="+at.addr(0), "MASTER_PORT="+port,
			"GLOO_SOCKET_IFNAME="+at.device())...)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, p)
	}
	return all, nil
}

func (c gloo) do(a ask) ([]float64, error) {
	return together(len(c), func(i int, reply *reply) error { return c[i].Ask(a.String(), reply) })
}

func (c gloo) close() (err error) {
	for _, p := range c {
		err = errors.Join(err, p.Close())
	}
	return err
}

// sum asks for the sum of one value; what else is asked for is a way to exchange gradients.
const sum = "sum"

// ask is what workers are to do.
type ask struct {
	what    string
	size    int // bytes
	count   int
	compute float64 // seconds, of a step
}

// String is a line, for a worker.
func (a ask) String() string {
	return fmt.Sprintf("%s %d %d %g", a.what, a.size, a.count, a.compute)
}

// reply is what a worker says of how long it took.
type reply struct{ Seconds []float64 }

// together asks all workers at once; the first one's reply counts.
func together(n int, ask func(i int, reply *reply) error) ([]float64, error) {
	replies, errs := make([]reply, n), make(chan error, n)
	for i := range n {
		go func() { errs <- ask(i, &replies[i]) }()
	}
	var err error
	for range n {
		err = errors.Join(err, <-errs)
	}
	return replies[0].Seconds, err
}

// ours is gomem's workers.
type ours []*process

// process is a worker: a request is a line, and so is a reply.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startOurs(ctx context.Context, s settings, n int, secure bool, at place) (crew, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all ours
	var addresses []string
	for i := range n {
		args := []string{"-keys", s.keys, fmt.Sprint("-secure=", secure),
			"-listen", at.addr(i) + ":0"}
		if i == 0 && s.profile != "" {
			name := fmt.Sprintf("%d-%v.prof", n, secure)
			args = append(args, "-profile", filepath.Join(s.profile, name))
		}
		program, err := at.command(i, self)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		p := &process{cmd: exec.CommandContext(ctx, program, args...)}
		p.cmd.Stderr = os.Stderr
		if p.in, err = p.cmd.StdinPipe(); err != nil {
			return nil, errors.Join(err, all.close())
		}
		out, err := p.cmd.StdoutPipe()
		if err == nil {
			err = p.cmd.Start()
		}
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		p.out = bufio.NewReader(out)
		all = append(all, p)
		address, err := p.out.ReadString('\n')
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		addresses = append(addresses, strings.TrimSpace(address))
	}
	for i, p := range all {
		if _, err := fmt.Fprintln(p.in, i, strings.Join(addresses, " ")); err != nil {
			return nil, errors.Join(err, all.close())
		}
	}
	return all, nil
}

func (c ours) do(a ask) ([]float64, error) {
	return together(len(c), func(i int, reply *reply) error {
		if _, err := fmt.Fprintln(c[i].in, a); err != nil {
			return err
		}
		line, err := c[i].out.ReadBytes('\n')
		if err != nil {
			return err
		}
		return json.Unmarshal(line, reply)
	})
}

func (c ours) close() (err error) {
	for _, p := range c {
		err = errors.Join(err, p.in.Close())
	}
	for _, p := range c {
		err = errors.Join(err, p.cmd.Wait())
	}
	return err
}
