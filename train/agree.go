package train

import (
	"context"
	"fmt"
	"slices"
)

// agree waits for what all say.
func (p *Parallel) agree(ctx context.Context, says []byte) ([][]byte, error) {
	if err := p.Peers.Tell(ctx, says); err != nil {
		return nil, err
	}
	return p.hear(ctx)
}

// give waits for what all say to one worker.
func (p *Parallel) give(ctx context.Context, to int, says []byte) ([][]byte, error) {
	if err := p.Peers.Give(ctx, to, says); err != nil {
		return nil, err
	}
	return p.hear(ctx)
}

// hear waits for what all have told next.
func (p *Parallel) hear(ctx context.Context) ([][]byte, error) {
	all, err := p.Peers.Hear(ctx)
	if err == nil && len(all) != p.Workers {
		err = fmt.Errorf("%d workers answer, there are %d", len(all), p.Workers)
	}
	return all, err
}

// same demands that all say the same as worker 0.
func (p *Parallel) same(ctx context.Context, what string, says []byte) error {
	all, err := p.agree(ctx, fingerprint(says))
	if err != nil {
		return err
	}
	return p.alike(what, all)
}

// alike demands that all have said the same as worker 0.
func (p *Parallel) alike(what string, all [][]byte) error {
	for rank, said := range all {
		if !slices.Equal(said, all[0]) {
			return fmt.Errorf("worker %d has other %s than worker %d: start all workers with the "+
				"same flags, data and version; only devices and plans may differ", p.number(rank),
				what, p.number(0))
		}
	}
	return nil
}

// number is what a worker is called.
func (p *Parallel) number(rank int) int {
	if p.Elastic != nil {
		return p.Elastic.Numbers()[rank]
	}
	return rank
}
