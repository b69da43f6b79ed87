package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/gomem/gomem/distrib"
)

// SendRaw sends bytes as one message of gRPC, on a stream of class 0 that begins as one of
// a view's node to node 0, and returns what it ends with.
func SendRaw(ctx context.Context, address string, v distrib.View, b []byte) error {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	h := hello{from: v.Self, epoch: v.Epoch, view: sumView(v)}
	stream, err := conn.NewStream(withHello(ctx, h), &grpc.StreamDesc{ClientStreams: true},
		method, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return err
	}
	if err := stream.SendMsg(b); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(&[]byte{})
}

// SendBulk is SendRaw on a connection of its own, of class Collective, that begins with a
// greeting for a class. It hangs up after the bytes if that is asked for.
func SendBulk(ctx context.Context, address string, v distrib.View, c distrib.Class, b []byte,
	hangUp bool) error {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer raw.Close()
	w := &bulk{raw: raw.(*net.TCPConn), conn: raw, gone: ctx.Done()}
	h := hello{from: v.Self, class: c, epoch: v.Epoch, view: sumView(v)}
	said, err := w.greet(ctx, nil, h)
	if err == nil && said.Code != codes.OK {
		err = said.err()
	}
	if err != nil {
		return err
	}
	if _, err := raw.Write(b); err != nil || hangUp {
		return err
	}
	return w.wait()
}

// Claim says hello to node 0 as a view's node, with a certificate, and returns what it hears.
func Claim(ctx context.Context, address string, v distrib.View, config *tls.Config,
	overBulk bool) error {
	h := hello{from: v.Self, epoch: v.Epoch, view: sumView(v)}
	if overBulk {
		h.class = distrib.Collective
		var d net.Dialer
		raw, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer raw.Close()
		w := &bulk{raw: raw.(*net.TCPConn), conn: raw, gone: ctx.Done()}
		said, err := w.greet(ctx, config, h)
		return cmp.Or(err, said.err())
	}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(secured(config)))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := conn.NewStream(withHello(ctx, h), &grpc.StreamDesc{ClientStreams: true},
		method, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return err
	}
	return stream.RecvMsg(&[]byte{})
}

// OldMethod is the one of an earlier version.
const OldMethod = "/gomem.Wire/Stream"

type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
