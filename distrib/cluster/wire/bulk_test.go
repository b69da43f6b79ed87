package wire_test

import (
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/wire"
)

// TestBadBulk: connections for bulk that greet wrongly are refused, and those that bring what
// are no frames, or end within one, end their node here. Nothing of them is delivered.
func TestBadBulk(t *testing.T) {
	for _, x := range []struct {
		name   string
		class  distrib.Class
		epoch  int64
		bytes  []byte
		hangUp bool
		down   string // what the port's node is told; empty: nothing
	}{
		{"class", distrib.Updates, 1, nil, false, ""},
		{"epoch", distrib.Collective, 7, nil, false, ""},
		{"long", distrib.Collective, 1, []byte{0, 0, 0, 1}, false, "larger"},
		{"garbage", distrib.Collective, 1, append([]byte{40, 0, 0, 0}, make([]byte, 40)...), false,
			"does not begin"},
		{"within a frame", distrib.Collective, 1, []byte{40, 0, 0, 0, 1}, true, "broke"},
		{"between frames", distrib.Collective, 1, nil, true, "broke"},
	} {
		c := listen(t, 1, wire.Options{})
		c.nodes = append(c.nodes, distrib.Node{ID: 1, Addr: "127.0.0.1:1"})
		_, h := open(t, c.ports[0], c.view(1, 0))
		err := wire.SendBulk(t.Context(), c.nodes[0].Addr, c.view(x.epoch, 1), x.class, x.bytes,
			x.hangUp)
		if (err == nil) != x.hangUp {
			t.Errorf("%s: the other side hears %v", x.name, err)
		}
		if x.down != "" {
			if err := h.down(t); !strings.Contains(err.Error(), x.down) {
				t.Errorf("%s: %v", x.name, err)
			}
		}
		if len(h.msgs) > 0 {
			t.Errorf("%s: something was delivered", x.name)
		}
		c.ports[0].Close()
	}
}

// TestVersions: nodes of two versions of the transport refuse each other with one line.
func TestVersions(t *testing.T) {
	c := listen(t, 1, wire.Options{})
	conn, err := grpc.NewClient("passthrough:///"+c.nodes[0].Addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Invoke(t.Context(), wire.OldMethod, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "transport is of version") {
		t.Errorf("an older node hears %v", err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	old := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(codes.Unimplemented, "this is a port of gomem")
	}))
	served := make(chan error, 1)
	go func() { served <- old.Serve(l) }()
	defer func() { old.Stop(); <-served }()
	c.nodes = append(c.nodes, distrib.Node{ID: 1, Addr: l.Addr().String()})
	_, h := open(t, c.ports[0], c.view(1, 0))
	if err := h.down(t); !strings.Contains(err.Error(), "another version") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("a newer node hears %v", err)
	}
}

// TestUsedAgain: a message whose receiver has let go of it costs no memory, with TLS neither.
func TestUsedAgain(t *testing.T) {
	for name, o := range map[string]wire.Options{"plain": {}, "TLS": encrypted(t)} {
		c := listen(t, 2, o)
		a, _ := open(t, c.ports[0], c.view(1, 0))
		_, hb := open(t, c.ports[1], c.view(1, 1))
		body := make([]byte, 256<<10)
		send := func() {
			binary.LittleEndian.PutUint64(body, binary.LittleEndian.Uint64(body)+1)
			done := make(chan error, 1)
			a.Send(1, &distrib.Msg{Class: distrib.Collective, Head: body[:48],
				Body: [][]byte{body}, Done: func(err error) { done <- err }})
			m := hb.message(t)
			if string(m.Body[0]) != string(body) || string(m.Head) != string(body[:48]) {
				t.Fatalf("%s: the message has changed", name)
			}
			if err := errors.Join(<-done); err != nil {
				t.Fatal(err)
			}
			m.Done(nil)
		}
		send()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const runs = 200
		for range runs {
			send()
		}
		runtime.ReadMemStats(&after)
		if each := float64(after.TotalAlloc-before.TotalAlloc) / runs; each > 64<<10 {
			t.Errorf("%s: a message of 256 KiB costs %.0f bytes", name, each)
		}
	}
}
