package orion

import (
	"context"
	"sync"
)

// behind does what a worker does not wait for: one thing after the other, in order. After an error
// nothing more is done.
type behind struct {
	queue   chan func(context.Context) error
	pending sync.WaitGroup
}

// goBehind begins, with room for so much that is pending: with more, the worker waits.
func goBehind(ctx context.Context, fail context.CancelCauseFunc, most int) *behind {
	b := &behind{queue: make(chan func(context.Context) error, most)}
	go func() {
		for f := range b.queue {
			if ctx.Err() == nil {
				if err := f(ctx); err != nil {
					fail(err)
				}
			}
			b.pending.Done()
		}
	}()
	return b
}

func (b *behind) do(f func(context.Context) error) {
	b.pending.Add(1)
	b.queue <- f
}

// wait waits until nothing is pending.
func (b *behind) wait() { b.pending.Wait() }

// end does what is pending, and ends.
func (b *behind) end() {
	close(b.queue)
	b.wait()
}
