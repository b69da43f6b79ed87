//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomem/gomem/distrib/cluster/control"
)

// scene is the processes of one measurement.
type scene struct {
	dir   string
	nodes []*process
}

// process is a node: its events come as lines, with when they were read.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	events chan event
	role   role
}

type event struct {
	at   time.Time
	line string
}

func (s *scene) end() {
	for _, p := range s.nodes {
		p.kill()
	}
	os.RemoveAll(s.dir)
}

// addresses are of loopback, and free.
func addresses(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all, nil
}

// servers are addresses for n of them.
func servers(n int) ([]control.Server, error) {
	at, err := addresses(2 * n)
	if err != nil {
		return nil, err
	}
	var all []control.Server
	for i := range n {
		all = append(all, control.Server{Client: at[2*i], Peer: at[2*i+1]})
	}
	return all, nil
}

// cast starts nodes, the first of which have servers, and joins them.
func (s *scene) cast(nodes, withServer int, disk bool) error {
	at, err := servers(withServer)
	if err != nil {
		return err
	}
	for i := range nodes {
		r := role{Rank: i, Servers: at, Nodes: nodes}
		if disk && i < withServer {
			r.Dir = filepath.Join(s.dir, fmt.Sprint("rank", i))
		}
		if err := s.launch(r); err != nil {
			return err
		}
	}
	for _, p := range s.nodes {
		if _, err := p.await("started"); err != nil {
			return err
		}
		p.say("join")
	}
	return s.all("view")
}

func (s *scene) all(prefix string) error {
	for _, p := range s.nodes {
		if _, err := p.await(prefix); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) launch(r role) error {
	p, err := newProcess(r)
	if err == nil {
		s.nodes = append(s.nodes, p)
	}
	return err
}

func newProcess(r role) (*process, error) {
	text, err := json.Marshal(&r)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), events: make(chan event, 100), role: r}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.events)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.events <- event{time.Now(), lines.Text()}
		}
	}()
	return p, nil
}

func (p *process) say(line string) { fmt.Fprintln(p.in, line) }

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// await is the next event that begins with a word; others are skipped.
func (p *process) await(prefix string) (event, error) {
	end := time.After(time.Minute)
	for {
		select {
		case e, ok := <-p.events:
			switch {
			case !ok:
				return e, fmt.Errorf("rank %d ended, and should have said %q", p.role.Rank, prefix)
			case strings.HasPrefix(e.line, "error"):
				return e, fmt.Errorf("rank %d: %s", p.role.Rank, e.line)
			case strings.HasPrefix(e.line, prefix):
				return e, nil
			}
		case <-end:
			return event{}, fmt.Errorf("rank %d does not say %q", p.role.Rank, prefix)
		}
	}
}

// number is what an event says after its first word.
func (p *process) number(prefix string) (time.Duration, error) {
	e, err := p.await(prefix)
	if err != nil {
		return 0, err
	}
	var us int64
	_, err = fmt.Sscan(strings.TrimPrefix(e.line, prefix), &us)
	return time.Duration(us) * time.Microsecond, err
}
