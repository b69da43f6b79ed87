package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomem/gomem/bench/internal/lab"
)

// place is where workers run: on loopback, or between namespaces whose links have a rate.
type place struct {
	mbit int      // of each link; 0: loopback
	lab  *lab.Lab // nil: loopback
	dir  string   // for programs
}

func (s settings) place(ctx context.Context, n, mbit int) (place, error) {
	if mbit == 0 {
		return place{}, nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(s.keys), "place-")
	if err != nil {
		return place{}, err
	}
	l, err := lab.New(ctx, n, 1e6*float64(mbit))
	return place{mbit: mbit, lab: l, dir: dir}, err
}

func (p place) close() error {
	if p.lab == nil {
		return nil
	}
	return p.lab.Close()
}

func (p place) addr(rank int) string {
	if p.lab == nil {
		return "127.0.0.1"
	}
	return p.lab.Addr(rank)
}

// device is where the addresses are.
func (p place) device() string {
	if p.lab == nil {
		return "lo"
	}
	return "eth0"
}

// command is a program that runs another one in a rank's place.
func (p place) command(rank int, program string) (string, error) {
	if p.lab == nil {
		return program, nil
	}
	file := filepath.Join(p.dir, fmt.Sprint(filepath.Base(program), rank))
	text := fmt.Sprintf("#!/bin/sh\nexec ip netns exec %s %s \"$@\"\n", p.lab.Namespace(rank),
		program)
	return file, os.WriteFile(file, []byte(text), 0o700)
}

// links is how many seconds the links take for what a ring sends of so many bytes.
func (p place) links(n, size int) float64 {
	return 2 * float64(n-1) / float64(n) * float64(size) * 8 / (1e6 * float64(p.mbit))
}
