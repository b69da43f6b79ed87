package command

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/gomem/gomem/distrib"
)

// mtbf is a mean time between failures of one machine; zero means that none was given.
type mtbf time.Duration

// UnmarshalText reads a time such as 720h.
func (m *mtbf) UnmarshalText(text []byte) error {
	const least, most = time.Minute, 10 * 365 * 24 * time.Hour
	d, err := time.ParseDuration(string(text))
	if err != nil || d < least || d > most {
		return fmt.Errorf("%q: want a time from 1m to %dh, such as 720h", text, most/time.Hour)
	}
	*m = mtbf(d)
	return nil
}

// saveAfter is how long to train between checkpoints that take so long on so many machines, by
// Young's formula.
func (m mtbf) saveAfter(machines func() int,
	log *slog.Logger) func(took time.Duration) time.Duration {
	said := time.Duration(0)
	const first = 10 * time.Second // by which it shows how long one takes
	return func(took time.Duration) time.Duration {
		if took == 0 {
			return first
		}
		n := machines()
		after := distrib.Interval(took, time.Duration(m), n)
		if took != said { // this is asked after every step
			said = took
			log.Info("checkpoints", "every", after, "took", took, "machines", n)
		}
		return after
	}
}
