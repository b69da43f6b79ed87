package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gomem/gomem/distrib"
)

// Times of a server that is added.
const (
	joinWithin  = 15 * time.Second // to be a member that votes
	lookEvery   = 5 * time.Second  // at the servers, where nothing is heard of them
	removeAfter = 2 * time.Second  // who does not answer a removal is given up
)

// steward sees to it that as many nodes have a server as are to, each node to its own.
type steward struct {
	m     *member
	stop  context.CancelCauseFunc
	ended chan struct{}
	since time.Time // of when what is to be done was first seen; zero: nothing is
	tries int       // to add a server, that failed
}

// mostTries is how often a node tries to have a server: etcd refuses one while it is busy with
// other members, and a refusal does not say whether that will pass.
const mostTries = 3

// spreads begins to look after the servers of a job whose etcd is in several nodes.
func (m *member) spreads() {
	if m.c.cfg.Spread < 2 {
		return
	}
	ctx, stop := context.WithCancelCause(m.lease.ctx)
	s := &steward{m: m, stop: stop, ended: make(chan struct{})}
	m.mu.Lock()
	m.steward = s
	m.mu.Unlock()
	m.tasks.Go(func() {
		defer close(s.ended)
		s.run(ctx)
	})
}

// run looks whenever there is another view, or another server.
func (s *steward) run(ctx context.Context) {
	c := s.m.c
	for founded := c.own() == nil; ctx.Err() == nil; {
		if !founded {
			founded = s.found(ctx) == nil
		}
		view, news := s.m.now()
		at, err := c.spread(ctx)
		if err != nil {
			sleep(ctx, tryEvery)
			continue
		}
		for _, n := range view.Nodes {
			at.nodes = append(at.nodes, n.ID)
		}
		c.reach(at)
		again := s.act(ctx, at)
		s.wait(ctx, at, news, again)
	}
}

// wait waits for another server or another view, or for a while.
func (s *steward) wait(ctx context.Context, at *spread, news <-chan struct{},
	atMost time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-news:
		case <-ctx.Done():
		}
	}()
	_ = s.m.c.changed(ctx, s.m.c.key("server", ""), at.revision, atMost) // ends with ctx
}

// found makes the first server known, which the job has begun with.
func (s *steward) found(ctx context.Context) error {
	own := s.m.c.own()
	err := s.put(ctx, serverRecord{Client: own.at.Client, Peer: own.at.Peer, Ready: true},
		absent(s.key()))
	if err != nil {
		sleep(ctx, tryEvery)
	}
	return err
}

// act does what this node is to do, if that has been so for a while, and says when to look
// again at the latest. A stray is removed at once.
func (s *steward) act(ctx context.Context, at *spread) time.Duration {
	c, self := s.m.c, s.m.rec.ID
	if srv := c.own(); srv != nil && srv.err() != nil {
		s.withdraw(ctx, at, true)
		return tryEvery
	} else if srv != nil && at.expelled(self) { // it was out for a while, and joined again
		c.embed(nil).close()
		_ = s.put(ctx, serverRecord{Unfit: true}, nil)
		return tryEvery
	}
	what := at.decide(self, c.cfg.Spread)
	switch settle := c.cfg.Settle; {
	case what == stay:
		s.since = time.Time{}
		return lookEvery
	case what == clear:
		s.remove(ctx, at.stray().ID)
		return tryEvery
	case s.since.IsZero():
		s.since = time.Now()
		return settle
	case time.Since(s.since) < settle:
		return settle - time.Since(s.since)
	}
	s.since = time.Time{}
	if what == leave {
		s.withdraw(ctx, at, false)
	} else if err := s.add(ctx, at); err != nil && ctx.Err() == nil {
		c.log.Info("a server could not be added", zap.Error(err))
	}
	return tryEvery
}

func (s *steward) key() string { return s.m.c.serverKey(s.m.rec.ID) }

var errServers = errors.New("another node has a server meanwhile")

// put writes this node's key under a condition; it ends with the node's lease.
func (s *steward) put(ctx context.Context, rec serverRecord, when []clientv3.Cmp) error {
	val, err := json.Marshal(&rec)
	if err != nil {
		return err
	}
	r, err := s.m.c.commit(ctx, when,
		[]clientv3.Op{clientv3.OpPut(s.key(), string(val), clientv3.WithLease(s.m.lease.id))},
		[]clientv3.Op{clientv3.OpGet(s.key())})
	if err != nil || r.Succeeded {
		return err
	}
	if kvs := r.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 &&
		string(kvs[0].Value) == string(val) { // what was lost was the answer
		return nil
	}
	return errServers
}

// add starts a server here, and has it become a member. Whatever goes wrong, nothing is left of
// it but a key that says so, so that another node may try.
func (s *steward) add(ctx context.Context, at *spread) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, joinWithin, errWaited)
	defer cancel()
	c := s.m.c
	here := net.JoinHostPort(c.cfg.Host, "0")
	var id uint64
	own := Server{Client: here, Peer: here}
	srv, err := runServer(ctx, &c.cfg, serverPlace{at: own, spread: true,
		joins: true,
		cluster: func(own Server) (string, error) {
			var cluster string
			id, cluster, err = s.enlist(ctx, at, own)
			return cluster, err
		}})
	if err == nil {
		err = s.promote(ctx, srv, id)
	}
	if err == nil {
		c.embed(srv)
		rec := serverRecord{Client: srv.at.Client, Peer: srv.at.Peer, Ready: true, ID: s.m.rec.ID}
		if err = s.put(ctx, rec, nil); err == nil {
			// The one that this node has asked so far may be waiting for just this to leave.
			c.reach(&spread{servers: append(at.ready(), rec)})
		}
	}
	if err == nil || errors.Is(err, errServers) {
		return err
	}
	s.undo(srv, id)
	return err
}

// undo ends a server that came to nothing; for good if that has been so too often.
func (s *steward) undo(srv *server, id uint64) {
	ctx, done := context.WithTimeout(s.m.lease.ctx, removeAfter)
	defer done()
	s.remove(ctx, id)
	s.m.c.embed(nil)
	srv.close()
	if s.tries++; s.tries == mostTries {
		_ = s.put(ctx, serverRecord{Unfit: true}, nil) // or the lease's end is the key's
	} else {
		_, _ = s.m.c.commit(ctx, nil, []clientv3.Op{clientv3.OpDelete(s.key())}, nil)
	}
}

// enlist makes a learner of a server that is about to start, and is etcd's list of members.
func (s *steward) enlist(ctx context.Context, at *spread, own Server) (uint64, string, error) {
	c := s.m.c
	err := s.put(ctx, serverRecord{Client: own.Client, Peer: own.Peer}, []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(c.key("server", "")), "<", at.revision+1).
			WithPrefix()})
	if err != nil {
		return 0, "", err
	}
	members, err := s.learn(ctx, c.cfg.scheme()+"://"+own.Peer)
	if err != nil {
		return 0, "", err
	}
	var id uint64
	var all []string
	for _, m := range members {
		name := m.Name
		if (&serverRecord{Peer: own.Peer}).at(m) {
			id, name = m.ID, serverName(c.cfg.Rank)
		}
		for _, url := range m.PeerURLs {
			all = append(all, name+"="+url)
		}
	}
	return id, strings.Join(all, ","), nil
}

// learn adds a learner, and returns all members. One that is there already was added before, by a
// request whose answer was lost with the server that was asked.
func (s *steward) learn(ctx context.Context, peer string) ([]*pb.Member, error) {
	c := s.m.c
	return retry(ctx, c, func(ctx context.Context) ([]*pb.Member, error) {
		r, err := c.client.MemberAddAsLearner(ctx, []string{peer})
		if err == nil {
			return r.Members, nil
		}
		if !errors.Is(err, rpctypes.ErrPeerURLExist) {
			return nil, err
		}
		l, err := c.client.MemberList(ctx)
		if err != nil {
			return nil, err
		}
		return l.Members, nil
	})
}

// promote has a learner vote, once it knows what the others do.
func (s *steward) promote(ctx context.Context, srv *server, id uint64) error {
	if err := srv.ready(ctx); err != nil {
		return err
	}
	for {
		try, done := context.WithTimeout(ctx, tryWithin) // the leader that is asked may be stopped
		_, err := s.m.c.client.MemberPromote(try, id)
		done()
		if err == nil || errors.Is(err, rpctypes.ErrMemberNotLearner) { // it was, and nobody heard
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		if !errors.Is(err, rpctypes.ErrMemberLearnerNotReady) && !transient(err) {
			return err
		}
		sleep(ctx, tryEvery/2)
	}
}

// remove removes a member, which may be gone already.
func (s *steward) remove(ctx context.Context, id uint64) {
	if id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeAfter)
	defer cancel()
	c := s.m.c
	_, err := retry(ctx, c, func(ctx context.Context) (*clientv3.MemberRemoveResponse, error) {
		return c.client.MemberRemove(ctx, id)
	})
	if err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		c.log.Info("a member is left to be removed", zap.Uint64("id", id), zap.Error(err))
	}
}

// withdraw ends this node's server if there is another one; unfit: none is started here again.
// It reports whether there is none here any more.
func (s *steward) withdraw(ctx context.Context, at *spread, unfit bool) bool {
	c, self := s.m.c, s.m.rec.ID
	own := at.server(self)
	if own == nil || c.own() == nil {
		return c.own() == nil
	}
	ready := at.ready()
	if len(ready) == 0 || len(ready) == 1 && own.Ready {
		return false
	}
	var same []clientv3.Cmp // so that one goes at a time
	for _, r := range ready {
		same = append(same, clientv3.Compare(clientv3.ModRevision(c.serverKey(r.ID)), "=", r.Mod))
	}
	gone := clientv3.OpDelete(s.key())
	if unfit {
		val, _ := json.Marshal(&serverRecord{Unfit: true})
		gone = clientv3.OpPut(s.key(), string(val), clientv3.WithLease(s.m.lease.id))
	}
	r, err := c.commit(ctx, same, []clientv3.Op{gone}, []clientv3.Op{clientv3.OpGet(s.key())})
	if err != nil {
		return false
	}
	if !r.Succeeded { // or what was lost was the answer
		kvs := r.Responses[0].GetResponseRange().Kvs
		if len(kvs) > 0 && kvs[0].ModRevision == own.Mod {
			return false
		}
	}
	s.retire(ctx, at, own)
	return true
}

// retire ends this node's server, whose key is gone: it gives the lead to another first, or the
// others would miss it for an election.
func (s *steward) retire(ctx context.Context, at *spread, own *serverRecord) {
	c := s.m.c
	srv := c.embed(nil)
	rest := &spread{}
	for _, r := range at.servers {
		if r.ID != own.ID {
			rest.servers = append(rest.servers, r)
		}
	}
	c.reach(rest)
	srv.resign(ctx)
	for _, m := range at.members {
		if own.at(m) {
			s.remove(ctx, m.ID)
		}
	}
	srv.close()
}

// handOver ends this node's server before the node leaves. Where it is the last one, another
// node is to have one, or all others leave first. One goes after the other: two that were voting
// no more and not removed yet would be most of three.
func (m *member) handOver(ctx context.Context) error {
	m.mu.Lock()
	s := m.steward
	m.mu.Unlock()
	if s == nil {
		return nil
	}
	s.stop(ErrLeft)
	select {
	case <-s.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for m.c.own() != nil {
		at, err := m.c.spread(ctx)
		if err != nil {
			return err
		}
		if stray := at.stray(); stray != nil {
			s.remove(ctx, stray.ID)
			sleep(ctx, tryEvery/10)
			continue
		}
		if s.withdraw(ctx, at, false) {
			break
		}
		if len(at.ready()) > 1 { // something has changed meanwhile
			sleep(ctx, tryEvery/10)
			continue
		}
		others, err := m.c.state(ctx)
		if err != nil || len(others.here) < 2 {
			return err
		}
		if own := at.server(m.rec.ID); own != nil && !own.Leaves {
			own.Leaves = true
			if err := s.put(ctx, *own, nil); err != nil {
				return err
			}
		}
		if err := m.c.changed(ctx, m.c.key(""), others.revision, time.Minute); err != nil {
			return err
		}
	}
	return nil
}

// own is this node's server, or nil.
func (c *Control) own() *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

// embed replaces this node's server, and returns the one before.
func (c *Control) embed(s *server) (before *server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.server = c.server, s
	return before
}

// reach has the client ask the servers that vote, from now on.
func (c *Control) reach(at *spread) {
	var ends []string
	others := 0
	for _, r := range at.ready() {
		ends = append(ends, c.cfg.scheme()+"://"+r.Client)
		if r.ID != distrib.NodeID(c.cfg.Rank) {
			others++
		}
	}
	if len(ends) == 0 {
		return
	}
	c.mu.Lock()
	c.ends, c.others = ends, others
	c.mu.Unlock()
	c.sentry.reach(ends)
}
