package control

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/raft/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestTransient: what a server says that ends, or gives its lead away, is asked again of another
// one; what it refuses is not. Raft's errors reach a client without a code.
func TestTransient(t *testing.T) {
	for _, err := range []error{
		context.DeadlineExceeded,
		rpctypes.ErrGRPCStopped,
		rpctypes.ErrStopped,
		rpctypes.ErrLeaderChanged,
		rpctypes.ErrTimeout,
		status.Error(codes.Unknown, raft.ErrStopped.Error()),
		status.Error(codes.Unknown, raft.ErrProposalDropped.Error()),
	} {
		if !transient(err) {
			t.Errorf("%v is not asked again", err)
		}
	}
	for _, err := range []error{
		nil,
		context.Canceled,
		errors.New("raft has stopped"),
		rpctypes.ErrLeaseNotFound,
		rpctypes.ErrPermissionDenied,
		status.Error(codes.Unknown, "unknown"),
	} {
		if transient(err) {
			t.Errorf("%v is asked again", err)
		}
	}
}
