package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/internal/longtest"
)

// talkEnv makes the test binary a node that says a line to another one.
const talkEnv = "GOMEM_BENCH_TALK"

func TestMain(m *testing.M) {
	if addr := os.Getenv(talkEnv); addr != "" {
		os.Exit(talk(addr))
	}
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
	l, err := newLab(ctx, 1, 8e6)
	if err != nil {
		t.Skip("there are no namespaces here: ", err)
	}
	defer func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := command(ctx, "ip addr add 10.77.0.254/24 dev "+l.name); err != nil {
		t.Fatal(err)
	}
	addrs := []string{l.addr(0) + ":7071", "10.77.0.254:7071"}
	p, tr, err := pair(addrs, 1)
	if err != nil {
		t.Fatal(err)
	}
	h := heard{make(chan *distrib.Msg, said)}
	tr.Serve(h)
	cmd := l.exec(ctx, 0, os.Args[0])
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

func talk(addr string) int {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 1
	}
	defer c.Close()
	if _, err := c.Write(make([]byte, 100e3)); err != nil {
		return 1
	}
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
		return 1
	}
	return 0
}

// TestLab: nodes reach each other over their links, whose bytes are counted; and nothing
// is left behind.
func TestLab(t *testing.T) {
	ctx := context.Background()
	l, err := newLab(ctx, 2, 100e6)
	if errors.Is(err, errNoLab) {
		t.Skip(err)
	}
	if err != nil {
		t.Skip("namespaces do not work here: ", err)
	}
	defer func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
		if command(ctx, "ip link show "+l.name) == nil {
			t.Error("the bridge is still there")
		}
	}()
	if err := l.rate(ctx, 1, 50e6); err != nil {
		t.Fatal(err)
	}
	before, err := l.bytes(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	// This process reaches the nodes over the bridge.
	if err := command(ctx, "ip addr add 10.77.0.254/24 dev "+l.name); err != nil {
		t.Fatal(err)
	}
	in, err := net.Listen("tcp", "10.77.0.254:0")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := l.exec(ctx, 1, os.Args[0])
	cmd.Env = append(os.Environ(), talkEnv+"="+in.Addr().String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := in.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100e3)
	for n := 0; n < len(got); {
		k, err := c.Read(got[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	if _, err := c.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	after, err := l.bytes(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := after - before; n < 100e3 || n > 130e3 {
		t.Errorf("%d bytes left the node, want 100,000 and headers", n)
	}
}
