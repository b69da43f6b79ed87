package workload

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
)

// tasks are small ones of all kinds that share all that they learn.
func tasks() map[string]func(distrib.Synchronizer, Worker) error {
	m, f := covertype(), lowRank()
	m.Losses, m.Epochs = true, 4
	f.Losses, f.Both, f.Epochs = true, true, 4
	l := clicked()
	l.Losses = true
	return map[string]func(distrib.Synchronizer, Worker) error{
		"lr": func(s distrib.Synchronizer, w Worker) error {
			return l.Run(context.Background(), s, w)
		},
		"mlr": func(s distrib.Synchronizer, w Worker) error {
			return m.Run(context.Background(), s, w)
		},
		"mf": func(s distrib.Synchronizer, w Worker) error {
			return f.Run(context.Background(), s, w)
		},
	}
}

// TestStates: a run that begins from the state after any epoch tells of the epochs that are
// left what the whole run tells, to the bit; one that is stopped tells of no other ones.
func TestStates(t *testing.T) {
	for name, task := range tasks() {
		var states []State
		tell := func(s *State, stop int) (told []Progress, err error) {
			err = task(&alone{}, Worker{Of: 1, From: s,
				Total: func(p Progress) { told = append(told, p) },
				Between: func(_ context.Context, x State) (bool, error) {
					if s == nil && stop == 0 {
						states = append(states, x)
					}
					return x.Epoch == stop, nil
				}})
			return told, err
		}
		whole, err := tell(nil, 0)
		if err != nil || len(whole) != 5 || len(states) != 3 {
			t.Fatalf("%s: %d epochs, %d states, %v", name, len(whole), len(states), err)
		}
		for i, x := range states {
			rest, err := tell(&x, 0)
			if err != nil || x.Epoch != i+1 || !slices.EqualFunc(rest, whole[i+1:], alike) {
				t.Errorf("%s: from epoch %d: %v, %+v, want %+v", name, x.Epoch, err, rest,
					whole[i+1:])
			}
		}
		part, err := tell(nil, 2)
		if !errors.Is(err, ErrStopped) || !slices.EqualFunc(part, whole[:2], alike) {
			t.Errorf("%s: stopped after epoch 2: %v, %+v", name, err, part)
		}
		failed := errors.New("a failure")
		fail := func(context.Context, State) (bool, error) { return false, failed }
		if err := task(&alone{}, Worker{Of: 1, Between: fail}); !errors.Is(err, failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func alike(a, b Progress) bool {
	return a.Epoch == b.Epoch && a.Loss == b.Loss && a.Errors == b.Errors
}

// TestBadStates: those of other tasks are refused, and a factorisation whose rows are not in
// them.
func TestBadStates(t *testing.T) {
	for name, task := range tasks() {
		var good State
		_ = task(&alone{}, Worker{Of: 1, Between: func(_ context.Context, x State) (bool, error) {
			good = x
			return true, nil
		}})
		for _, bad := range []State{{}, {Epoch: -1, Rows: good.Rows}, {Epoch: 5, Rows: good.Rows},
			{Epoch: 1, Rows: good.Rows[1:]},
			{Epoch: 1, Rows: append([][]float32{{1}}, good.Rows[1:]...)}} {
			err := task(&alone{}, Worker{Of: 1, From: &bad})
			if err == nil || !strings.HasPrefix(err.Error(), name+": a state of ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	f := lowRank()
	err := f.Run(t.Context(), &alone{}, Worker{Of: 1,
		Between: func(context.Context, State) (bool, error) { return false, nil }})
	if err == nil || !strings.Contains(err.Error(), "have both shared") {
		t.Errorf("%v", err)
	}
}
