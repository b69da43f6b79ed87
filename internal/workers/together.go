package workers

import (
	"errors"
	"sync"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
)

// Together are workers of this one process, as many as a mesh has places and by rank, who
// exchange within steps over a network in memory until they leave, and between devices at peers, if
// that is not nil: for experiments whose processes have a machine's memory together.
func Together(m collective.Mesh, peers *Peers) (all []*Member, leave func() error, err error) {
	net, v := memnet.NewNetwork(m.Size(), memnet.Options{}), distrib.View{Epoch: 1}
	for i := range m.Size() {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(i)})
	}
	leave = func() error {
		errs := make([]error, len(all))
		var done sync.WaitGroup
		for i, w := range all {
			done.Go(func() { errs[i] = w.Close(nil) })
		}
		done.Wait()
		return errors.Join(errs...)
	}
	for i := range m.Size() {
		v.Self = distrib.NodeID(i)
		s, err := ParseScheme("ring", SchemeOptions{})
		if err != nil {
			return nil, nil, errors.Join(err, leave())
		}
		w, err := Join(v, net.Node(v.Self), s, Options{Mesh: m, Peers: peers})
		if err != nil {
			return nil, nil, errors.Join(err, leave())
		}
		all = append(all, w)
	}
	return all, leave, nil
}
