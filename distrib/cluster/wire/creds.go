package wire

import (
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gomem/gomem/distrib/cluster/trust"
)

// admitting tells the gate that a connection has authenticated.
type admitting struct {
	credentials.TransportCredentials
}

func (a admitting) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := a.TransportCredentials.ServerHandshake(c)
	if err == nil {
		trust.Admit(c)
	}
	return conn, info, err
}

func (a admitting) Clone() credentials.TransportCredentials {
	return admitting{a.TransportCredentials.Clone()}
}

// secured is one side's credentials.
func secured(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return admitting{insecure.NewCredentials()}
	}
	return admitting{credentials.NewTLS(config)}
}
