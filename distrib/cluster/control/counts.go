package control

import (
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/gomem/gomem/distrib"
)

// Counts are how often something befell a node since it was started. Each time is logged too.
type Counts struct {
	Views     int64 // views that the node was in, or was just not in any more
	Leases    int64 // leases of the node that ended because they were not renewed in time
	Elections int64 // roles that the node was elected to lead in
	Stalls    int64 // reports of others that the node waits for
	Evictions int64 // nodes that were taken out of its views without having asked
}

// counts counts.
type counts struct{ views, leases, elections, stalls, evictions atomic.Int64 }

// Counts are this node's so far.
func (c *Control) Counts() Counts {
	return Counts{Views: c.counts.views.Load(), Leases: c.counts.leases.Load(),
		Elections: c.counts.elections.Load(), Stalls: c.counts.stalls.Load(),
		Evictions: c.counts.evictions.Load()}
}

// noteView is for a view after another one.
func (c *Control) noteView(old, v *viewRecord) {
	c.counts.views.Add(1)
	c.counts.evictions.Add(int64(len(v.Evicted)))
	c.log.Info("view", zap.Int64("epoch", v.Epoch), zap.Any("nodes", v.ids()),
		zap.Any("came", v.without(old)), zap.Any("gone", old.without(v)),
		zap.Any("evicted", v.Evicted))
}

// noteLost is for a lease that was not renewed in time.
func (c *Control) noteLost(what string) {
	c.counts.leases.Add(1)
	c.log.Info("a lease is lost", zap.String("of", what))
}

// noteElected is for a term that begins.
func (c *Control) noteElected(role string) {
	c.counts.elections.Add(1)
	c.log.Info("elected", zap.String("role", role))
}

// noteStall is for nodes that keep this one waiting.
func (c *Control) noteStall(what string, late []distrib.NodeID) {
	c.counts.stalls.Add(1)
	c.log.Info("waiting", zap.String("for", what), zap.Any("nodes", late))
}
