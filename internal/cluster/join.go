package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/control"
	"github.com/gomem/gomem/distrib/cluster/launch"
	"github.com/gomem/gomem/distrib/cluster/trust"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/internal/command"
)

// How long processes may take: to come up with the others, also without a word, and to go.
const (
	comeTime  = time.Minute
	quietTime = 3 * time.Second
	leaveTime = 3 * time.Second
	// laterTime is how long who is in a view may take to connect, where views change while
	// processes are in the middle of a step.
	laterTime = 10 * time.Minute
)

// joiner is a process that joins its job, and what it is to end when it leaves.
type joiner struct {
	flags command.JobFlags
	world launch.World
	say   func(string)
	log   *slog.Logger
	host  string // of this process, as the others reach it
	local bool   // process 0 is at loopback, and so are all
	plain bool   // nothing is encrypted
	id    *trust.Identity
	etcd  string // host:port of process 0's
	info  announcement

	agreed *control.Control
	asked  atomic.Pointer[control.Control] // the same, by who answers those who join
	port   *wire.Port
	ends   []func() error // in reverse
	views  *relay         // nil before it has joined
}

// announcement is what process 0 tells those who have joined.
type announcement struct {
	Etcd string `json:"etcd"` // host:port
}

// Join meets the other processes of the job. Where one of them has failed before, which has a
// launcher in common with this one, the error is a [command.WorkerError].
func (c Cluster) Join(ctx context.Context, f command.JobFlags, _ command.World,
	say func(string), log *slog.Logger) (*command.Job, error) {
	w, err := find(f)
	if err != nil {
		return nil, err
	}
	j := &joiner{flags: f, world: w, say: say, log: log}
	job, err := c.meet(ctx, j.come)
	if err != nil {
		return nil, errors.Join(err, j.leave())
	}
	job.Leave, job.Counts = j.leave, j.counts
	if j.returns() {
		job.Again = func(ctx context.Context) error { return j.again(ctx, job) }
	}
	return job, nil
}

// meet joins by a function, unless another process fails before.
func (c Cluster) meet(ctx context.Context, come func(context.Context) (*command.Job, error)) (
	*command.Job, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-c.failed:
			cancel(&command.WorkerError{Status: 1})
		case <-ctx.Done():
		}
	}()
	job, err := come(ctx)
	if failed, ok := errors.AsType[*command.WorkerError](context.Cause(ctx)); ok && err != nil {
		return nil, failed
	}
	return job, err
}

// come joins, unless others are at work: then there is who comes later, when it is ready.
func (j *joiner) come(ctx context.Context) (*command.Job, error) {
	met := j.waits()
	defer met()
	if err := j.reach(ctx); err != nil {
		return nil, err
	}
	if least, most := j.few(); least == most {
		return j.enter(ctx)
	}
	later, err := j.agreed.AtWork(ctx)
	if err != nil {
		return nil, err
	}
	if !later {
		return j.enter(ctx)
	}
	job := &command.Job{Open: j.port.Open, Renew: j.agreed.Renew, Expel: j.agreed.Expel,
		ID: j.agreed.ID, Saved: j.agreed.Saved, Elect: j.agreed}
	job.Enter = func(ctx context.Context) error {
		in, err := j.enter(ctx)
		return become(job, in, err)
	}
	return job, nil
}

// become gives a job the part that this process has now.
func become(job, in *command.Job, err error) error {
	if err == nil {
		job.View, job.Transport, job.Alive, job.Views = in.View, in.Transport, in.Alive, in.Views
	}
	return err
}

// returns reports whether this process can be let in again when it was out: not if it has the only
// part of etcd in it.
func (j *joiner) returns() bool {
	least, most := j.few()
	return least < most && (len(j.flags.Etcd) > 0 || j.world.Rank > 0 || j.flags.Servers > 1)
}

// again joins once more, with the same port. Where process 0 and its etcd are gone, that is
// found out at once.
func (j *joiner) again(ctx context.Context, job *command.Job) error {
	if len(j.flags.Etcd) == 0 && j.flags.Servers < 2 {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", j.etcd)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		if err == nil {
			c.Close()
		}
	}
	in, err := j.part(ctx)
	return become(job, in, err)
}

// waits says whom this process waits for, once that takes long. It has said so, or will not
// any more, when the function that it returns does. Of processes with one launcher the first
// says so for all.
func (j *joiner) waits() (met func()) {
	if launched() && j.world.Rank > 0 {
		return func() {}
	}
	said := make(chan struct{})
	t := time.AfterFunc(quietTime, func() {
		defer close(said)
		j.say(fmt.Sprintf("%s of %d waits for the others; process 0 is to be at %s", j.name(),
			j.world.Size, j.world.Master))
	})
	return func() {
		if !t.Stop() {
			<-said
		}
	}
}

// join takes part, at once.
func (j *joiner) join(ctx context.Context) (*command.Job, error) {
	if err := j.reach(ctx); err != nil {
		return nil, err
	}
	return j.enter(ctx)
}

// reach finds the job's etcd, and has a port for the others.
func (j *joiner) reach(ctx context.Context) error {
	if err := j.place(); err != nil {
		return err
	}
	if err := j.trust(ctx); err != nil {
		return err
	}
	c, err := control.Start(ctx, j.control())
	if err != nil {
		return err
	}
	j.ends = append(j.ends, c.Close)
	j.agreed = c
	j.asked.Store(c)
	o := wire.Options{Insecure: j.flags.Insecure}
	if j.flags.Min > 0 { // who is in a view and busy comes later; who is lost leaves the view
		o.Connect = laterTime
	}
	if j.id != nil {
		o.Server, o.Client = j.id.Server(), j.id.Client()
		o.Name = func(n distrib.NodeID) string { return nameOf(int(n)) }
	}
	if j.port, err = wire.Listen(net.JoinHostPort(j.listen(), "0"), o); err != nil {
		return err
	}
	j.ends = append(j.ends, j.port.Close)
	return nil
}

// enter takes part, and leaves in the end.
func (j *joiner) enter(ctx context.Context) (*command.Job, error) {
	in, err := j.part(ctx)
	if j.views != nil {
		j.ends = append(j.ends, func() error { return j.depart(j.agreed) })
	}
	return in, err
}

// part joins the view, and connects to the others in it.
func (j *joiner) part(ctx context.Context) (*command.Job, error) {
	c := j.agreed
	_, number, err := net.SplitHostPort(j.port.Addr())
	if err != nil {
		return nil, err
	}
	least, most := j.few()
	v, err := c.Join(ctx, distrib.Node{ID: distrib.NodeID(j.world.Rank),
		Addr: net.JoinHostPort(j.host, number)}, least, most)
	if err != nil {
		return nil, err
	}
	j.views = relayed(c.Views(), len(v.Nodes))
	alive, err := c.Alive()
	if err != nil {
		return nil, err
	}
	t, err := j.port.Open(v)
	return &command.Job{View: v, Transport: t, Alive: alive, Views: j.views.out,
		Open: j.port.Open, Renew: c.Renew, Expel: c.Expel, ID: c.ID, Saved: c.Saved, Elect: c}, err
}

// few are how many processes the job may begin and go on with, and may have.
func (j *joiner) few() (least, most int) {
	most = cmp.Or(j.flags.Max, j.world.Size)
	return min(cmp.Or(j.flags.Min, j.world.Size), most), most
}

// place finds out how the others reach this process, and whether that needs encryption.
func (j *joiner) place() error {
	host, port, err := net.SplitHostPort(j.world.Master)
	if err != nil {
		return fmt.Errorf("process 0 at %.100q: %w", j.world.Master, err)
	}
	j.local = trust.Plain(j.world.Master, false) == nil
	j.plain = j.flags.TLS == "off" || j.flags.TLS == "" && j.local
	if j.local {
		j.host = number(host)
		j.world.Master = net.JoinHostPort(j.host, port)
		return nil
	}
	if j.host = host; j.world.Rank == 0 {
		return nil
	}
	c, err := net.Dial("udp", j.world.Master) // which sends nothing, but finds the way
	if err != nil {
		return fmt.Errorf("there is no way to process 0 at %s: %w", j.world.Master, err)
	}
	defer c.Close()
	j.host, _, err = net.SplitHostPort(c.LocalAddr().String())
	return err
}

// number is the address that all processes of this machine take a name of loopback for, since
// it may be of several: 127.0.0.1 if that is one of them.
func number(host string) string {
	all, err := net.LookupHost(host)
	if err != nil || len(all) == 0 || slices.Contains(all, "127.0.0.1") {
		return cmp.Or(literal(host), "127.0.0.1")
	}
	return all[0]
}

// literal is a host that is an address, or "".
func literal(host string) string {
	if net.ParseIP(host) == nil {
		return ""
	}
	return host
}

// listen is where this process listens: at the address of loopback where the others look for
// process 0 if that will do, else at all that it has.
func (j *joiner) listen() string {
	if j.local {
		return j.host
	}
	return ""
}

// trust gets this process a certificate, if the job has them. Process 0 makes the job's
// authority, and answers at its address from then on.
func (j *joiner) trust(ctx context.Context) error {
	j.etcd = j.world.Master
	if j.plain {
		return trust.Plain(j.world.Master, j.flags.Insecure)
	}
	file := cmp.Or(j.flags.TokenFile, os.Getenv(launch.TokenFile))
	if file == "" {
		return fmt.Errorf("--token-file is missing: a file for the job's token, which process 0 " +
			"writes and the others read (or --tls off --insecure, where nobody else can connect)")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, comeTime, errors.New("waited for a minute"))
	defer cancel()
	if j.world.Rank > 0 {
		return j.follow(ctx, file)
	}
	return j.found(file)
}

// name is this process', for certificates and messages.
func (j *joiner) name() string { return nameOf(j.world.Rank) }

// nameOf is the name of the process of a rank.
func nameOf(rank int) string { return fmt.Sprintf("process %d", rank) }

// taken reports whether a process of a name is there, by its lease; also if that cannot be asked.
func (j *joiner) taken(name string) bool {
	c := j.asked.Load()
	if c == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), quietTime)
	defer cancel()
	all, err := c.Targets(ctx)
	return err != nil || slices.ContainsFunc(all, func(t control.Target) bool {
		return nameOf(int(t.Node)) == name
	})
}

// follow gets a certificate from process 0.
func (j *joiner) follow(ctx context.Context, file string) error {
	id, info, err := trust.JoinFile(ctx, j.world.Master, file, j.name(), j.host)
	if err != nil {
		return err
	}
	j.keep(id)
	if err := json.Unmarshal(info, &j.info); err != nil {
		return fmt.Errorf("process 0 at %s is another version: %w", j.world.Master, err)
	}
	j.etcd = j.info.Etcd
	return nil
}

// keep has a certificate, and renews it in time.
func (j *joiner) keep(id *trust.Identity) {
	j.id = id
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		id.Keep(ctx, func(err error) { j.say("certificate: " + err.Error()) })
	}()
	j.ends = append(j.ends, func() error { cancel(); <-ended; return nil })
}

// found makes the job's authority and its token, and serves those who join.
func (j *joiner) found(file string) error {
	authority, err := trust.New(j.world.Job)
	if err != nil {
		return err
	}
	id, err := authority.Identity(j.name(), j.host)
	if err != nil {
		return err
	}
	j.keep(id)
	_, number, err := net.SplitHostPort(j.world.Master)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(j.listen(), number))
	if err != nil {
		return err
	}
	if j.etcd, err = free(j.host, j.listen()); err != nil {
		return errors.Join(err, l.Close())
	}
	j.info.Etcd = j.etcd
	s := &trust.Server{Authority: authority, Identity: id, Log: j.say, Taken: j.taken,
		Info: func() []byte {
			b, _ := json.Marshal(j.info)
			return b
		}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	j.ends = append(j.ends, func() error { return errors.Join(l.Close(), <-served) })
	return authority.Token().WriteFile(file)
}

// free is an address of a host with a port that nobody listens at now.
func free(host, listen string) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(listen, "0"))
	if err != nil {
		return "", err
	}
	_, number, err := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, number), errors.Join(err, l.Close())
}

// beside is an etcd that runs beside the job, which is reached as etcd's own tool reaches it.
func beside(f command.JobFlags) control.Config {
	return control.Config{Insecure: f.Insecure, Endpoints: f.Etcd}.External(os.LookupEnv)
}

// control is where the job's etcd is.
func (j *joiner) control() control.Config {
	c := control.Config{Insecure: j.flags.Insecure}
	if len(j.flags.Etcd) > 0 {
		c = beside(j.flags)
	}
	c.Log = zapped(j.log)
	c.Job, c.Rank, c.TTL = j.world.Job, j.world.Rank, j.flags.Lease
	if len(j.flags.Etcd) > 0 {
		return c
	}
	c.Servers = []control.Server{{Client: j.etcd}}
	c.Spread, c.Host = j.flags.Servers, j.host
	c.Scratch = os.Getenv(launch.ScratchDir)
	if j.id != nil {
		c.TLS.Source = j.id.PEM
	}
	return c
}

// depart leaves the view. Process 0, where it alone has etcd in it, waits for the others to.
func (j *joiner) depart(c *control.Control) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	if j.world.Rank == 0 && j.flags.Servers < 2 {
		j.views.emptied(ctx)
	}
	_ = c.Leave(ctx) // process 0 may be gone, and etcd with it
	return nil
}

// leave ends this process' part, the last thing first.
func (j *joiner) leave() error {
	var err error
	for _, end := range slices.Backward(j.ends) {
		err = errors.Join(err, end())
	}
	j.ends = nil
	return err
}
