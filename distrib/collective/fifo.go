package collective

import "sync"

// fifo is a queue that keeps its memory.
type fifo[T any] struct {
	items []T
	first int
}

func (q *fifo[T]) len() int { return len(q.items) - q.first }

func (q *fifo[T]) push(x T) {
	if q.first > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, x)
}

// at is the i-th from the front.
func (q *fifo[T]) at(i int) *T { return &q.items[q.first+i] }

// remove takes out the i-th.
func (q *fifo[T]) remove(i int) T {
	x := *q.at(i)
	for ; i > 0; i-- {
		*q.at(i) = *q.at(i - 1)
	}
	var zero T
	*q.at(0) = zero
	if q.first++; q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	}
	return x
}

// queue is a fifo that one goroutine fills and another one empties.
type queue[T any] struct {
	mu    sync.Mutex
	items fifo[T]
	some  chan struct{} // of one: there is something new
	ended bool
}

func newQueue[T any]() queue[T] { return queue[T]{some: make(chan struct{}, 1)} }

func (q *queue[T]) push(x T) {
	q.mu.Lock()
	q.items.push(x)
	q.mu.Unlock()
	q.signal()
}

func (q *queue[T]) signal() {
	select {
	case q.some <- struct{}{}:
	default:
	}
}

// pop waits for something; !ok: nothing comes any more.
func (q *queue[T]) pop() (x T, ok bool) {
	for {
		q.mu.Lock()
		n, ended := q.items.len(), q.ended
		if n > 0 {
			x = q.items.remove(0)
		}
		q.mu.Unlock()
		if n > 0 || ended {
			return x, n > 0
		}
		<-q.some
	}
}

// end lets pop return when the queue is empty.
func (q *queue[T]) end() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	q.signal()
}
