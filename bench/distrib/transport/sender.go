package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/trust"
	"github.com/gomem/gomem/distrib/cluster/wire"
)

// sender sends to a process that receives.
type sender interface {
	// send returns when n messages have arrived.
	send(ctx context.Context, body []byte, n int) error
	// stats is what this process and the other one have allocated.
	stats(ctx context.Context) (here, there memory, err error)
	close()
}

// start starts the receiver of a kind, and is its sender.
func start(ctx context.Context, kind, keys string) (sender, error) {
	o, err := options(kind, keys)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(kind, "wire") {
		address, child, err := fork(ctx, kind, "", keys)
		if err != nil {
			return nil, err
		}
		conn, err := net.Dial("tcp", address)
		if err == nil && o.Client != nil {
			conn = tls.Client(conn, o.Client)
		}
		return &stream{conn, child}, err
	}
	port, err := wire.Listen("127.0.0.1:0", o)
	if err != nil {
		return nil, err
	}
	address, child, err := fork(ctx, kind, port.Addr(), keys)
	if err != nil {
		return nil, err
	}
	s := &node{port: port, child: child, answers: make(chan memory, 1), ends: make(chan error, 1)}
	s.t, err = port.Open(view(0, port.Addr(), address))
	if err == nil {
		s.t.Serve(s)
	}
	return s, err
}

// options is with encryption or without, as the kind's name says.
func options(kind, keys string) (o wire.Options, err error) {
	if !strings.Contains(kind, "TLS") {
		return o, nil
	}
	authority, err := trust.ReadAuthority(keys)
	if err != nil {
		return o, err
	}
	id, err := authority.Identity("bench")
	if err != nil {
		return o, err
	}
	return wire.Options{Server: id.Server(), Client: id.Client()}, nil
}

func view(self distrib.NodeID, addresses ...string) distrib.View {
	v := distrib.View{Epoch: 1, Self: self}
	for i, a := range addresses {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i), Addr: a})
	}
	return v
}

// fork starts the receiver, which says where it listens.
func fork(ctx context.Context, kind, peer, keys string) (string, *exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-receive", kind, "-peer", peer, "-keys", keys)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), cmd, err
}

// stream is TCP: a length and as many bytes; a length of 0 asks for the stats.
type stream struct {
	conn  net.Conn
	child *exec.Cmd
}

func (s *stream) send(_ context.Context, body []byte, n int) error {
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(body)))
	for range n {
		parts := net.Buffers{head, body}
		if _, err := parts.WriteTo(s.conn); err != nil {
			return err
		}
	}
	_, err := s.ask()
	return err
}

func (s *stream) ask() (memory, error) {
	var answer [16]byte
	_, err := s.conn.Write(make([]byte, 8))
	if err == nil {
		_, err = io.ReadFull(s.conn, answer[:])
	}
	return decode(answer[:]), err
}

func (s *stream) stats(context.Context) (here, there memory, err error) {
	there, err = s.ask()
	return allocated(), there, err
}

func (s *stream) close() {
	s.conn.Close()
	_ = s.child.Wait()
}

func decode(b []byte) memory {
	return memory{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

func encode(m memory) []byte {
	b := binary.LittleEndian.AppendUint64(nil, m.objects)
	return binary.LittleEndian.AppendUint64(b, m.bytes)
}

// node is a side of the transport.
type node struct {
	port    *wire.Port
	t       distrib.Transport
	child   *exec.Cmd
	answers chan memory
	ends    chan error
}

// Receive takes the answer to a question.
func (s *node) Receive(_ distrib.NodeID, m *distrib.Msg) { s.answers <- decode(m.Body[0]) }

// Down is the end of the receiver.
func (s *node) Down(_ distrib.NodeID, err error) { s.ends <- err }

func (s *node) send(ctx context.Context, body []byte, n int) error {
	for range n {
		s.t.Send(1, &distrib.Msg{Class: distrib.Updates, Body: [][]byte{body}})
	}
	_, err := s.ask(ctx)
	return err
}

// ask waits for an answer, which comes after what was sent before.
func (s *node) ask(ctx context.Context) (memory, error) {
	s.t.Send(1, &distrib.Msg{Class: distrib.Updates, Tag: 1})
	select {
	case m := <-s.answers:
		return m, nil
	case err := <-s.ends:
		return memory{}, err
	case <-ctx.Done():
		return memory{}, ctx.Err()
	}
}

func (s *node) stats(ctx context.Context) (here, there memory, err error) {
	there, err = s.ask(ctx)
	return allocated(), there, err
}

func (s *node) close() {
	if err := errors.Join(s.t.Close(), s.port.Close(), s.child.Wait()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
