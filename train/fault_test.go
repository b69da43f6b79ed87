package train

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
)

// faulty has a number that is not finite in one batch.
type faulty struct {
	data.Batches
	train, held int // the batch, or −1
	value       float32
}

func (f faulty) Train(i int) data.Batch   { return f.spoilt(f.Batches.Train(i), i == f.train) }
func (f faulty) HeldOut(i int) data.Batch { return f.spoilt(f.Batches.HeldOut(i), i == f.held) }

func (f faulty) spoilt(b data.Batch, spoil bool) data.Batch {
	if spoil {
		b.Inputs[0].F32()[2*5+3] = f.value
	}
	return b
}

// TestDataThatAreNotFinite: the error is of the data, and says where in them, in training and
// in evaluations, of one worker and of several; and it is of training where it diverges.
func TestDataThatAreNotFinite(t *testing.T) {
	nan := float32(math.NaN())
	says := func(err error, words ...string) {
		t.Helper()
		e, ok := errors.AsType[*ErrNonFinite](err)
		if !ok || !e.Data || strings.Contains(err.Error(), "learning rate") {
			t.Fatalf("error is %v", err)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
	}
	o := lesson(t, 6, 1)
	o.Loader = faulty{o.Loader, 7, -1, nan}
	_, err := Run(t.Context(), o)
	says(err, "input x[batch 2, 3] of batch 7 is NaN at step 8", "the data are at fault")
	o = lesson(t, 6, 2)
	o.Loader = faulty{o.Loader, 7, -1, float32(math.Inf(-1))}
	_, err = Run(t.Context(), o)
	says(err, "input x[batch 2, 3] of batch 7 is -Inf at step 4")
	o = lesson(t, 6, 1)
	o.Loader, o.EvalEvery = faulty{o.Loader, -1, 1, nan}, 2
	_, err = Run(t.Context(), o)
	says(err, "input x[batch 2, 3] of held-out batch 1 is NaN at step 2")
	out := abreast(2, 0, func(int) (context.Context, Options) {
		o := lesson(t, 6, 1)
		o.Loader = faulty{o.Loader, 5, -1, nan} // worker 1's third
		return t.Context(), o
	})
	says(out.errs[1], "input x[batch 2, 3] of batch 5 is NaN at step 3")
	says(out.errs[0], "loss of worker 1 is NaN at step 3")
	o = lesson(t, 6, 1)
	o.Model.Schedule = huge{}
	_, err = Run(t.Context(), o)
	if e, ok := errors.AsType[*ErrNonFinite](err); !ok || e.Data {
		t.Errorf("error is %v", err)
	}
}

// huge is a rate with which training diverges.
type huge struct{}

func (huge) At(int) float32 { return math.MaxFloat32 }
