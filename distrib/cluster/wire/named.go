package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/credentials"
	remote "google.golang.org/grpc/peer"

	"github.com/gomem/gomem/distrib"
)

// nameError is a node whose certificate is another one's.
type nameError struct {
	Node distrib.NodeID // that it is to be
	Name string         // that its certificate has
}

// Error is one line that names both.
func (e *nameError) Error() string {
	return fmt.Sprintf("%s %d has the certificate of %s", misnamed, e.Node, e.Name)
}

// misnamed is by what the text of such an error is known, which is all that TLS hands on of it.
const misnamed = "who is to be node"

// onlyName is such an error without what gRPC says around it.
func onlyName(err error) error {
	text := plain(err).Error()
	return errors.New(strings.TrimRight(text[max(0, strings.Index(text, misnamed)):], `"`))
}

// named refuses a connection whose other end is not the node that it is to be.
func (o *Options) named(node distrib.NodeID, s tls.ConnectionState) error {
	if o.Name == nil {
		return nil
	}
	name := ""
	if len(s.PeerCertificates) > 0 {
		name = s.PeerCertificates[0].Subject.CommonName
	}
	if name != o.Name(node) {
		return &nameError{node, name}
	}
	return nil
}

// vouched refuses a stream of gRPC's that comes from another node than it says.
func (o *Options) vouched(ctx context.Context, node distrib.NodeID) error {
	if o.Server == nil {
		return nil
	}
	var s tls.ConnectionState
	if p, ok := remote.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			s = info.State
		}
	}
	return o.named(node, s)
}

// client is TLS to a node.
func (o *Options) client(node distrib.NodeID) *tls.Config {
	if o.Client == nil || o.Name == nil {
		return o.Client
	}
	config := o.Client.Clone()
	before := config.VerifyConnection
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if before != nil {
			if err := before(s); err != nil {
				return err
			}
		}
		return o.named(node, s)
	}
	return config
}
