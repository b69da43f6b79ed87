package laws_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
)

// hub joins workers of one process: what they send is folded in the order of ranks once
// all have sent it. It fills what it is given with junk meanwhile.
type hub struct {
	mu      sync.Mutex
	workers []*worker
	rounds  []*round // in order; a worker's n-th send is of the n-th
}

// worker is the hub's end at a session.
type worker struct {
	hub     *hub
	rank    int
	sent    int
	flying  map[string]*round
	onSend  func(name string) error // called first; its error is Send's
	onAwait func(name string) error
	gone    int // calls of Abandon
}

// round is an exchange.
type round struct {
	x      gomem.Exchange // of who sent first, without data
	values [][]float32    // by rank: what was sent
	data   [][]byte       // by rank: where the result goes
	done   chan struct{}
}

func newHub(workers int) *hub {
	h := &hub{}
	for rank := range workers {
		h.workers = append(h.workers, &worker{hub: h, rank: rank, flying: map[string]*round{}})
	}
	return h
}

func (w *worker) Send(_ context.Context, x gomem.Exchange) error {
	if w.onSend != nil {
		if err := w.onSend(x.Name); err != nil {
			return err
		}
	}
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.sent == len(h.rounds) {
		n := len(h.workers)
		h.rounds = append(h.rounds, &round{x: x, values: make([][]float32, n),
			data: make([][]byte, n), done: make(chan struct{})})
	}
	r := h.rounds[w.sent]
	w.sent++
	if r.x.Name != x.Name || !r.x.Type.Equal(x.Type) || r.x.How != x.How ||
		w.flying[x.Name] != nil {
		return fmt.Errorf("worker %d sends %s, %s, another %s, %s", w.rank, x.Name, x.Type,
			r.x.Name, r.x.Type)
	}
	w.flying[x.Name] = r
	part := len(x.Data)
	if x.How.Fold == graph.Gather {
		if x.Parts != len(h.workers) {
			return fmt.Errorf("%s is one of %d parts, of %d workers", x.Name, x.Parts,
				len(h.workers))
		}
		part /= x.Parts
	}
	r.data[w.rank], r.values[w.rank] = x.Data, floats(x.Data[:part])
	for i := range x.Data {
		x.Data[i] = 0xff
	}
	r.finish()
	return nil
}

// finish folds the values, once they are all there.
func (r *round) finish() {
	for _, d := range r.data {
		if d == nil {
			return
		}
	}
	if r.x.How.Fold == graph.Gather {
		r.gather()
		return
	}
	sum := make([]float32, len(r.values[0]))
	for _, v := range r.values {
		for i, x := range v {
			sum[i] += x
		}
	}
	for _, d := range r.data {
		for i, x := range sum {
			if r.x.How.Fold == graph.Mean {
				x = float32(x / float32(len(r.data)))
			}
			binary.NativeEndian.PutUint32(d[4*i:], math.Float32bits(x))
		}
	}
	close(r.done)
}

// gather gives everybody all values, by rank.
func (r *round) gather() {
	for _, d := range r.data {
		d = d[:0]
		for _, v := range r.values {
			for _, x := range v {
				d = binary.NativeEndian.AppendUint32(d, math.Float32bits(x))
			}
		}
	}
	close(r.done)
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return out
}

func (w *worker) Await(ctx context.Context, name string) error {
	if w.onAwait != nil {
		if err := w.onAwait(name); err != nil {
			return err
		}
	}
	w.hub.mu.Lock()
	r := w.flying[name]
	w.hub.mu.Unlock()
	if r == nil {
		return errors.New("nobody has sent " + name)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	delete(w.flying, name)
	return nil
}

func (w *worker) Abandon() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.gone++
	for _, r := range w.flying {
		r.data[w.rank] = nil // nothing is written there any more
	}
	clear(w.flying)
}
