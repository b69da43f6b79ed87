package data

import (
	"context"
	"os"

	"github.com/gomem/gomem/internal/regular"
)

// Order is the order in which training visits a data set's items: full batches,
// and every epoch in an order of its own. It is computed where it is needed and
// never stored.
type Order struct {
	Items int // of the training part
	Batch int // items a batch, Items at most
	Seed  uint64
}

// Steps is the number of full batches of an epoch. The few items that an epoch
// leaves over differ from epoch to epoch.
func (o Order) Steps() int { return o.Items / o.Batch }

// Item is the item of a row of a step's batch, step and row from 0.
func (o Order) Item(step, row int) int {
	epoch, batch := step/o.Steps(), step%o.Steps()
	return permute(batch*o.Batch+row, o.Items, mix(o.Seed+mix(uint64(epoch))))
}

// FileError is the error of a file or directory that cannot be used, with what
// to do about errors of the file system.
func FileError(spec, path string, err error) *Error {
	return &Error{Spec: spec, Path: path, Err: Remedied(err)}
}

// OpenFile opens the regular file at path and gives its size. Its errors say what
// to do, but not where.
func OpenFile(path string) (f *os.File, size int64, err error) {
	f, err = regular.Open(path)
	if err != nil {
		return nil, 0, Remedied(err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, Remedied(err)
	}
	return f, info.Size(), nil
}

// InOrder calls work(i) for every i in [0, n) on all cores, and use with the
// results in the order of i, on the caller's goroutine, until use returns false
// or work fails. The first failure in the order of i is returned, whatever the
// scheduling, or ctx's cause. No goroutine outlives the call.
func InOrder[T any](ctx context.Context, n int, work func(int) (T, error),
	use func(int, T) (more bool)) error {
	return inOrder(ctx, n, work, use)
}
