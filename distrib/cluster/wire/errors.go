package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/gomem/gomem/distrib"
)

// ErrClosed is what a transport refuses with after Close, and what the others are told.
var ErrClosed = errors.New("the transport is closed")

// ErrUntrusted is a node, or this one, whose certificate is not of the job.
var ErrUntrusted = errors.New("no certificate of this job")

// ErrMessage is a message that cannot be sent.
var ErrMessage = errors.New("no message")

// EpochError is a stream of another epoch than the node's that it came to.
type EpochError struct {
	Node     distrib.NodeID // that refused
	Its, Our int64          // epochs
}

// Error is one line that names both.
func (e *EpochError) Error() string {
	if e.Its < 0 {
		return fmt.Sprintf("node %d is in no epoch, this one in %d", e.Node, e.Our)
	}
	return fmt.Sprintf("node %d is in epoch %d, this one in %d", e.Node, e.Its, e.Our)
}

// ViewError is two nodes that agree on an epoch and not on who takes part in it.
type ViewError struct {
	Node     distrib.NodeID
	Its, Our string // the first digits of their views' sums
}

// Error is one line.
func (e *ViewError) Error() string {
	return fmt.Sprintf("node %d has another view of the same epoch: %s, this one %s", e.Node, e.Its,
		e.Our)
}

// refusal is why a stream is not let in; both sides know the details, the one that asked
// by what is sent with it.
type refusal struct {
	epoch int64  // of the node that refuses; -1: none
	view  string // of it, if the epoch is right
	what  string // anything else
}

const (
	epochKey = "gomem-epoch"
	viewKey  = "gomem-view"
)

// status is what is answered, with its details as the trailer.
func (r *refusal) status() (metadata.MD, error) {
	what := r.what
	if what == "" {
		what = "another epoch or view"
	}
	md := metadata.Pairs(epochKey, strconv.FormatInt(r.epoch, 10), viewKey, r.view)
	return md, status.Error(codes.FailedPrecondition, what)
}

// verdict is the same for a connection for bulk.
func (r *refusal) verdict() verdict {
	md, err := r.status()
	return verdict{Code: status.Code(err), What: plain(err).Error(), Epoch: r.epoch,
		View: one(md, viewKey)}
}

// trailerOf is what refused reads of such a verdict.
func trailerOf(v verdict) metadata.MD {
	return metadata.Pairs(epochKey, strconv.FormatInt(v.Epoch, 10), viewKey, v.View)
}

// refused is the error that a trailer and an error stand for, to a node of a hello; what
// stands for nothing else is as it was.
func refused(node distrib.NodeID, h hello, trailer metadata.MD, err error) error {
	if status.Code(err) != codes.FailedPrecondition {
		return err
	}
	epoch, bad := strconv.ParseInt(one(trailer, epochKey), 10, 64)
	view := one(trailer, viewKey)
	switch {
	case bad != nil:
		return err
	case epoch != h.epoch:
		return &EpochError{node, epoch, h.epoch}
	case view != h.view && view != "":
		return &ViewError{node, short(view), short(h.view)}
	}
	return err
}

func short(view string) string { return view[:min(len(view), 8)] }

// plain is an error of gRPC on one line, without its codes.
func plain(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	return errors.New(strings.ReplaceAll(s.Message(), "\n", " "))
}

func one(md metadata.MD, key string) string {
	if v := md.Get(key); len(v) == 1 {
		return v[0]
	}
	return ""
}
