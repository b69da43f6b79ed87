package lab

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"testing"
)

// talkEnv makes the test binary a node that says a line to another one.
const talkEnv = "GOMEM_BENCH_TALK"

func TestMain(m *testing.M) {
	if addr := os.Getenv(talkEnv); addr != "" {
		os.Exit(talk(addr))
	}
	os.Exit(m.Run())
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
	l, err := New(ctx, 2, 100e6)
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Skip("namespaces do not work here: ", err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if Command(ctx, "ip link show "+l.Bridge) == nil {
			t.Error("the bridge is still there")
		}
	}()
	if err := l.Rate(ctx, 1, 50e6); err != nil {
		t.Fatal(err)
	}
	before, err := l.Sent(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	// This process reaches the nodes over the bridge.
	if err := Command(ctx, "ip addr add 10.77.0.254/24 dev "+l.Bridge); err != nil {
		t.Fatal(err)
	}
	in, err := net.Listen("tcp", "10.77.0.254:0")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := l.Exec(ctx, 1, os.Args[0])
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
	after, err := l.Sent(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := after - before; n < 100e3 || n > 130e3 {
		t.Errorf("%d bytes left the node, want 100,000 and headers", n)
	}
}
