package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/bench/internal/lab"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/internal/longtest"
)

func TestMain(m *testing.M) {
	if addrs := os.Getenv(sayEnv); addrs != "" {
		if err := say(strings.Split(addrs, ",")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if spec := os.Getenv(memberEnv); spec != "" {
		if err := member(spec, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sayEnv makes the test binary a node that sends messages, at its address, to another one,
// and tells how fast they arrived.
const sayEnv = "GOMEM_BENCH_SAY"

// heard is a node that counts what comes.
type heard struct{ messages chan *distrib.Msg }

func (h heard) Receive(_ distrib.NodeID, m *distrib.Msg) { h.messages <- m }
func (heard) Down(distrib.NodeID, error)                 {}

// pair opens node self of two.
func pair(addrs []string, self int) (*wire.Port, distrib.Transport, error) {
	v := distrib.View{Self: distrib.NodeID(self)}
	for i, addr := range addrs {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i), Addr: addr})
	}
	p, err := wire.Listen(addrs[self], wire.Options{Insecure: true})
	if err != nil {
		return nil, nil, err
	}
	t, err := p.Open(v)
	return p, t, err
}

// said are messages that fit into a socket's buffers, one by one.
const (
	said     = 300
	saidSize = 20_000
)

func say(addrs []string) error {
	p, t, err := pair(addrs, 0)
	if err != nil {
		return err
	}
	t.Serve(heard{})
	for range said {
		written := make(chan error, 1)
		t.Send(1, &distrib.Msg{Class: distrib.Updates, Body: [][]byte{make([]byte, saidSize)},
			Done: func(err error) { written <- err }})
		if err := <-written; err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
		t.Links()
	}
	fmt.Println(t.Links()[0].Bps)
	return errors.Join(t.Close(), p.Close())
}

// TestGoodput: between namespaces, the rate that a transport knows of a way is no more than
// what the network has, though sockets take messages at once: once it has forgotten the
// beginning, which the links let pass.
func TestGoodput(t *testing.T) {
	longtest.Skip(t)
	ctx := context.Background()
	l, err := lab.New(ctx, 1, 8e6)
	if err != nil {
		t.Skip("there are no namespaces here: ", err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := lab.Command(ctx, "ip addr add 10.77.0.254/24 dev "+l.Bridge); err != nil {
		t.Fatal(err)
	}
	addrs := []string{l.Addr(0) + ":7071", "10.77.0.254:7071"}
	p, tr, err := pair(addrs, 1)
	if err != nil {
		t.Fatal(err)
	}
	h := heard{make(chan *distrib.Msg, said)}
	tr.Serve(h)
	cmd := l.Exec(ctx, 0, os.Args[0])
	cmd.Env = append(os.Environ(), sayEnv+"="+strings.Join(addrs, ","))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	bps, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil || !(bps > 0 && bps < 10e6) {
		t.Errorf("%q bits a second, of a link of 8e6: %v", out, err)
	}
	if len(h.messages) != said {
		t.Errorf("%d messages came", len(h.messages))
	}
	if err := errors.Join(tr.Close(), p.Close()); err != nil {
		t.Error(err)
	}
}
