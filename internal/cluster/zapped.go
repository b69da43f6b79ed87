package cluster

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
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
