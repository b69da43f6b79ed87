package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/train"
)

// returning is a run of four workers, of whom one is cut off in the middle and, once the others go
// on without it, joins again by a function, for which they wait at a later step.
func returning(scheme string, steps int, again func(s *site) (Place, error)) *course {
	c := &course{site: newSite(4), scheme: scheme, least: 2, wait: time.Minute}
	without, tried := make(chan struct{}), make(chan struct{})
	c.again = func(id distrib.NodeID) (Place, error) {
		<-without
		defer close(tried)
		return again(c.site)
	}
	c.own = func(id distrib.NodeID, o *train.Options) {
		o.Steps = steps
		switch show, once := o.Observe, sync.OnceFunc(func() { close(without) }); id {
		case 0:
			o.Loader = gate{o.Loader, 100, func() { <-tried }}
			o.Observe = func(e train.Event) {
				if show(e); e.Kind == train.View {
					once()
				}
			}
		case 2:
			o.Loader = gate{o.Loader, 20, sync.OnceFunc(func() { c.kill(2) })}
		}
	}
	return c
}

// TestReturn: a worker that the others go on without comes back in the same process, with their
// state and not its own, and all end with one.
func TestReturn(t *testing.T) {
	const steps = 60
	for _, scheme := range []string{"ring", "ps", "bosen", "average"} {
		c := returning(scheme, steps, func(s *site) (Place, error) { return s.back(2) })
		out := c.all(t, 4)
		for id, e := range out {
			if e.err != nil || e.Steps != steps || e.Workers != 4 {
				t.Errorf("%s: worker %d: %v, %+v, %v", scheme, id, e.err, e.Summary, e.changes())
			}
		}
		changes := strings.Join(out[0].changes(), "; ")
		if !strings.Contains(changes, "worker 2 is gone; 3 go on") ||
			!strings.Contains(changes, "worker 2 is here; 4 go on") {
			t.Errorf("%s: %s", scheme, changes)
		}
	}
}

// TestReturnInVain: who cannot come back says so, with why it was out, and the others go on.
func TestReturnInVain(t *testing.T) {
	c := returning("ring", 60, func(*site) (Place, error) {
		return Place{}, errors.New("nobody answers")
	})
	out := c.all(t, 4)
	want := "worker 2 was out, and could not come back: nobody answers"
	if err := out[2].err; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	for _, id := range []int{0, 1, 3} {
		if e := out[id]; e.err != nil || e.Steps != 60 || e.Workers != 3 {
			t.Errorf("worker %d: %v, %+v", id, e.err, e.Summary)
		}
	}
}

// TestAllReturn: all are out at once, as of an etcd that counts leases anew, and go on from the
// state of the one that is farthest.
func TestAllReturn(t *testing.T) {
	const steps = 30
	c := returning("ring", steps, nil)
	var all sync.WaitGroup
	all.Add(4)
	c.again = func(id distrib.NodeID) (Place, error) {
		all.Done()
		all.Wait() // or who comes first would be alone
		return c.back(id)
	}
	c.own = func(id distrib.NodeID, o *train.Options) {
		if o.Steps = steps; id == 2 {
			o.Loader = gate{o.Loader, 40, sync.OnceFunc(func() { c.kill(0, 1, 2, 3) })}
		}
	}
	for id, e := range c.all(t, 4) {
		if e.err != nil || e.Steps != steps || e.Workers != 4 {
			t.Errorf("worker %d: %v, %+v, %v", id, e.err, e.Summary, e.changes())
		}
	}
}

// back is the place of a node that comes again.
func (s *site) back(id distrib.NodeID) (Place, error) {
	s.come(id)
	s.mu.Lock()
	p := s.here[id]
	s.mu.Unlock()
	v := <-p.views
	t, err := s.open(v)
	if err != nil {
		return Place{}, fmt.Errorf("epoch %d: %w", v.Epoch, err)
	}
	return Place{View: v, Transport: t, Alive: p.alive, Views: p.views}, nil
}

// joinedAgain is as of [Elastic].
func (s *site) joinedAgain(id distrib.NodeID) func(context.Context) (Place, error) {
	if s.again == nil {
		return nil
	}
	return func(context.Context) (Place, error) { return s.again(id) }
}
