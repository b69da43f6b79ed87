package device

import "sync/atomic"

// Water is the high-water mark of a memory: the part of [Memory] that says what was used.
// Any goroutine may touch it.
type Water struct{ used atomic.Int64 }

// Used is the mark.
func (w *Water) Used() int64 { return w.used.Load() }

// ResetUsed puts it to zero.
func (w *Water) ResetUsed() { w.used.Store(0) }

// Touch raises it to the end of a region.
func (w *Water) Touch(end int64) {
	for old := w.used.Load(); end > old; old = w.used.Load() {
		if w.used.CompareAndSwap(old, end) {
			return
		}
	}
}
