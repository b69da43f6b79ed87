package replay

import (
	"math"

	"github.com/gomem/gomem/distrib/fabric"
)

// Sync plays MLfabric's synchronous job: the updates of an iteration are added up as they become
// ready, and then the model goes to all.
func Sync(set Setting, iterations int) (*Log, error) {
	set.Delay = -1
	p := newPlayer("MLfabric-S", set)
	for i := range p.workers {
		p.workers[i].ready = p.slow(i, 0)
	}
	for n := range iterations {
		step := Step{}
		for len(step.Updates) < p.Workers {
			p.tick++
			p.advance(float64(p.tick) * p.Batch)
			ready := p.ready()
			end, err := p.schedule(ready, len(step.Updates)+len(ready) < p.Workers,
				func(b Base, _ float64) { step.Updates = append(step.Updates, b) })
			if err != nil {
				return nil, err
			}
			step.At = end
		}
		p.log.Steps = append(p.log.Steps, step)
		p.tick = int(math.Ceil(step.At / p.Batch))
		p.advance(float64(p.tick) * p.Batch)
		for i := range p.workers {
			p.workers[i].asks = p.now
		}
		if err := p.distribute(n + 1); err != nil {
			return nil, err
		}
	}
	return p.log, nil
}

// together is a synchronous job without a scheduler, whose iterations end with an all-reduce.
func together(name string, set Setting, iterations int, reduce func(*world, *Log) float64) *Log {
	w := newWorld(&set)
	l := &Log{Name: name}
	for n := range iterations {
		computed, step := 0.0, Step{}
		for i := range w.Workers {
			computed = max(computed, w.slow(i, n))
			step.Updates = append(step.Updates, Base{i, n, n})
		}
		w.advance(w.now + computed)
		w.advance(w.now + reduce(w, l))
		step.At = w.now
		l.Steps = append(l.Steps, step)
	}
	return l
}

// Ring plays synchronous workers whose gradients are all-reduced along a ring of their hosts: each
// link carries 2(n-1)/n of them, as fast as the slowest one at the time.
func Ring(set Setting, iterations int) *Log {
	return together("ring", set, iterations, func(w *world, _ *Log) float64 {
		n := float64(w.Hosts)
		left := 2 * (n - 1) / n * w.Bytes
		for t := w.now; ; {
			least, end := w.least(t)
			if carried := float64(least * (end - t)); carried < left {
				left, t = left-carried, end
				continue
			}
			return t + left/least - w.now
		}
	})
}

// least is the rate of the slowest link at a time, and until when nothing changes.
func (w *world) least(t float64) (bps, end float64) {
	bps, end = math.Inf(1), math.Inf(1)
	for h := range w.Hosts {
		for _, p := range []fabric.Profile{w.up[h], w.down[h]} {
			bps = min(bps, p.At(t))
			for _, s := range p {
				if s.At > t {
					end = min(end, s.At)
					break
				}
			}
		}
	}
	return bps, end
}

// Tree plays synchronous workers whose gradients are added up along a binary tree of their hosts,
// and distributed along it.
func Tree(set Setting, iterations int) *Log {
	return together("tree", set, iterations, func(w *world, l *Log) float64 {
		sent := fabric.Carry(w.tree(), w.real)
		l.sent(w, sent)
		end := 0.0
		for _, x := range sent {
			end = max(end, x.End)
		}
		return end
	})
}

// tree are the transfers of an all-reduce: from the leaves to the root, and back. Each carries what
// its sender has of the hosts' gradients.
func (w *world) tree() (all []fabric.Transfer) {
	below := make([][]fabric.ID, w.Hosts)
	for i := w.Hosts - 1; i > 0; i-- {
		below[i] = append(below[i], fabric.ID(i))
		parent := (i - 1) / 2
		all = append(all, fabric.Transfer{Updates: below[i], From: fabric.Host(i),
			To: fabric.Host(parent), Bytes: w.Bytes})
		below[parent] = append(below[parent], below[i]...)
	}
	for i := 1; i < w.Hosts; i++ {
		all = append(all, fabric.Transfer{Updates: below[0], From: fabric.Host((i - 1) / 2),
			To: fabric.Host(i), Bytes: w.Bytes})
	}
	return all
}
