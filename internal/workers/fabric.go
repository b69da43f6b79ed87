package workers

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric"
	"github.com/gomem/gomem/distrib/fabric/daemon"
)

// wholeUpdate is the most bytes of an update that is scheduled as one.
const wholeUpdate = 1 << 28

// scheduled refuses options of schedules that a scheme has no use for.
func (o SchemeOptions) scheduled(name string) error {
	for _, x := range []struct {
		option string
		given  bool
	}{{"aggregators", o.Aggregators != nil}, {"replicas", o.Replicas > 0},
		{"divergence", o.Divergence != ""}} {
		if x.given && name != "fabric" {
			return fmt.Errorf("scheme %s has no use for option %s", name, x.option)
		}
	}
	if o.Divergence != "" && o.Replicas == 0 {
		return fmt.Errorf("a divergence is of replicas, and there are none: give their number, too")
	}
	if o.Replicas > 0 && o.Rule != "" && o.Rule != "add" {
		return fmt.Errorf("rule %s has no replicas: these are of values that updates are added "+
			"to, by rule add", o.Rule)
	}
	_, err := o.bound()
	return err
}

// bound is how far replicas may be behind: 100 updates unless said otherwise.
func (o SchemeOptions) bound() (fabric.Bound, error) {
	text, norm := strings.CutPrefix(o.Divergence, "norm:")
	switch {
	case o.Divergence == "":
		return fabric.Bound{Updates: 100}, nil
	case norm:
		x, err := strconv.ParseFloat(text, 64)
		if err == nil && x > 0 && !math.IsInf(x, 1) {
			return fabric.Bound{Norm: x}, nil
		}
	default:
		n, err := strconv.Atoi(text)
		if err == nil && n > 0 {
			return fabric.Bound{Updates: n}, nil
		}
	}
	return fabric.Bound{}, fmt.Errorf("a divergence of %.40q: give a number of updates, such as "+
		"600, or a norm of them, such as norm:0.5", o.Divergence)
}

// scheduled is how a part's updates are scheduled, of variables of so many bytes.
func (m *Member) scheduled(p *part, bytes int64) daemon.Options {
	o := daemon.Options{Aggregators: m.scheme.aggregators(), Log: m.options.Log, Nodes: p.nodes(),
		Replicas: m.scheme.options.Replicas}
	o.Bound, _ = m.scheme.options.bound() // which was checked
	o.Parts, o.Copies = m.scheme.held(bytes)
	if m.options.Elect != nil {
		o.Elect = &elected{m.options.Elect, m, p}
	}
	return o
}

// held is the bytes of updates that a worker may hold to be added up, and for replicas: what two
// steps change, and four. Of variables that come with a task, as if they were of some megabytes.
func (s Scheme) held(bytes int64) (parts, copies int64) {
	if !s.fabric() {
		return 0, 0
	}
	bytes = max(bytes, 1<<20)
	if s.aggregators() > 0 {
		parts = 2 * bytes
	}
	if s.options.Replicas > 0 {
		copies = 4 * bytes
	}
	return parts, copies
}

// nodes are those of a part's view.
func (p *part) nodes() (ids []distrib.NodeID) {
	for _, n := range p.view.Nodes {
		ids = append(ids, n.ID)
	}
	return ids
}

// elected has the log know who schedules.
type elected struct {
	daemon.Elector
	m *Member
	p *part
}

// Lead waits until this worker schedules.
func (e *elected) Lead(ctx context.Context, role string) (context.Context, error) {
	term, err := e.Elector.Lead(ctx, role)
	if err == nil {
		e.m.options.Logger.Info("schedules", "epoch", e.p.view.Epoch)
	}
	return term, err
}

// replicable reports more replicas than there may be other workers to have them.
func (s Scheme) replicable(workers int, e *Elastic) error {
	if e != nil {
		workers = max(workers, e.Most)
	}
	if n := s.options.Replicas; n >= workers && n > 0 {
		return fmt.Errorf("%d replicas of what each worker serves need %d workers, there are %d", n,
			n+1, workers)
	}
	return nil
}
