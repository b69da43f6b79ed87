//go:build unix

package main

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

func startOne(s *scene) (time.Duration, error) {
	at, err := servers(1)
	if err == nil {
		err = s.launch(role{Servers: at})
	}
	if err != nil {
		return 0, err
	}
	return s.nodes[0].number("started")
}

func startClient(s *scene) (time.Duration, error) {
	if _, err := startOne(s); err != nil {
		return 0, err
	}
	if err := s.launch(role{Rank: 1, Servers: s.nodes[0].role.Servers}); err != nil {
		return 0, err
	}
	return s.nodes[1].number("started")
}

func startThree(s *scene) (longest time.Duration, err error) {
	at, err := servers(3)
	if err != nil {
		return 0, err
	}
	for i := range 3 {
		if err := s.launch(role{Rank: i, Servers: at, Dir: fmt.Sprint(s.dir, "/", i)}); err != nil {
			return 0, err
		}
	}
	for _, p := range s.nodes {
		took, err := p.number("started")
		if err != nil {
			return 0, err
		}
		longest = max(longest, took)
	}
	return longest, nil
}

func putFast(s *scene) (time.Duration, error) { return puts(s, false) }

func putDisk(s *scene) (time.Duration, error) { return puts(s, true) }

func puts(s *scene, disk bool) (time.Duration, error) {
	if err := s.cast(1, 1, disk); err != nil {
		return 0, err
	}
	s.nodes[0].say("puts")
	return s.nodes[0].number("put")
}

func leave(s *scene) (time.Duration, error) {
	if err := s.cast(3, 1, false); err != nil {
		return 0, err
	}
	from := time.Now()
	s.nodes[2].say("leave")
	return s.nodes[1].since(from, "view 2 0,1")
}

func (p *process) since(from time.Time, prefix string) (time.Duration, error) {
	e, err := p.await(prefix)
	return e.at.Sub(from), err
}

func kill(s *scene) (time.Duration, error) {
	if err := s.cast(3, 1, false); err != nil {
		return 0, err
	}
	from := time.Now()
	s.nodes[2].kill()
	return s.nodes[1].since(from, "view 2 0,1")
}

func killLeader(s *scene) (time.Duration, error) {
	if err := s.cast(3, 1, false); err != nil {
		return 0, err
	}
	s.nodes[2].say("lead")
	if _, err := s.nodes[2].await("leads"); err != nil {
		return 0, err
	}
	s.nodes[1].say("lead")
	s.nodes[1].say("put") // so that it stands for election by now
	if _, err := s.nodes[1].await("put"); err != nil {
		return 0, err
	}
	from := time.Now()
	s.nodes[2].kill()
	return s.nodes[1].since(from, "leads")
}

// pause stops a node for three seconds; it answers after, and the view is still the first.
func pause(s *scene) (time.Duration, error) {
	if err := s.cast(3, 1, false); err != nil {
		return 0, err
	}
	p := s.nodes[2]
	p.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	from := time.Now()
	p.cmd.Process.Signal(syscall.SIGCONT)
	p.say("put")
	e, err := p.await("")
	if err == nil && !strings.HasPrefix(e.line, "put") {
		err = fmt.Errorf("after a pause, rank 2 says %q", e.line)
	}
	return e.at.Sub(from), err
}

func killServer(s *scene) (time.Duration, error) {
	if err := s.cast(3, 3, true); err != nil {
		return 0, err
	}
	victim, others, err := s.split()
	if err != nil {
		return 0, err
	}
	from := time.Now()
	victim.kill()
	others[0].say("put")
	return others[0].since(from, "put")
}

func killServerView(s *scene) (time.Duration, error) {
	if err := s.cast(3, 3, true); err != nil {
		return 0, err
	}
	victim, others, err := s.split()
	if err != nil {
		return 0, err
	}
	from := time.Now()
	victim.kill()
	return others[0].since(from, "view 2")
}

// split is the node with etcd's leader, and the others.
func (s *scene) split() (victim *process, others []*process, err error) {
	lead := -1
	for i, p := range s.nodes {
		p.say("server")
		e, err := p.await("server")
		if err != nil {
			return nil, nil, err
		}
		if e.line == "server leads" {
			lead = i
		}
	}
	if lead < 0 {
		return nil, nil, fmt.Errorf("no server leads")
	}
	for i, p := range s.nodes {
		if i != lead {
			others = append(others, p)
		}
	}
	return s.nodes[lead], others, nil
}

func restart(s *scene) (time.Duration, error) {
	if err := s.cast(3, 1, true); err != nil {
		return 0, err
	}
	old := s.nodes[0]
	from := time.Now()
	old.kill()
	p, err := newProcess(old.role)
	if err != nil {
		return 0, err
	}
	s.nodes[0] = p
	if _, err := p.await("started"); err != nil {
		return 0, err
	}
	p.say("join")
	for {
		e, err := s.nodes[2].await("view")
		if err != nil || strings.HasSuffix(e.line, " 0,1,2") {
			return e.at.Sub(from), err
		}
	}
}
