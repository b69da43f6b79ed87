package wire

import (
	"context"

	"google.golang.org/grpc"
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

type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
