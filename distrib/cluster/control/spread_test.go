package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/longtest"
)

// spreading is a configuration of an etcd that comes to be in three nodes.
func spreading(t *testing.T) Config {
	t.Helper()
	cfg := elects(one(t))
	cfg.Spread, cfg.Host = 3, "127.0.0.1"
	cfg.Log = zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	return cfg
}

// spreadJob starts nodes 0 to n-1 of a job whose etcd spreads, and joins them.
func spreadJob(t *testing.T, cfg Config, secure func() TLS, n, min, max int) []*Control {
	t.Helper()
	if secure != nil {
		cfg.TLS = secure()
	}
	all := []*Control{start(t, cfg)}
	for i := 1; i < n; i++ {
		all = append(all, start(t, later(all[0], i, secure)))
	}
	joinAll(t, all, min, max)
	return all
}

// later is the configuration of a node of such a job, which reaches it by the server of another.
func later(c *Control, rank int, secure func() TLS) Config {
	cfg := c.cfg
	_, at, _ := strings.Cut(c.Endpoints()[0], "://")
	cfg.Rank, cfg.Servers = rank, []Server{{Client: at}}
	if secure != nil {
		cfg.TLS = secure()
	}
	return cfg
}

// served waits until a job's etcd is in the nodes of some ranks, as all nodes know.
func served(t *testing.T, all []*Control, ranks ...int) {
	t.Helper()
	from := time.Now()
	var said string
	for time.Since(from) < soon {
		said = ""
		for _, c := range all {
			s, err := c.spread(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var have []int
			for _, r := range s.ready() {
				have = append(have, int(r.ID))
			}
			voting := 0
			for _, m := range s.members {
				if !m.IsLearner {
					voting++
				}
			}
			if !slices.Equal(have, ranks) || voting != len(ranks) || len(s.members) != len(ranks) ||
				len(c.Endpoints()) != len(ranks) {
				said += fmt.Sprintf("; rank %d: %+v, %v, %v", c.cfg.Rank, s.servers, s.members,
					c.Endpoints())
			}
		}
		if said == "" {
			t.Logf("etcd is in %v after %v", ranks, time.Since(from).Round(time.Millisecond))
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("etcd is not in %v%s", ranks, said)
}

// leaveAll has all nodes leave at once, and ends them.
func leaveAll(t *testing.T, all []*Control) {
	t.Helper()
	from := time.Now()
	done := make(chan error, len(all))
	for _, c := range all {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			done <- errors.Join(c.Leave(ctx), c.Close())
		}()
	}
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d leave in %v", len(all), time.Since(from).Round(time.Millisecond))
}

// TestSpread: etcd comes to be in the three lowest ranks; when the node of the first is lost,
// another takes its place; and all leave together.
func TestSpread(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	ca := newAuthority(t)
	for name, secure := range map[string]func() TLS{"plain": nil, "tls": func() TLS {
		return ca.node(t, time.Now().Add(time.Hour))
	}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := spreadJob(t, spreading(t), secure, 5, 2, 5)
			served(t, all, 0, 1, 2)
			all[0].kill()
			want(t, next(t, all[4]), 2, 4, 1, 2, 3, 4)
			served(t, all[1:], 1, 2, 3)
			all[1].kill()
			want(t, next(t, all[4]), 3, 4, 2, 3, 4)
			served(t, all[2:], 2, 3, 4)
			temp := all[2].own().temp
			leaveAll(t, all[2:])
			if _, err := os.Stat(temp.Path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its data are left: %v", err)
			}
		})
	}
}

// TestSpreadLeave: of nodes with a server each may leave while the others go on, also the last;
// who comes again has one again.
func TestSpreadLeave(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	all := spreadJob(t, spreading(t), nil, 3, 1, 3)
	served(t, all, 0, 1, 2)
	lead := slices.IndexFunc(all, (*Control).ServerLeads) // for whom it is hardest
	bye := func(c *Control) {
		t.Helper()
		from := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		if err := errors.Join(c.Leave(ctx), c.Close()); err != nil {
			t.Fatal(err)
		}
		t.Logf("left after %v", time.Since(from).Round(time.Millisecond))
	}
	bye(all[lead])
	rest := slices.Delete(slices.Clone(all), lead, lead+1)
	served(t, rest, rest[0].cfg.Rank) // two would be worse than one
	bye(rest[0])                      // with the only one
	served(t, rest[1:], rest[1].cfg.Rank)
	again := rest[1:]
	for rank := 3; rank < 5; rank++ {
		c := start(t, later(again[0], rank, nil))
		if _, err := c.Join(t.Context(), node(rank), 1, 3); err != nil {
			t.Fatal(err)
		}
		again = append(again, c)
	}
	served(t, again, again[0].cfg.Rank, 3, 4)
	for i, c := range again {
		if err := c.Put(t.Context(), "by", []byte{byte(i)}); err != nil {
			t.Error(err)
		}
	}
	leaveAll(t, again)
}

// TestSpreadHalf: a node that is lost on the way to a server costs no quorum, and its member goes
// with its lease.
func TestSpreadHalf(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	cfg := spreading(t)
	all := []*Control{start(t, cfg)}
	for i := 1; i < 4; i++ {
		cfg := later(all[0], i, nil)
		cfg.Settle = time.Hour // it does nothing about servers
		if i > 1 {
			cfg.Settle = 100 * time.Millisecond
		}
		all = append(all, start(t, cfg))
	}
	joinAll(t, all, 4, 4)
	m := all[1].member
	for {
		at, err := all[1].spread(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(at.ready()) == 0 {
			continue
		}
		if _, _, err := m.steward.enlist(t.Context(), at, Server{Client: "127.0.0.1:1",
			Peer: "127.0.0.1:2"}); err != nil {
			t.Fatal(err)
		}
		break
	}
	all[1].abandon()
	served(t, []*Control{all[0], all[2], all[3]}, 0, 2, 3)
}

// TestSpreadUnfit: a node that comes to have no server leaves it to another, and nothing behind.
func TestSpreadUnfit(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	cfg := spreading(t)
	all := []*Control{start(t, cfg)}
	for i := 1; i < 4; i++ {
		cfg := later(all[0], i, nil)
		if i == 1 {
			cfg.Host = "no host" // at which etcd takes no member
			cfg.Insecure = true
		}
		all = append(all, start(t, cfg))
	}
	joinAll(t, all, 4, 4)
	served(t, all, 0, 2, 3)
	leaveAll(t, all)
}

// TestSpreadDiffers: who wants etcd in other nodes is told, as who wants another number of nodes.
func TestSpreadDiffers(t *testing.T) {
	t.Parallel()
	a := start(t, spreading(t))
	if _, err := a.Join(t.Context(), node(0), 1, 2); err != nil {
		t.Fatal(err)
	}
	cfg := later(a, 1, nil)
	cfg.Spread = 0
	_, err := start(t, cfg).Join(t.Context(), node(1), 1, 2)
	if err == nil || !strings.Contains(err.Error(), "node 1 asks for etcd on 1 nodes, node 0 on ") {
		t.Errorf("%v", err)
	}
}

// TestSpreadDecide plays jobs at random, whose nodes do one after the other what they are to: in
// the end etcd is in as many nodes as it may be in, of an odd number, and no stray is left; and
// at no time has a node that is there lost the quorum by what another did.
func TestSpreadDecide(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := &spreadWorld{spread: spread{}, most: 1 + 2*r.IntN(3)}
		w.join(0)
		w.founded()
		for range r.IntN(12) {
			switch id := distrib.NodeID(r.IntN(8)); {
			case !slices.Contains(w.nodes, id):
				w.join(id)
			case w.spare(id):
				w.lose(id)
			}
			for range r.IntN(6) {
				w.turn(t, w.nodes[r.IntN(len(w.nodes))])
			}
		}
		for range 40 {
			for _, id := range slices.Clone(w.nodes) {
				w.turn(t, id)
			}
		}
		most := min(w.most, len(w.nodes))
		most -= 1 - most%2
		if have := len(w.ready()); have != most || len(w.members) != have || t.Failed() {
			t.Fatalf("seed %d: %d servers, want %d: %+v", seed, have, most, w.spread)
		}
	}
}

// spreadWorld is a job whose etcd spreads, without etcd.
type spreadWorld struct {
	spread
	most int
	next uint64
}

func (w *spreadWorld) join(id distrib.NodeID) { w.nodes = append(w.nodes, id) }

// founded has a server in node 0.
func (w *spreadWorld) founded() { w.begin(0).Ready = true; w.members[0].IsLearner = false }

func (w *spreadWorld) begin(id distrib.NodeID) *serverRecord {
	w.next++
	at := fmt.Sprint("h:", w.next)
	w.servers = append(w.servers, serverRecord{ID: id, Peer: at})
	w.members = append(w.members, &pb.Member{ID: w.next, PeerURLs: []string{"http://" + at},
		IsLearner: true})
	slices.SortFunc(w.servers, func(a, b serverRecord) int { return cmp.Compare(a.ID, b.ID) })
	return w.server(id)
}

// quorum reports whether most of the members that vote are there, without a node.
func (w *spreadWorld) quorum(without distrib.NodeID) bool {
	votes, here := 0, 0
	for _, m := range w.members {
		if m.IsLearner {
			continue
		}
		votes++
		for _, r := range w.servers {
			if r.ID != without && r.at(m) {
				here++
			}
		}
	}
	return 2*here > votes
}

// spare reports whether a job goes on without a node.
func (w *spreadWorld) spare(id distrib.NodeID) bool { return len(w.nodes) > 1 && w.quorum(id) }

// lose takes a node away, whose key ends with it.
func (w *spreadWorld) lose(id distrib.NodeID) {
	w.nodes = slices.DeleteFunc(w.nodes, func(n distrib.NodeID) bool { return n == id })
	w.servers = slices.DeleteFunc(w.servers, func(r serverRecord) bool { return r.ID == id })
}

// turn has a node do what it is to.
func (w *spreadWorld) turn(t *testing.T, self distrib.NodeID) {
	t.Helper()
	own := w.server(self)
	if own != nil && !own.Ready && !own.Unfit { // it was begun, and comes to be ready
		own.Ready = true
		w.member(own).IsLearner = false
		return
	}
	switch w.decide(self, w.most) {
	case clear:
		gone := w.stray()
		w.members = slices.DeleteFunc(w.members, func(m *pb.Member) bool { return m == gone })
	case add:
		w.begin(self)
	case leave:
		gone := w.member(own)
		w.members = slices.DeleteFunc(w.members, func(m *pb.Member) bool { return m == gone })
		w.servers = slices.DeleteFunc(w.servers, func(r serverRecord) bool { return r.ID == self })
	}
	if !w.quorum(-1) {
		t.Errorf("%+v has no quorum after %d's turn", w.spread, self)
	}
}

func (w *spreadWorld) member(r *serverRecord) *pb.Member {
	i := slices.IndexFunc(w.members, r.at)
	return w.members[i]
}
