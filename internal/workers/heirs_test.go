package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric/daemon"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/train"
)

// tapped is a member whose groups are looked at as they begin, once one of them has broken.
type tapped struct {
	*Member
	begins func(m *Member, old *part, b *between)
}

func (m tapped) Regroup(ctx context.Context, why error) (*train.Parallel, error) {
	p, err := m.Member.Regroup(ctx, why)
	if err == nil {
		p.Elastic = m
		b := p.Between.(*between)
		p.Between = begins{b, func() { m.begins(m.Member, m.before, b) }}
	}
	return p, err
}

// begins is a between that says when it has begun, from what.
type begins struct {
	*between
	after func()
}

func (b begins) Begin(ctx context.Context, s *gomem.Session) error {
	old := b.member.before
	err := b.between.Begin(ctx, s)
	if b.member.before = old; err == nil {
		b.after()
	}
	b.member.before = nil
	return err
}

// TestReplicasTakeOver: whenever a worker is lost, all others begin their next group with the same
// values, and of what the lost one served with those of its replica.
func TestReplicasTakeOver(t *testing.T) {
	cases, looked := longtest.Count(8, 80), 0
	for i := range cases {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var first [][]float32 // values that a worker began with
			begun, same := 0, 0
			aggregators, dead := i%3, distrib.NodeID(1+i%3)
			c := &course{site: newSite(4), scheme: "fabric", least: 2}
			c.how = SchemeOptions{Replicas: 1 + i%2, Divergence: fmt.Sprint(1 + i%5),
				Aggregators: &aggregators}
			c.own = func(_ distrib.NodeID, o *train.Options) { o.Steps = 20 }
			c.wraps = func(id distrib.NodeID) func(distrib.Transport) distrib.Transport {
				return func(t distrib.Transport) distrib.Transport {
					if id != dead {
						return t
					}
					return &fatal{Transport: t, left: 150 + 29*(i%12),
						kill: func() { c.kill(dead) }}
				}
			}
			c.parts = func(_ *Member, p *train.Parallel) {
				m, _ := p.Elastic.(*Member)
				p.Elastic = tapped{m, func(m *Member, old *part, b *between) {
					mu.Lock()
					defer mu.Unlock()
					if begun++; first == nil {
						for _, p := range b.params {
							first = append(first, slices.Clone(p.Data))
						}
					}
					for i, p := range b.params {
						if !slices.Equal(p.Data, first[i]) {
							t.Errorf("worker %d begins with other values of %s", m.Rank(), p.Name)
						}
					}
					ids := []distrib.NodeID{0, 1, 2, 3}
					if daemon.Replicas(ids, dead, 1)[0] != old.view.Self {
						return
					}
					for _, r := range old.engine.Kept(dead) {
						i := slices.IndexFunc(b.params, func(p *distrib.Param) bool {
							return p.Name == r.Param
						})
						at := int(r.Row) * r.Cols
						if !slices.Equal(r.Data, b.params[i].Data[at:at+len(r.Data)]) {
							t.Errorf("rows of %s are not the replica's", r.Param)
						}
						same++
					}
				}}
			}
			for id, e := range c.all(t, 4) {
				if distrib.NodeID(id) != dead && (e.err != nil || e.Steps != 20) {
					t.Errorf("case %d: worker %d ended at step %d: %v", i, id, e.Steps, e.err)
				}
			}
			if looked += same; begun != 3 {
				t.Errorf("case %d: %d began anew", i, begun)
			}
		})
	}
	if looked == 0 {
		t.Error("no rows were taken over")
	}
}

// TestOverlayRefuses: rows that are handed over and are not there are an error, whatever they say.
func TestOverlayRefuses(t *testing.T) {
	const most = math.MaxInt32
	for _, x := range []struct {
		name      string
		row, n    int32
		cols      int
		floats    int
		isRefused bool
	}{{"w", 1, 2, 2, 4, false}, {"w", 0, 0, 2, 0, false}, {"w", 2, 2, 2, 4, true},
		{"w", most, 1, 2, 2, true}, {"w", most - 1, 2, 2, 4, true}, {"w", -1, 1, 2, 2, true},
		{"w", 0, -1, 2, 0, true}, {"w", -2, 4, 2, 8, true}, {"w", most, 0, 2, 0, true},
		{"w", 1, 1, 3, 3, true}, {"w", 1, 2, 2, 2, true}, {"v", 1, 2, 2, 4, true}} {
		var b bytes.Buffer
		s := distrib.Shard{Rows: []distrib.SavedRows{{Param: x.name, Row: x.row, N: x.n,
			Cols: x.cols, Data: slices.Repeat([]float32{7}, x.floats)}}}
		if _, err := s.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		p := &distrib.Param{Name: "w", Rows: 3, Cols: 2, Data: make([]float32, 6)}
		h := &heirs{between: &between{params: []*distrib.Param{p}}}
		err := h.overlay(b.Bytes())
		sevens := 0
		for _, v := range p.Data {
			if v == 7 {
				sevens++
			}
		}
		if x.isRefused != (err != nil) || err != nil && sevens > 0 ||
			err == nil && sevens != x.floats {
			t.Errorf("%+v: %v, and %d numbers were taken", x, err, sevens)
		}
	}
}

// TestReplicasNeedWorkers: each replica is with another worker, of those that there may be.
func TestReplicasNeedWorkers(t *testing.T) {
	for _, c := range []struct {
		replicas, workers, most int
		good                    bool
	}{{1, 2, 0, true}, {2, 2, 0, false}, {3, 3, 0, false}, {2, 2, 3, true}, {3, 2, 3, false}} {
		s, err := ParseScheme("fabric", SchemeOptions{Replicas: c.replicas})
		if err != nil {
			t.Fatal(err)
		}
		v := distrib.View{Epoch: 1}
		for i := range c.workers {
			v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
		}
		var o Options
		if c.most > 0 {
			o.Elastic = &Elastic{Least: 1, Most: c.most}
		}
		m, err := Join(v, memnet.New(c.workers, memnet.Options{})[0], s, o)
		if (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil {
			_ = m.Close(errors.New("enough"))
		}
	}
}
