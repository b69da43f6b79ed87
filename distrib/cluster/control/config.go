package control

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// What a [Config] has where a field is zero.
const (
	DefaultTTL     = 5 * time.Second // how long a node is missed before it counts as lost
	DefaultLeadTTL = time.Second     // the same for who leads in a role
	DefaultWait    = time.Minute     // for a cluster that does not answer yet
	DefaultStall   = time.Minute     // for nodes that do not come
	DefaultSettle  = time.Second     // for more nodes once there are enough
)

// Config says where the control plane of a job runs and who this node is.
type Config struct {
	Job  string // names the job; letters, digits, dots, dashes and underscores
	Rank int    // this node's

	// Servers are where etcd is embedded: in the nodes of ranks 0 to len-1. One is
	// enough and needs nothing prepared; three go on when one of them is lost.
	Servers []Server
	// Spread is how many nodes of a view have a server, once there are so many: an odd number.
	// It begins in rank 0's alone, the only one of Servers; nodes of the view add one of their
	// own, the lowest ranks first, and others take the place of those that are lost or leave.
	// The job goes on while most of the servers are there. 0 and 1: it stays in rank 0.
	Spread int
	// Host is this node's, as the others reach it, for the server that it may come to have.
	Host string
	// Endpoints are the client URLs of an etcd that runs already, instead of Servers.
	Endpoints []string
	// Dir is where this node's server keeps its data, so that a restarted node goes on
	// with them. Without, they are in a temporary directory, without fsync, and end with
	// the process.
	Dir string

	// Scratch is where temporary directories of servers are; "": the system's. A server removes
	// there what servers of processes that were killed have left behind.
	Scratch string

	TLS      TLS    // the zero value: none, on loopback only
	Insecure bool   // no TLS off loopback either
	User     string // of an external cluster with passwords
	Password string

	TTL time.Duration // 0: [DefaultTTL]; etcd takes whole seconds
	// Grace is how long after its lease a node goes on that hears nothing of an etcd that is named
	// by Endpoints, for when that comes back; 0: TTL. With embedded servers there is none.
	Grace   time.Duration
	LeadTTL time.Duration // 0: [DefaultLeadTTL]; it may be granted more
	Wait    time.Duration // 0: [DefaultWait]
	Stall   time.Duration // 0: [DefaultStall]
	Settle  time.Duration // 0: [DefaultSettle]

	// Log is told what befalls the node, and how it got on with etcd; and of a level below, all
	// that etcd has to say. Nil: nothing is logged.
	Log *zap.Logger
}

// Server is where an embedded etcd is reached, as host:port.
type Server struct {
	Client string // by all nodes
	Peer   string // by the other servers; "" where there is one
}

var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// check says what is wrong with a configuration, and fills in what is zero.
func (c Config) check() (Config, error) {
	switch {
	case !jobName.MatchString(c.Job):
		return c, fmt.Errorf("job %q: a name has letters, digits, dots, dashes and "+
			"underscores, at most 100", c.Job)
	case c.Rank < 0:
		return c, fmt.Errorf("rank %d is negative", c.Rank)
	case len(c.Servers) > 0 && len(c.Endpoints) > 0:
		return c, errors.New("etcd: either embedded servers or an external cluster, not both")
	case len(c.Servers) == 0 && len(c.Endpoints) == 0:
		return c, errors.New("etcd: neither embedded servers nor an external cluster is named")
	case len(c.Servers)%2 == 0 && len(c.Servers) > 0:
		return c, fmt.Errorf("etcd on %d nodes survives no more losses than on %d: "+
			"name an odd number", len(c.Servers), len(c.Servers)-1)
	}
	if err := c.checkSpread(); err != nil {
		return c, err
	}
	if len(c.Servers) > 0 && c.TLS.on() && !c.TLS.own() {
		return c, errors.New("etcd: an authority alone is for external clusters; embedded " +
			"servers need a certificate")
	}
	if err := c.checkAddresses(); err != nil {
		return c, err
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c, c.defaults()
}

// checkSpread says what is wrong with a server in several nodes of the view.
func (c *Config) checkSpread() error {
	switch {
	case c.Spread < 0 || c.Spread > 1 && c.Spread%2 == 0:
		return fmt.Errorf("etcd on %d nodes: name an odd number", c.Spread)
	case c.Spread < 2:
		return nil
	case len(c.Servers) != 1:
		return errors.New("etcd spreads from one embedded server, that of rank 0")
	case c.Dir != "":
		return fmt.Errorf("etcd on %d nodes that come and go keeps no data in %s", c.Spread, c.Dir)
	}
	if err := c.checkHost(net.JoinHostPort(c.Host, "0")); err != nil {
		return fmt.Errorf("etcd here: %w", err)
	}
	return nil
}

func (c *Config) scheme() string { return scheme(&c.TLS) }

func (c *Config) defaults() error {
	for _, d := range []struct {
		what string
		v    *time.Duration
		or   time.Duration
	}{
		{"lease", &c.TTL, DefaultTTL},
		{"grace", &c.Grace, 0},
		{"lease of leaders", &c.LeadTTL, DefaultLeadTTL},
		{"wait", &c.Wait, DefaultWait},
		{"stall", &c.Stall, DefaultStall},
		{"settle", &c.Settle, DefaultSettle},
	} {
		if *d.v < 0 {
			return fmt.Errorf("%s of %v: a duration is not negative", d.what, *d.v)
		}
		if *d.v == 0 {
			*d.v = d.or
		}
	}
	if len(c.Endpoints) == 0 {
		c.Grace = 0
	} else if c.Grace == 0 {
		c.Grace = c.TTL
	}
	return nil
}

func (c *Config) checkAddresses() error {
	for i, s := range c.Servers {
		if err := c.checkHost(s.Client); err != nil {
			return fmt.Errorf("etcd server %d: %w", i, err)
		}
		if len(c.Servers) == 1 {
			continue
		}
		if err := c.checkHost(s.Peer); err != nil {
			return fmt.Errorf("etcd server %d, for its peers: %w", i, err)
		}
	}
	return c.CheckEndpoints()
}

// CheckEndpoints says what is wrong with the URLs of an etcd that runs already, which it does
// not connect to.
func (c Config) CheckEndpoints() error {
	for _, e := range c.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("etcd: %q is no URL like https://host:2379", e)
		}
		if u.Scheme == "http" {
			if err := c.checkPlain(u.Host); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Config) checkHost(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("%q is no address like host:2379", addr)
	}
	if c.TLS.on() {
		return nil
	}
	return c.checkPlain(addr)
}

// checkPlain refuses what would go over a network for everybody to read.
func (c *Config) checkPlain(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if c.Insecure || loopback(host) {
		return nil
	}
	return fmt.Errorf("etcd: %s is not on loopback: give certificates, or say that it may be "+
		"insecure", addr)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// etcdLog is for what etcd has to say itself, which is much: where everything is logged.
func (c *Config) etcdLog() *zap.Logger {
	return c.Log.Named("etcd").WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		if core.Enabled(zap.DebugLevel) {
			return core
		}
		return zapcore.NewNopCore()
	}))
}
