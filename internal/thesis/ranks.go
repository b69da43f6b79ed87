package thesis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomem/gomem"
)

// steps is how many every process of a mesh runs.
const steps = 3

// together executes steps of so many experts, each process of the mesh within the caps in a
// session of its own, and says so.
func (r *runner) together(ctx context.Context, x mixture, experts int) (text string, err error) {
	o, err := x.options(r.Size)
	if err != nil {
		return "", err
	}
	networks, leave, err := r.Join(o.Mesh.Mesh)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, leave()) }()
	r.progress("%s, %s: running %d experts on %d", x.name, r.Size, experts, len(networks))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	losses := make([][steps]float32, len(networks))
	var all sync.WaitGroup
	for rank, network := range networks {
		x.rank = rank
		all.Go(func() {
			var err error
			if losses[rank], err = x.train(ctx, network, r.Size, experts); err != nil {
				cancel(fmt.Errorf("%s, %d experts, process %d: %w", x.name, experts, rank, err))
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	for rank, l := range losses {
		if l != losses[0] {
			return "", fmt.Errorf("%s: losses of process %d are %v, of process 0 %v", x.name, rank,
				l, losses[0])
		}
	}
	return fmt.Sprintf("%d run", len(networks)), nil
}

// train executes the steps of one process, whose peaks must be those predicted.
func (x mixture) train(ctx context.Context, network gomem.Network, size string,
	experts int) (losses [steps]float32, err error) {
	m, err := x.build(size, experts)
	if err != nil {
		return losses, err
	}
	planning, err := x.options(size)
	if err != nil {
		return losses, err
	}
	o := gomem.Options{Network: network}.With(planning)
	s, err := gomem.Compile(ctx, m.Graph, o, objective(m))
	if err != nil {
		return losses, err
	}
	defer s.Close()
	in := Feeds(m)
	for i := range losses {
		out, err := s.Step(ctx, m.Objectives[0].Name, in)
		if err == nil {
			err = foreseen(s)
		}
		if err != nil {
			return losses, err
		}
		losses[i] = out[0].F32()[0]
	}
	return losses, nil
}
