package collective

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
