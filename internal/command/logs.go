package command

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/gomem/gomem/internal/workers"
)

// logFlags say what is logged, and how.
type logFlags struct {
	LogLevel  string `enum:"debug,info,warn,error" default:"warn" placeholder:"LEVEL"`
	LogFormat string `enum:"text,json" default:"text" placeholder:"FORMAT"`
}

// logger logs one line an entry. The level is one that kong has checked.
func (f logFlags) logger(w io.Writer) *slog.Logger {
	l := slog.LevelWarn
	if err := l.UnmarshalText([]byte(f.LogLevel)); err != nil {
		l = slog.LevelWarn
	}
	o := &slog.HandlerOptions{Level: l}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// standing is where a worker is when something is logged.
type standing struct {
	clock  atomic.Int64 // steps, or epochs of models without layers, that it has done
	member atomic.Pointer[workers.Member]
}

// step is after so many; of one that is no worker of a job nothing is kept.
func (s *standing) step(n int) {
	if s != nil {
		s.clock.Store(int64(n))
	}
}

// of is a logger of a worker of a job, which says with every entry where it is.
func (s *standing) of(log *slog.Logger, job string, rank int) *slog.Logger {
	log = slog.New(placed{log.Handler(), s})
	if job != "" {
		log = log.With("job", job)
	}
	return log.With("rank", rank)
}

// placed adds to entries the epoch and the clock, where they do not have them.
type placed struct {
	slog.Handler
	at *standing
}

// Handle writes an entry.
func (p placed) Handle(ctx context.Context, r slog.Record) error {
	m := p.at.member.Load()
	epoch := m != nil
	r.Attrs(func(a slog.Attr) bool {
		epoch = epoch && a.Key != "epoch"
		return epoch
	})
	r = r.Clone()
	if epoch {
		r.AddAttrs(slog.Int64("epoch", m.Epoch()))
	}
	r.AddAttrs(slog.Int64("clock", p.at.clock.Load()))
	return p.Handler.Handle(ctx, r)
}

// WithAttrs is the same with attributes.
func (p placed) WithAttrs(as []slog.Attr) slog.Handler {
	return placed{p.Handler.WithAttrs(as), p.at}
}
