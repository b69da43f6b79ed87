package collective

import (
	"errors"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// Together runs a part for each of some nodes that this process has, with a group of all of them,
// and is what each has come to. Who fails aborts, so that nobody waits for it. No node is closed
// before all parts have ended: what one has sent last may be on its way.
func Together(nodes []distrib.Transport, o Options, part func(g *Group) error) []error {
	ids := make([]distrib.NodeID, len(nodes))
	for i, t := range nodes {
		ids[i] = t.Self()
	}
	errs := make([]error, len(nodes))
	var all, ended sync.WaitGroup
	ended.Add(len(nodes))
	for i, t := range nodes {
		all.Go(func() {
			mux, err := NewMux(t, o)
			if err == nil {
				err = attend(mux, ids, part)
			}
			ended.Done()
			ended.Wait()
			if mux != nil {
				err = errors.Join(err, mux.Close())
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errs
}

// attend runs a node's part in a group.
func attend(mux *Mux, ids []distrib.NodeID, part func(g *Group) error) error {
	g, err := mux.Group(ids...)
	if err != nil {
		return err
	}
	if err = part(g); err != nil {
		g.Abort(err)
	}
	return err
}
