package cluster

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/gomem/gomem/internal/command"
)

// zapped is a logger as etcd and the control plane take one, whose entries go where those of the
// program's own go.
func zapped(log *slog.Logger) *zap.Logger { return zap.New(core{log.Handler()}) }

// core writes zap's entries by a handler of slog's.
type core struct{ handler slog.Handler }

// Enabled reports whether entries of a level are written.
func (c core) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), levelOf(l))
}

// With is a core that adds fields to every entry.
func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.handler.WithAttrs(attributes(fields))}
}

// Check adds the core to those that write an entry, if this one does.
func (c core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write writes an entry.
func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, levelOf(e.Level), e.Message, 0)
	if e.LoggerName != "" {
		r.AddAttrs(slog.String("logger", e.LoggerName))
	}
	r.AddAttrs(attributes(fields)...)
	return c.handler.Handle(context.Background(), r)
}

// Sync does nothing: entries are written at once.
func (core) Sync() error { return nil }

// levelOf is zap's level in slog's numbers; what is beyond an error is an error.
func levelOf(l zapcore.Level) slog.Level {
	return min(slog.Level(l)*4, slog.LevelError)
}

// attributes are fields as slog has them.
func attributes(fields []zapcore.Field) (out []slog.Attr) {
	for _, f := range fields {
		e := zapcore.NewMapObjectEncoder()
		f.AddTo(e)
		for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
			out = append(out, slog.Any(name, e.Fields[name]))
		}
	}
	return out
}

// counts are the metrics of what befell this process.
func (j *joiner) counts() []command.Sample {
	n := j.agreed.Counts()
	return []command.Sample{
		{Name: "gomem_views_total", Counter: true, Value: float64(n.Views),
			Help: "Views of the job that this worker was in."},
		{Name: "gomem_leases_lost_total", Counter: true, Value: float64(n.Leases),
			Help: "Leases of this worker that were not renewed in time."},
		{Name: "gomem_elections_total", Counter: true, Value: float64(n.Elections),
			Help: "Roles that this worker was elected to lead in."},
		{Name: "gomem_control_stalls_total", Counter: true, Value: float64(n.Stalls),
			Help: "Reports of a wait for others to agree that goes on."},
		{Name: "gomem_evictions_total", Counter: true, Value: float64(n.Evictions),
			Help: "Workers that were taken out of the job without having asked."},
	}
}
