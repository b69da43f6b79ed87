//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gomem/gomem/distrib/cluster/control"
)

// server is what a process of etcd is told, in its environment.
type server struct {
	Rank    int
	Servers []control.Server
	Dir     string
}

const serverVariable = "GOMEM_BENCH_ETCD"

// serve is a process of etcd: it says when it is there, says of every line of its input
// whether it leads, and ends with its input.
func serve(text string) error {
	var s server
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	c, err := control.Start(context.Background(), control.Config{Job: "etcd", Rank: s.Rank,
		Servers: s.Servers, Dir: s.Dir})
	if err != nil {
		return err
	}
	fmt.Println("here")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(c.ServerLeads())
	}
	return c.Close()
}

// etcd is processes of an etcd that is nobody's of a job.
type etcd struct {
	urls      string
	processes []*member
}

// member is a process of it.
type member struct {
	*exec.Cmd
	text []byte // its server, in JSON
	in   *json.Encoder
	out  *bufio.Scanner
	here bool // it has said so
}

// beside starts an etcd of n processes, none of 0.
func beside(ctx context.Context, dir string, n int) (*etcd, error) {
	e := &etcd{}
	servers := make([]control.Server, n)
	for i := range servers {
		var err error
		if servers[i].Client, err = free(); err == nil && n > 1 {
			servers[i].Peer, err = free()
		}
		if err != nil {
			return nil, err
		}
		if e.urls += "http://" + servers[i].Client; i < n-1 {
			e.urls += ","
		}
	}
	for i := range servers {
		own := filepath.Join(dir, fmt.Sprint("etcd", i))
		if err := os.RemoveAll(own); err != nil {
			return e, err
		}
		text, err := json.Marshal(server{i, servers, own})
		if err != nil {
			return e, err
		}
		if err := e.start(ctx, text); err != nil {
			return e, err
		}
	}
	return e, e.here()
}

// here waits until all processes that were started say that they are there.
func (e *etcd) here() error {
	for _, p := range e.processes {
		if !p.here && !p.out.Scan() {
			return errors.New("etcd does not start")
		}
		p.here = true
	}
	return nil
}

// start starts a process.
func (e *etcd) start(ctx context.Context, text []byte) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &member{Cmd: exec.CommandContext(ctx, self), text: text}
	p.Env = append(os.Environ(), serverVariable+"="+string(bytes.TrimSpace(text)))
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		return err
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return err
	}
	p.in, p.out = json.NewEncoder(in), bufio.NewScanner(out)
	if err := p.Start(); err != nil {
		return err
	}
	e.processes = append(e.processes, p)
	return nil
}

// leader is the process that leads.
func (e *etcd) leader() (int, error) {
	for _, p := range e.processes {
		if err := p.in.Encode("leads?"); err != nil {
			return 0, err
		}
		if p.out.Scan() && p.out.Text() == "true" {
			return p.Process.Pid, nil
		}
	}
	return 0, errors.New("no process of etcd leads")
}

// spread waits until etcd is in three workers, which all vote.
func (g *stage) spread(within time.Duration) error {
	if g.lab != nil || g.kind.single { // encrypted, for those with a certificate
		time.Sleep(settled)
		return nil
	}
	pid, err := g.worker(0)
	if err != nil {
		return err
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(string(env), "\x00MASTER_PORT=")
	port, _, _ = strings.Cut(port, "\x00")
	return voting(g.ctx, "http://127.0.0.1:"+port, within)
}

// settled is how long etcd needs to be in all workers, where nobody can be asked.
const settled = 5 * time.Second

// voting waits until three servers of the etcd at a URL vote.
func voting(ctx context.Context, url string, within time.Duration) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, within, errors.New("etcd has not spread"))
	defer cancel()
	for {
		votes := 0
		r, err := c.MemberList(ctx)
		if err == nil {
			for _, m := range r.Members {
				if !m.IsLearner {
					votes++
				}
			}
		}
		if votes == 3 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %d servers (%w)", context.Cause(ctx), votes, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// end ends what was started.
func (e *etcd) end() {
	if e == nil {
		return
	}
	for _, p := range e.processes {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
}

// free is an address of this machine where nobody listens.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// forged is a file like a token's, with another secret.
func forged(token string) (string, error) {
	text, err := os.ReadFile(token)
	if err != nil {
		return "", err
	}
	text = bytes.TrimSpace(text)
	with := byte('A')
	if text[len(text)-8] == with {
		with = 'B'
	}
	text[len(text)-8] = with
	return token + ".wrong", os.WriteFile(token+".wrong", text, 0o600)
}
