package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/trust"
	"github.com/gomem/gomem/distrib/cluster/wire"
)

// TestNames: a member that says it is another one than its certificate has is refused, on streams
// of gRPC's and on connections for bulk, by who it comes to and by who comes to it; with their own
// names members talk to each other.
func TestNames(t *testing.T) {
	a, err := trust.New("test")
	if err != nil {
		t.Fatal(err)
	}
	as := func(certificate int) wire.Options {
		id, err := a.Identity(fmt.Sprint("process ", certificate))
		if err != nil {
			t.Fatal(err)
		}
		return wire.Options{Server: id.Server(), Client: id.Client(),
			Name: func(n distrib.NodeID) string { return fmt.Sprint("process ", n) }}
	}
	pair := func(second wire.Options) *cluster {
		c := listen(t, 1, as(0))
		c.ports = append(c.ports, listen(t, 1, second).ports[0])
		c.nodes = append(c.nodes, distrib.Node{ID: 1, Addr: c.ports[1].Addr()})
		return c
	}

	c := pair(as(1))
	first, _ := open(t, c.ports[0], c.view(1, 0))
	_, heard := open(t, c.ports[1], c.view(1, 1))
	for _, class := range []distrib.Class{distrib.Control, distrib.Collective} {
		first.Send(1, &distrib.Msg{Class: class})
		heard.message(t)
	}

	other := as(2)
	c = pair(other)
	_, ends := open(t, c.ports[0], c.view(1, 0))
	err = ends.down(t)
	if want := "node 1 has the certificate of process 2"; !errors.Is(err, wire.ErrUntrusted) ||
		!strings.Contains(err.Error(), want) {
		t.Error("who is connected to has another name: ", err)
	}
	for _, bulk := range []bool{false, true} {
		err := wire.Claim(t.Context(), c.nodes[0].Addr, c.view(1, 1), other.Client, bulk)
		if err == nil || !strings.Contains(err.Error(), "node 1 has the certificate of process 2") {
			t.Errorf("bulk %v: who connects has another name: %v", bulk, err)
		}
	}
}
