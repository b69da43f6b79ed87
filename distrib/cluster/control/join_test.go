package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/longtest"
)

// soon bounds what a test waits for; it is never reached where all is well.
const soon = 30 * time.Second

// quick are times for tests of losses: etcd grants leases of a second and more.
func quick(cfg Config) Config {
	cfg.TTL, cfg.Settle = 2*time.Second, 100*time.Millisecond
	return cfg
}

// elects is quick where a server is lost that may lead etcd: leases have to outlive the election of
// the next, on a machine that has much else to do.
func elects(cfg Config) Config {
	cfg = quick(cfg)
	cfg.TTL = 5 * time.Second
	return cfg
}

func node(rank int) distrib.Node {
	return distrib.Node{ID: distrib.NodeID(rank), Addr: fmt.Sprintf("127.0.0.1:%d", 9000+rank)}
}

// job starts nodes 0 to n-1 of one job, the server in the first, and joins them.
func job(t *testing.T, cfg Config, n, min, max int) []*Control {
	t.Helper()
	all := []*Control{start(t, cfg)}
	for i := 1; i < n; i++ {
		all = append(all, start(t, joinable(all[0], i)))
	}
	joinAll(t, all, min, max)
	return all
}

func joinAll(t *testing.T, all []*Control, min, max int) []distrib.View {
	t.Helper()
	views := make([]distrib.View, len(all))
	errs := make(chan error, len(all))
	for i, c := range all {
		go func() {
			var err error
			views[i], err = c.Join(t.Context(), node(c.cfg.Rank), min, max)
			errs <- err
		}()
	}
	for range all {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	return views
}

// TestAtWork: who asks before it joins hears whether others are in a view.
func TestAtWork(t *testing.T) {
	first := start(t, quick(one(t)))
	late := start(t, joinable(first, 1))
	ask := func(want bool, when string) {
		t.Helper()
		if have, err := late.AtWork(t.Context()); err != nil || have != want {
			t.Errorf("%s: %v, %v", when, have, err)
		}
	}
	ask(false, "before there is a view")
	joinAll(t, []*Control{first}, 1, 2)
	ask(true, "with a node at work")
	if err := first.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(false, "after it has left")
}

// next is the next view of a node.
func next(t *testing.T, c *Control) distrib.View {
	t.Helper()
	select {
	case v, ok := <-c.Views():
		if !ok {
			t.Fatalf("node %d: no views any more", c.cfg.Rank)
		}
		return v
	case <-time.After(soon):
		t.Fatalf("node %d: no view", c.cfg.Rank)
	}
	panic("unreachable")
}

func ids(v distrib.View) (all []int) {
	for _, n := range v.Nodes {
		all = append(all, int(n.ID))
	}
	return all
}

func want(t *testing.T, v distrib.View, epoch int64, self distrib.NodeID, nodes ...int) {
	t.Helper()
	if v.Epoch != epoch || v.Self != self || !slices.Equal(ids(v), nodes) {
		t.Fatalf("view %+v; want epoch %d, self %d, nodes %v", v, epoch, self, nodes)
	}
}

// TestJoin: all nodes get one view; a later one joins in the next; a leaving one is out
// in the one after.
func TestJoin(t *testing.T) {
	t.Parallel()
	all := []*Control{start(t, quick(one(t)))}
	for i := 1; i < 4; i++ {
		all = append(all, start(t, joinable(all[0], i)))
	}
	for i, v := range joinAll(t, all[:3], 3, 4) {
		want(t, v, 1, distrib.NodeID(i), 0, 1, 2)
	}
	v, err := all[3].Join(t.Context(), node(3), 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	want(t, v, 2, 3, 0, 1, 2, 3)
	want(t, next(t, all[1]), 2, 1, 0, 1, 2, 3)
	from := time.Now()
	if err := all[2].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("leave: %v", time.Since(from).Round(time.Millisecond))
	want(t, next(t, all[1]), 3, 1, 0, 1, 3)
	want(t, next(t, all[2]), 2, 2, 0, 1, 2, 3)
	want(t, next(t, all[2]), 3, -1, 0, 1, 3)
	if _, ok := <-all[2].Views(); ok {
		t.Error("a node that has left has a view after its last")
	}
	if err := all[2].Barrier(t.Context(), "x", 1); !errors.Is(err, ErrLeft) {
		t.Errorf("a barrier after leaving: %v", err)
	}
	if n := all[1].Counts(); n.Views != 3 || n.Evictions != 0 || n.Leases != 0 {
		t.Errorf("one came and one left: %+v", n)
	}
	m, err := all[1].ShardMap(t.Context(), 3)
	if err != nil || !slices.Equal(m, Shards(v.Nodes[:2:2])) && len(m) != Ranges {
		t.Errorf("shards: %v, %v", m, err)
	}
}

// TestRenew: who asks for a view after the present one gets it, of the same nodes, once.
func TestRenew(t *testing.T) {
	t.Parallel()
	all := job(t, quick(one(t)), 3, 2, 4)
	if err := all[1].Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, c := range all {
		want(t, next(t, c), 2, distrib.NodeID(i), 0, 1, 2)
	}
	if err := all[2].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, next(t, all[0]), 3, 0, 0, 1)
	if err := all[2].Renew(t.Context()); !errors.Is(err, ErrLeft) {
		t.Errorf("who has left asks for a view: %v", err)
	}
}

// TestExpel: whom another one does not want is out, and learns why.
func TestExpel(t *testing.T) {
	t.Parallel()
	all := job(t, quick(one(t)), 3, 2, 3)
	alive, err := all[2].Alive()
	if err != nil {
		t.Fatal(err)
	}
	if err := all[1].Expel(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	want(t, next(t, all[0]), 2, 0, 0, 1)
	want(t, next(t, all[2]), 2, -1, 0, 1)
	for i, c := range all {
		if n := c.Counts(); n.Views != 2 || n.Evictions != 1 || n.Leases != 0 {
			t.Errorf("node %d, where one is expelled: %+v", i, n)
		}
	}
	if <-alive.Done(); !errors.Is(context.Cause(alive), distrib.ErrExpelled) {
		t.Error(context.Cause(alive))
	}
}

// TestLeaveAll: the node with the server leaves last, whoever asks first.
func TestLeaveAll(t *testing.T) {
	t.Parallel()
	all := job(t, quick(one(t)), 3, 3, 3)
	left := make(chan error, len(all))
	for _, c := range all {
		go func() { left <- errors.Join(c.Leave(t.Context()), c.Close()) }()
	}
	for range all {
		if err := <-left; err != nil {
			t.Error(err)
		}
	}
}

// TestRejoin: a process that takes a lost one's place has its rank again.
func TestRejoin(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	all := job(t, quick(one(t)), 3, 3, 3)
	all[2].abandon()
	again := start(t, joinable(all[0], 2))
	v, err := again.Join(t.Context(), node(2), 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	want(t, next(t, all[0]), 2, 0, 0, 1)
	want(t, next(t, all[0]), 3, 0, 0, 1, 2)
	want(t, v, 3, 2, 0, 1, 2)
}

// abandon is kill -9: nothing is renewed and nothing revoked.
func (c *Control) abandon() {
	m := c.member
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.roles != nil {
		m.roles.end(errKilled)
	}
	m.lease.end(errKilled)
	c.client.Close()
}

var errKilled = errors.New("killed")

// TestJoinRefused names who is at fault.
func TestJoinRefused(t *testing.T) {
	t.Parallel()
	cfg := quick(one(t))
	cfg.Stall = 500 * time.Millisecond
	a := start(t, cfg)
	ctx := t.Context()
	for _, c := range []struct {
		n        distrib.Node
		min, max int
		want     string
	}{
		{distrib.Node{ID: -1, Addr: "x:1"}, 1, 1, "ranks begin with 0"},
		{distrib.Node{ID: 1}, 1, 1, "no address"},
		{node(0), 0, 1, "at least one"},
		{node(0), 2, 1, "no more than"},
	} {
		if _, err := a.Join(ctx, c.n, c.min, c.max); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %d to %d: %v", c.n, c.min, c.max, err)
		}
	}
	if err := a.Barrier(ctx, "x", 1); !errors.Is(err, ErrNotJoined) {
		t.Errorf("a barrier before joining: %v", err)
	}
	var stall *distrib.StallError
	_, err := a.Join(ctx, node(0), 3, 3)
	if !errors.As(err, &stall) || !slices.Equal(stall.Nodes, []distrib.NodeID{1, 2}) {
		t.Errorf("two are missing: %v", err)
	}
	go a.Join(ctx, node(0), 2, 2)
	b := start(t, joinable(a, 1))
	for { // until a's key is there
		s, err := b.state(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.here) > 0 {
			break
		}
		if err := b.changed(ctx, b.key("node", ""), s.revision, soon); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Join(ctx, node(1), 4, 4); err == nil ||
		!strings.Contains(err.Error(), "give all the same") {
		t.Errorf("another number of nodes: %v", err)
	}
}

// TestSameRank: two processes of one rank do not both come in.
func TestSameRank(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	all := job(t, quick(one(t)), 1, 1, 2)
	b := start(t, joinable(all[0], 1))
	_, err := b.Join(t.Context(), node(0), 1, 2)
	if err == nil || !strings.Contains(err.Error(), "same rank") {
		t.Errorf("rank 0 twice: %v", err)
	}
}

// TestBarrier lets nobody through early, and everybody through together, again and again.
func TestBarrier(t *testing.T) {
	t.Parallel()
	all := job(t, quick(one(t)), 3, 3, 3)
	const rounds = 20
	at := make([]atomic.Int64, len(all))
	errs := make(chan error, len(all))
	for i, c := range all {
		go func() {
			for r := range int64(rounds) {
				at[i].Store(r)
				if err := c.Barrier(t.Context(), "a/b", 3); err != nil {
					errs <- err
					return
				}
				if err := c.Barrier(t.Context(), "a", 3); err != nil {
					errs <- err
					return
				}
				for j := range at { // none is behind, and none can pass the third
					if x := at[j].Load(); x != r {
						errs <- fmt.Errorf("node %d is in round %d, node %d in %d", i, r, j, x)
						return
					}
				}
				if err := c.Barrier(t.Context(), "c", 3); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range all {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

// TestBarrierCulprits names who has not come: too late, lost, or when we may not wait.
func TestBarrierCulprits(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	cfg := quick(one(t))
	cfg.Stall = time.Second
	all := job(t, cfg, 3, 3, 3)
	var stall *distrib.StallError
	err := all[0].Barrier(t.Context(), "late", 3)
	if !errors.As(err, &stall) || !slices.Equal(stall.Nodes, []distrib.NodeID{1, 2}) {
		t.Errorf("too late: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = all[0].Barrier(ctx, "ctx", 3)
	if !errors.As(err, &stall) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("not for long: %v", err)
	}
	all[0].cfg.Stall = soon
	all[2].abandon()
	var lost *distrib.LostError
	err = all[0].Barrier(t.Context(), "lost", 3)
	if !errors.As(err, &lost) || !slices.Equal(lost.Nodes, []distrib.NodeID{2}) || lost.Epoch != 2 {
		t.Errorf("lost: %v", err)
	}
}

// TestStartGivenUp: who waits for the first view and loses etcd, since its node has given up,
// names whom both have waited for, be it as its lease ends or after the longest wait.
func TestStartGivenUp(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	cfg := quick(one(t))
	a := start(t, cfg)
	own := joinable(a, 1)
	own.Stall = 6 * time.Second // so that it looks every second whom it waits for
	b := start(t, own)
	time.AfterFunc(2*time.Second, func() { a.Close() })
	_, err := b.Join(t.Context(), node(1), 3, 3)
	stall, _ := errors.AsType[*distrib.StallError](err)
	if stall == nil || !slices.Equal(stall.Nodes, []distrib.NodeID{0, 2}) {
		t.Error(err)
	}
}
