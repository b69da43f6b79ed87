package control

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"

	"github.com/gomem/gomem/distrib/cluster/scratch"
)

// Times of embedded servers. A leader that is silent for electionMs is replaced. With
// more than 600 ms, etcd would grant no lease of one second.
const (
	heartbeatMs = 100
	electionMs  = 600
)

// ServerError says that this node's embedded server ended by itself.
type ServerError struct {
	Dir string // its data
	Why string
}

// Error is one line.
func (e *ServerError) Error() string {
	return fmt.Sprintf("the control server of this node stopped: %s; its data are in %s",
		e.Why, e.Dir)
}

// server is an embedded etcd.
type server struct {
	etcd *embed.Etcd
	dir  string       // of its data
	temp *scratch.Dir // to be removed with it
	at   Server       // where it is reached
	gate *front       // before it; nil where etcd listens itself
	side *front       // the same before where its peers reach it

	mu     sync.Mutex // before failed; and before etcd for what does not wait for start
	failed *ServerError
	gone   chan struct{} // closed when it has failed
	over   chan struct{} // closed by close
}

// serverPlace is where a server is, and among whom.
type serverPlace struct {
	at     Server // port 0: any, where it has fronts
	spread bool   // others may come, and go
	joins  bool   // a cluster that is there
	// cluster are the names of all and where their peers reach them, as etcd has it, once it
	// is known where this one is.
	cluster func(at Server) (string, error)
}

// startServer runs this node's etcd, which may have to wait for the others: see ready.
func startServer(ctx context.Context, cfg *Config) (*server, error) {
	b := serverPlace{at: cfg.Servers[cfg.Rank], spread: cfg.Spread > 1}
	b.cluster = func(at Server) (string, error) {
		all := slices.Clone(cfg.Servers)
		all[cfg.Rank] = at
		return initialCluster(cfg.scheme(), all), nil
	}
	switch {
	case b.spread:
		b.at.Peer = net.JoinHostPort(cfg.Host, "0")
	case len(cfg.Servers) == 1:
		b.at.Peer = ""
	}
	return runServer(ctx, cfg, b)
}

// runServer runs an etcd at its place.
func runServer(ctx context.Context, cfg *Config, b serverPlace) (*server, error) {
	s := &server{dir: cfg.Dir, at: b.at, gone: make(chan struct{}), over: make(chan struct{})}
	var err error
	if s.temp, err = scratch.Make(cfg.Scratch, "gomem-etcd-"); err != nil {
		return nil, err
	}
	if s.dir == "" {
		s.dir = filepath.Join(s.temp.Path, "data")
	}
	files, err := cfg.TLS.files(s.temp.Path)
	if err == nil {
		go s.renew(cfg, files)
		err = s.open(cfg, b)
	}
	var cluster string
	if err == nil {
		cluster, err = b.cluster(s.at)
	}
	if err == nil {
		err = s.start(ctx, s.config(cfg, b, files, cluster))
	}
	if err != nil {
		s.gate.close()
		s.side.close()
		close(s.over)
		s.temp.Remove()
		return nil, fmt.Errorf("the control server of rank %d: %w", cfg.Rank, err)
	}
	if s.gate == nil {
		s.at.Client = s.etcd.Clients[0].Addr().String()
	}
	return s, nil
}

// open opens the ways for clients and peers, which are etcd's own where there are neither
// certificates nor others that come and go: a front can hang up on all at once.
func (s *server) open(cfg *Config, b serverPlace) (err error) {
	if !cfg.TLS.on() && !b.spread {
		return nil
	}
	s.gate, s.at.Client, err = frontAt(b.at.Client, s.socket("c"), cfg)
	if err == nil && b.at.Peer != "" {
		s.side, s.at.Peer, err = frontAt(b.at.Peer, s.socket("p"), cfg)
	}
	return err
}

// frontAt is a front, and where others reach it.
func frontAt(address, socket string, cfg *Config) (*front, string, error) {
	f, err := newFront(listen("", address).Host, socket, &cfg.TLS, cfg.Log)
	if err != nil {
		return nil, "", err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		f.close()
		return nil, "", err
	}
	return f, net.JoinHostPort(host, strconv.Itoa(f.listener.Addr().(*net.TCPAddr).Port)), nil
}

// socket is where etcd listens behind a front.
func (s *server) socket(name string) string { return filepath.Join(s.temp.Path, name) }

// start runs etcd on a goroutine of its own, which may end with what etcd dies of. One that looks
// for the others for too long is left behind, and ended when it comes back.
func (s *server) start(ctx context.Context, c *embed.Config) error {
	type begun struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan begun, 1)
	go func() {
		e, err := embed.StartEtcd(c)
		started <- begun{e, err}
	}()
	select {
	case b := <-started:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.etcd = b.etcd
		return b.err
	case <-s.gone:
		return s.err()
	case <-ctx.Done():
		go func() {
			select {
			case b := <-started:
				if b.err == nil {
					b.etcd.Server.HardStop()
					b.etcd.Close()
				}
			case <-s.gone:
			}
			s.temp.Remove()
		}()
		return context.Cause(ctx)
	}
}

// renewEvery is how often certificates that come from a function are written anew; their
// life is a day.
const renewEvery = time.Hour

// renew keeps the files that etcd reads up to date, until the server ends.
func (s *server) renew(cfg *Config, files *TLS) {
	if cfg.TLS.Source == nil {
		return
	}
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.over:
			return
		}
		if err := cfg.TLS.refresh(files); err != nil {
			cfg.Log.Info("certificates were not renewed", zap.Error(err))
		}
	}
}

// config is what etcd is told. Off are the gateway to HTTP and the listener for peers of
// a lone server: what is not needed does not listen.
func (s *server) config(cfg *Config, b serverPlace, files *TLS, cluster string) *embed.Config {
	c := embed.NewConfig()
	c.Name, c.Dir = serverName(cfg.Rank), s.dir
	c.TickMs, c.ElectionMs = heartbeatMs, electionMs
	c.UnsafeNoFsync = cfg.Dir == ""
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModeRevision, "1000"
	c.EnableGRPCGateway = false
	c.InitialClusterToken = cfg.Job
	c.TlsMinVersion = "TLS1.3"
	if files.on() {
		info := transport.TLSInfo{CertFile: files.CertFile, KeyFile: files.KeyFile,
			TrustedCAFile: files.CAFile, ClientCertAuth: true, ServerName: files.ServerName,
			SkipClientSANVerify: true}
		c.PeerTLSInfo = info
	}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(s.logger(cfg.etcdLog()))
	c.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainUnaryInterceptor(s.answer)}
	if b.spread { // who comes and goes says so in keys, by which nobody goes who is needed
		c.StrictReconfigCheck = false
	}
	if b.joins {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	scheme := scheme(files)
	c.ListenClientUrls = []url.URL{listen(scheme, s.at.Client)}
	if s.gate != nil {
		c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: s.socket("c")}}
	}
	c.AdvertiseClientUrls = []url.URL{{Scheme: scheme, Host: s.at.Client}}
	if s.at.Peer == "" {
		peer := url.URL{Scheme: scheme, Host: "localhost:2380"} // a name; nobody listens
		c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{peer}
		c.InitialCluster = c.Name + "=" + peer.String()
		return c
	}
	c.ListenPeerUrls = []url.URL{listen(scheme, s.at.Peer)}
	if s.side != nil { // of peers' URLs etcd looks at the host alone
		c.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: s.socket("p")}}
	}
	c.AdvertisePeerUrls = []url.URL{{Scheme: scheme, Host: s.at.Peer}}
	c.InitialCluster = cluster
	return c
}

func scheme(t *TLS) string {
	if t.on() {
		return "https"
	}
	return "http"
}

func serverName(rank int) string { return fmt.Sprintf("rank%d", rank) }

func initialCluster(scheme string, servers []Server) string {
	var all []string
	for i, s := range servers {
		all = append(all, fmt.Sprintf("%s=%s://%s", serverName(i), scheme, s.Peer))
	}
	return strings.Join(all, ",")
}

// listen is where to listen for what is reached at addr: at the same address if that is of
// loopback, otherwise at all interfaces, since a name may be that of a service, and an address
// be translated.
func listen(scheme, addr string) url.URL {
	host, port, _ := net.SplitHostPort(addr)
	switch {
	case host == "localhost":
		host = "127.0.0.1"
	case loopback(host):
	case strings.Contains(host, ":"): // an address of IPv6
		host = "::"
	default:
		host = "0.0.0.0"
	}
	return url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}
}

// logger notes why a server ends: etcd would end the process instead, say of a full disk.
func (s *server) logger(log *zap.Logger) *zap.Logger {
	hook := fatalHook{s}
	return log.WithOptions(zap.WithFatalHook(hook), zap.WithPanicHook(hook))
}

type fatalHook struct{ s *server }

// OnWrite notes a last message and ends the goroutine that wrote it, for good.
func (h fatalHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	why := e.Message
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			why += ": " + err.Error()
		}
	}
	h.s.fail(why)
	runtime.Goexit()
}

func (s *server) fail(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = &ServerError{s.dir, why}
		close(s.gone)
	}
}

// err is why the server has ended by itself, if it has.
func (s *server) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		return nil
	}
	return s.failed
}

// ready waits until the server takes requests.
func (s *server) ready(ctx context.Context) error {
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case <-s.gone:
		return s.err()
	case err := <-s.etcd.Err():
		return fmt.Errorf("the control server: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answer lets etcd answer a request, and is an error once it ends: one that is removed from its
// cluster closes its data and takes requests still, and panics where it reads what is closed.
func (s *server) answer(ctx context.Context, request any, _ *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (reply any, err error) {
	if s.ending() {
		return nil, rpctypes.ErrGRPCStopped
	}
	defer func() { // it may end meanwhile
		why := recover()
		if why == nil {
			return
		}
		if !s.ending() {
			panic(why)
		}
		reply, err = nil, rpctypes.ErrGRPCStopped
	}()
	return handle(ctx, request)
}

// ending tells whether etcd has begun to end, by itself or by close.
func (s *server) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etcd == nil {
		return false
	}
	select {
	case <-s.etcd.Server.StoppingNotify():
		return true
	default:
		return false
	}
}

// resign gives etcd's lead to another server, if that takes no longer than ctx: else they would
// miss it, and elect one.
func (s *server) resign(ctx context.Context) {
	if s.err() != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.etcd.Server.TryTransferLeadershipOnShutdown()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// close ends the server. One that has failed may not end any more: it is left behind.
func (s *server) close() {
	if s == nil {
		return
	}
	close(s.over)
	s.gate.close()
	s.side.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-s.etcd.Server.ReadyNotify():
		default: // it waits for others; Close would wait with it
			s.etcd.Server.HardStop()
		}
		s.etcd.Close()
	}()
	wait := time.NewTimer(3 * time.Second) // it may wait for a quorum that is gone
	defer wait.Stop()
	select {
	case <-done:
	case <-s.gone:
	case <-wait.C:
	}
	s.temp.Remove()
}
