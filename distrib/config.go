package distrib

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Config is what an [Engine] is made of. View, Transport and Plan must be given; the zero
// value of the others is the plain choice.
type Config struct {
	View      View
	Transport Transport
	Plan      Plan  // of parameters that bring none
	Workers   int   // of this node; 0: one, or none if the view says it is no worker
	Start     Clock // that this node's workers begin in
	Joins     bool  // the view is new to its other nodes too, see [Engine.Reconfigure]
	Outbox    int64 // bytes of updates that may be pending or not acknowledged; 0: see [Bound]
	Window    int   // messages on their way to a node, of a class; 0: 8
	Message   int   // bytes of a message's body, unless one row or its factors are larger; 0: 1 MiB
	OnDemand  bool  // rows are asked for whenever they are too old, not once and for all
	Ordered   bool  // owners fold in by clock, then node: the same bits in every run
	// Keeps are owners of whose rows this node keeps a replica, see [Pool].Keep and [Engine.Kept].
	Keeps   []NodeID
	Audited bool  // sums for [Engine.Audit] are kept: a pass over every update
	Group   Group // what a [Periodic] works with

	// Saves says at which clocks owners keep their rows, and Save where: see [Shard].
	// Restored is the shards that the values of the parameters come from, for what rules
	// keep beside them: see [Restore]. Saving goes on beside the work; Close waits for it.
	Saves    func(Clock) bool
	Save     func(*Shard) error
	Restored []*Shard

	// Journal is told what becomes of this node's replicas; nil: nobody is.
	Journal Journal

	// Log takes what a person should know, a line at a time. It may not call the engine.
	Log func(string)
	// Stalled takes a line of every wait that goes on, instead of Log; nil: Log does.
	Stalled        func(string)
	Stall, Timeout time.Duration // when a wait is reported, and when it ends; 0: 10 s, 60 s
}

// Roles of nodes. A node without any has both.
const (
	RoleWorker = "worker"
	RoleServer = "server"
)

// In reports whether a node has a role.
func (n Node) In(role string) bool { return len(n.Roles) == 0 || slices.Contains(n.Roles, role) }

// members are the nodes of a view in a role, ascending.
func (v View) members(role string) []NodeID {
	var ids []NodeID
	for _, n := range v.Nodes {
		if n.In(role) {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func (v View) has(id NodeID) bool {
	return slices.ContainsFunc(v.Nodes, func(n Node) bool { return n.ID == id })
}

// checked is a configuration with its defaults filled in.
func (c Config) checked() (Config, error) {
	if c.Transport == nil {
		return c, errors.New("distrib: no transport")
	}
	if !c.View.has(c.View.Self) {
		return c, fmt.Errorf("distrib: node %d is not in its own view of epoch %d",
			c.View.Self, c.View.Epoch)
	}
	if err := c.View.distinct(); err != nil {
		return c, err
	}
	if c.Workers < 0 || c.Outbox < 0 || c.Window < 0 || c.Message < 0 || c.Start < 0 {
		return c, errors.New("distrib: negative workers, outbox, window, message or start")
	}
	worker := slices.Contains(c.View.members(RoleWorker), c.View.Self)
	if c.Workers > 0 && !worker {
		return c, fmt.Errorf("distrib: node %d is no worker in its view", c.View.Self)
	}
	if (c.Saves == nil) != (c.Save == nil) {
		return c, errors.New("distrib: Saves without Save, or Save without Saves")
	}
	if worker {
		c.Workers = max(c.Workers, 1)
	}
	return c.filled(), nil
}

func (v View) distinct() error {
	if v.Epoch < 0 || v.Epoch > 1<<32-1 {
		return fmt.Errorf("distrib: epoch %d", v.Epoch)
	}
	seen := map[NodeID]bool{}
	for _, n := range v.Nodes {
		if seen[n.ID] || n.ID < 0 {
			return fmt.Errorf("distrib: node %d twice in a view, or negative", n.ID)
		}
		seen[n.ID] = true
	}
	return nil
}

func (c Config) filled() Config {
	if c.Window == 0 {
		c.Window = 8
	}
	if c.Message == 0 {
		c.Message = 1 << 20
	}
	if c.Stall == 0 {
		c.Stall = 10 * time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = 60 * time.Second
	}
	if c.Log == nil {
		c.Log = func(string) {}
	}
	if c.Stalled == nil {
		c.Stalled = c.Log
	}
	return c
}
