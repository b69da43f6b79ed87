package turns

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestQuietest(t *testing.T) {
	all := []Round{{Others: 0.3}, {Others: 0}, {Others: 0.1}, {Others: 0.02}}
	got := quietest(all, 3)
	if len(got) != 3 || got[0].Others != 0 || got[1].Others != 0.1 || got[2].Others != 0.02 ||
		got.Disturbed() != 1 {
		t.Errorf("the three quietest are %v", got)
	}
}

// TestTake: sides take turns, forwards and backwards; an error or an
// interruption ends it.
func TestTake(t *testing.T) {
	var order strings.Builder
	fake := func(name string, d time.Duration) Side {
		return func() (time.Duration, error) {
			order.WriteString(name)
			return d, nil
		}
	}
	rounds, err := Take(t.Context(), 2, &Watch{}, fake("a", time.Second),
		fake("b", 2*time.Second))
	if err != nil || len(rounds) != 2 || !strings.HasPrefix(order.String(), "abba") {
		t.Errorf("rounds %v, order %s, error %v", rounds, order.String(), err)
	}
	if got := rounds.Ratio(1, 0); got != 2 {
		t.Errorf("ratio is %v, want 2", got)
	}
	broken := func() (time.Duration, error) { return 0, io.ErrUnexpectedEOF }
	if _, err := Take(t.Context(), 2, &Watch{}, broken); !errors.Is(err,
		io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Take(ctx, 2, &Watch{}, broken); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestUsage(t *testing.T) {
	all, busy, err := parseProcessors("cpu  10 1 5 100 20 2 3 4 0 0\ncpu0 1 2\n")
	if all != 145 || busy != 25 || err != nil {
		t.Errorf("%d of %d ticks (%v), want 25 of 145", busy, all, err)
	}
	ticks, err := parseProcess("71 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 300 45 0 0\n")
	if ticks != 345 || err != nil {
		t.Errorf("%d ticks (%v), want 345", ticks, err)
	}
	for _, bad := range []string{"", "cpu", "71 (a) S 1"} {
		if _, _, err := parseProcessors(bad); err == nil {
			t.Errorf("processors %q are accepted", bad)
		}
		if _, err := parseProcess(bad); err == nil {
			t.Errorf("process %q is accepted", bad)
		}
	}
	if got := (usage{100, 50, 20}).others(usage{200, 130, 90}); got != 0.1 {
		t.Errorf("others had %v, want 0.1", got)
	}
}
