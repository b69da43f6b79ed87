package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/longtest"
)

// await waits for the end of a context.
func await(t *testing.T, ctx context.Context, what string) time.Time {
	t.Helper()
	select {
	case <-ctx.Done():
		return time.Now()
	case <-time.After(soon):
		t.Fatalf("%s does not end", what)
	}
	panic("unreachable")
}

func alive(t *testing.T, c *Control) context.Context {
	t.Helper()
	ctx, err := c.Alive()
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// cabled is a job whose node 2 reaches the server through a cable.
func cabled(t *testing.T, cfg Config) ([]*Control, *cable) {
	t.Helper()
	all := []*Control{start(t, cfg)}
	wire := newCable(t, strings.TrimPrefix(all[0].ends[0], "http://"))
	all = append(all, start(t, joinable(all[0], 1)))
	far := joinable(all[0], 2)
	far.Servers = []Server{{Client: wire.addr()}}
	all = append(all, start(t, far))
	joinAll(t, all, 3, 3)
	return all, wire
}

// TestPartition: a node that is cut off is at rest, and does not lead, before the others
// go on without it; when it hears of them again, it stays out until it joins again.
func TestPartition(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	all, wire := cabled(t, quick(one(t)))
	term, err := all[2].Lead(t.Context(), "scheduler")
	if err != nil {
		t.Fatal(err)
	}
	here := alive(t, all[2])
	cut := time.Now()
	wire.plug(false)
	after, err := all[1].Lead(t.Context(), "scheduler")
	if err != nil {
		t.Fatal(err)
	}
	if term.Err() == nil {
		t.Error("two nodes lead at once")
	}
	t.Logf("another leads after %v", time.Since(cut).Round(time.Millisecond))
	want(t, next(t, all[1]), 2, 1, 0, 1)
	if n := all[1].Counts(); n.Elections == 0 || n.Evictions != 1 || n.Leases != 0 {
		t.Errorf("one that goes on: %+v", n)
	}
	if here.Err() == nil {
		t.Error("the others go on, and the node that is cut off does, too")
	}
	t.Logf("view without it after %v, lease of %v", time.Since(cut).Round(time.Millisecond),
		all[2].cfg.TTL)
	v := next(t, all[2])
	if _, more := <-all[2].Views(); v.Self != -1 || more {
		t.Errorf("the node that is cut off has view %+v, more %v", v, more)
	}
	var out *FencedError
	if err := all[2].Barrier(t.Context(), "x", 3); !errors.As(err, &out) || out.Node != 2 {
		t.Errorf("a barrier of the one cut off: %v", err)
	}
	if n := all[2].Counts(); n.Elections == 0 || n.Leases != 2 {
		t.Errorf("the one cut off: %+v", n)
	}
	wire.plug(true)
	if v, err = all[2].Join(t.Context(), node(2), 3, 3); err != nil {
		t.Fatal(err)
	}
	want(t, v, 3, 2, 0, 1, 2)
	if after.Err() != nil {
		t.Errorf("the leader was disturbed: %v", context.Cause(after))
	}
}

// TestPause: a node that hears nothing for longer than a leader may, and shorter than a
// node may, leads no more and is still there.
func TestPause(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	cfg := one(t)
	cfg.LeadTTL = time.Second
	all, wire := cabled(t, cfg)
	term, err := all[2].Lead(t.Context(), "scheduler")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	wire.plug(false)
	if _, err := all[1].Lead(t.Context(), "scheduler"); err != nil {
		t.Fatal(err)
	}
	wire.plug(true)
	t.Logf("a pause of %v", time.Since(from).Round(time.Millisecond))
	await(t, term, "the term")
	done := make(chan error, len(all))
	for _, c := range all {
		go func() { done <- c.Barrier(t.Context(), "after", 3) }()
	}
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if v, _ := all[2].member.now(); v.Epoch != 1 {
		t.Errorf("epoch %d", v.Epoch)
	}
}

// nextPort is below the ports that systems hand out by themselves.
var nextPort atomic.Int64

// free are addresses that nothing listens at, nor will by chance.
func free(t *testing.T, n int) (all []string) {
	t.Helper()
	for len(all) < n {
		port := 12000 + (int64(os.Getpid())*37+nextPort.Add(1))%16000
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		all = append(all, l.Addr().String())
		l.Close()
	}
	return all
}

// kill ends a node and its server as kill -9 does: nobody is told.
func (c *Control) kill() {
	c.abandon()
	c.server.etcd.Server.HardStop()
	c.server.close()
	c.server = nil
}

// TestServerRestart: the node with the only server comes back with its data, and the
// others, who waited less than their leases, go on.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	cfg := one(t)
	cfg.Dir, cfg.Settle = t.TempDir(), 100*time.Millisecond
	cfg.Servers[0].Client = free(t, 1)[0]
	all := job(t, cfg, 3, 3, 3)
	if err := all[0].Put(t.Context(), "kept", []byte("yes")); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	all[0].kill()
	again := start(t, cfg)
	t.Logf("the server is back after %v", time.Since(from).Round(time.Millisecond))
	if got, err := again.Get(t.Context(), "kept"); err != nil || string(got) != "yes" {
		t.Errorf("what was kept: %q, %v", got, err)
	}
	v, err := again.Join(t.Context(), node(0), 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the node is back after %v", time.Since(from).Round(time.Millisecond))
	want(t, next(t, all[1]), 2, 1, 1, 2)
	want(t, next(t, all[1]), 3, 1, 0, 1, 2)
	want(t, v, 3, 0, 0, 1, 2)
}

// three are nodes 0 to 2 with a server each.
func three(t *testing.T, cfg Config, secure func(rank int) TLS) []*Control {
	t.Helper()
	at := free(t, 6)
	cfg.Servers = nil
	for i := range 3 {
		cfg.Servers = append(cfg.Servers, Server{Client: at[i], Peer: at[3+i]})
	}
	all := make([]*Control, 3)
	errs := make(chan error, 3)
	from := time.Now()
	for i := range all {
		cfg := cfg
		cfg.Rank = i
		if secure != nil {
			cfg.TLS = secure(i)
		}
		go func() {
			var err error
			all[i], err = Start(t.Context(), cfg)
			errs <- err
		}()
	}
	for range all {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("three servers: %v", time.Since(from).Round(time.Millisecond))
	for _, c := range all {
		t.Cleanup(func() { c.Close() })
	}
	joinAll(t, all, 3, 3)
	return all
}

// TestLeaderLost: of three servers, the one that leads etcd is lost with its node, and the
// others go on; when the next is lost, the last is a minority and comes to rest.
func TestLeaderLost(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	all := three(t, elects(one(t)), nil)
	lead := 0
	for i, c := range all {
		if c.ServerLeads() {
			lead = i
		}
	}
	from := time.Now()
	all[lead].kill()
	a, b := all[(lead+1)%3], all[(lead+2)%3]
	if err := a.Put(t.Context(), "x", []byte("y")); err != nil {
		t.Fatal(err)
	}
	t.Logf("written again after %v", time.Since(from).Round(time.Millisecond))
	v := next(t, a)
	t.Logf("view without it after %v", time.Since(from).Round(time.Millisecond))
	if v.Epoch != 2 || len(v.Nodes) != 2 || v.Self != distrib.NodeID(a.cfg.Rank) {
		t.Errorf("view %+v", v)
	}
	next(t, b)
	here := alive(t, b)
	from = time.Now()
	a.kill()
	t.Logf("a minority rests after %v, lease of %v",
		await(t, here, "the minority").Sub(from).Round(time.Millisecond), b.cfg.TTL)
	if err := b.Barrier(t.Context(), "x", 1); !errors.Is(err, errLease) {
		t.Errorf("a barrier of the minority: %v", err)
	}
}

// TestThreeLeave: three servers end together, without one that waits for the others.
func TestThreeLeave(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	all := three(t, elects(one(t)), nil)
	done := make(chan error, 3)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for _, c := range all {
		go func() { done <- errors.Join(c.Leave(ctx), c.Close()) }()
	}
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestWrongJob: a node of another job is told which one it has found.
func TestWrongJob(t *testing.T) {
	t.Parallel()
	a := start(t, one(t))
	cfg := joinable(a, 1)
	cfg.Job = "other"
	_, err := Start(t.Context(), cfg)
	var wrong *JobError
	if !errors.As(err, &wrong) || wrong.Have != "test" || wrong.Ask != "other" {
		t.Errorf("another job: %v", err)
	}
	cfg.Endpoints, cfg.Servers = a.ends, nil // as an external cluster, it serves many
	b := start(t, cfg)
	if _, err := b.Join(t.Context(), node(0), 1, 1); err != nil {
		t.Error(err)
	}
}

// TestUnreachable says what is wrong with the way to the server.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	cfg := one(t)
	cfg.Rank, cfg.Wait = 1, 300*time.Millisecond
	cfg.Servers[0].Client = free(t, 1)[0]
	_, err := Start(t.Context(), cfg)
	var c *ConnectError
	if !errors.As(err, &c) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	cfg.Rank, cfg.Wait = 0, soon
	start(t, cfg)
	if _, err := Start(t.Context(), cfg); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("an address in use: %v", err)
	}
	cfg.Dir = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(cfg.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Servers = []Server{{Client: "127.0.0.1:0"}}
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "rank 0") {
		t.Errorf("a file for a directory: %v", err)
	}
}
