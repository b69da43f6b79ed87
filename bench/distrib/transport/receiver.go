package main

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/wire"
)

// receiver is the other process.
func receiver(kind, peer, keys string) error {
	o, err := options(kind, keys)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(kind, "wire") {
		return receiveTCP(o.Server)
	}
	port, err := wire.Listen("127.0.0.1:0", o)
	if err != nil {
		return err
	}
	fmt.Println(port.Addr())
	t, err := port.Open(view(1, peer, port.Addr()))
	if err != nil {
		return err
	}
	e := &echo{t: t, gone: make(chan error, 1)}
	t.Serve(e)
	<-e.gone // as it should, or not: the sender says
	_ = t.Close()
	return port.Close()
}

// echo answers questions.
type echo struct {
	t    distrib.Transport
	gone chan error
	own  memory // of bodies, which are the receiver's
}

// Receive drops a body, or answers.
func (e *echo) Receive(from distrib.NodeID, m *distrib.Msg) {
	if m.Tag == 0 {
		e.own.objects++
		e.own.bytes += uint64(len(m.Body[0]))
		return
	}
	a := allocated()
	a.objects -= e.own.objects
	a.bytes -= e.own.bytes
	e.t.Send(from, &distrib.Msg{Class: distrib.Updates, Body: [][]byte{encode(a)}})
}

// Down is the end of the sender.
func (e *echo) Down(_ distrib.NodeID, err error) { e.gone <- err }

// receiveTCP reads into one place, over and over.
func receiveTCP(config *tls.Config) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	if config != nil {
		conn = tls.Server(conn, config)
	}
	var head [8]byte
	var body []byte
	for {
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return nil // the sender has hung up
		}
		n := binary.LittleEndian.Uint64(head[:])
		if n == 0 {
			if _, err := conn.Write(encode(allocated())); err != nil {
				return err
			}
			continue
		}
		if uint64(len(body)) < n {
			body = make([]byte, n)
		}
		if _, err := io.ReadFull(conn, body[:n]); err != nil {
			return err
		}
	}
}
