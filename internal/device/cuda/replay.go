//go:build linux && amd64 && !nocuda

package cuda

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/plan/space"
)

// segment is what a stream was given at once. All that its tasks give the GPU was settled when they
// were made, addresses and numbers, and what changes from step to step is data at these addresses:
// so the graph of one time does for all.
type segment struct {
	tasks []device.Task
	graph *driver.Graph // nil: there is none yet, or the segment is refused one
	eager bool          // there will be none
}

// replays counts what became of segments.
type replays struct {
	graphs, replayed, refused int
	bytes                     int64 // less of the GPU's memory was free after them than before
}

// replay gives the GPU a segment's graph instead of its tasks, one after the other, where there is
// one or can be: not at first, when libraries and the driver may load what tasks are made of.
func (s *stream) replay(tasks []device.Task) bool {
	first := tasks[0].(*task)
	g := s.segments[first]
	if g == nil || !slices.Equal(g.tasks, tasks) {
		s.forget(g)
		s.segments[first] = &segment{tasks: slices.Clone(tasks)}
		return false
	}
	if g.graph == nil && !s.capture(g) {
		return false
	}
	for _, t := range tasks {
		t.(*task).touch()
	}
	s.begun.Add(uint64(len(tasks)))
	s.last.Store(tasks[len(tasks)-1].(*task))
	if err := s.cu.Replay(g.graph); err != nil {
		s.fail(err)
	}
	s.replays.replayed++
	return true
}

// together is how many of the tasks, the first and those after it, are given at once, and whether
// they can be a graph: they are this stream's, the same calls every time, and more than one.
func (s *stream) together(tasks []device.Task) (n int, graph bool) {
	if !s.device.options.graphs() || s.place.engine != space.Compute {
		return len(tasks), false
	}
	calls := 0
	for _, given := range tasks {
		t, ok := given.(*task)
		if !ok || t.place != s.place || t.looks {
			break
		}
		n, calls = n+1, calls+len(t.parts)
	}
	return max(n, 1), calls > 1
}

// graphs reports whether tasks are given as graphs where they can be: not where somebody listens to
// each of them.
func (o *Options) graphs() bool { return !o.Eager && o.Listener == nil }

// forbidden logs what is given one by one though it need not have been, if anything is, and why.
func (o *Options) forbidden(why string, args ...any) {
	if o.Logger != nil && !o.Eager {
		o.Logger.Info("cuda graphs: launches are given one by one: "+why, args...)
	}
}

// capture makes a segment's graph. Where that fails, its tasks are given one by one from then on.
func (s *stream) capture(g *segment) bool {
	if g.eager {
		return false
	}
	free, err := s.spare()
	if err != nil {
		s.fail(err)
		return false
	}
	g.graph, err = s.cu.Capture(func() error {
		for _, t := range g.tasks {
			if err := t.(*task).give(s); err != nil {
				return t.(*task).error(err)
			}
		}
		return nil
	})
	if err == nil {
		s.replays.graphs++
		left, err := s.spare()
		if s.replays.bytes += free - left; err != nil {
			s.fail(err)
		}
		return true
	}
	g.graph, g.eager = nil, true
	s.replays.refused++
	if log := s.device.options.Logger; log != nil && s.replays.refused == 1 {
		log.Warn("cuda graphs: launches that could not be captured are given one by one",
			"stream", s.name, "error", err)
	}
	return false
}

// spare is how much of the GPU's memory is, if somebody reads what graphs take of it.
func (s *stream) spare() (int64, error) {
	log := s.device.options.Logger
	if log == nil || !log.Enabled(context.Background(), slog.LevelDebug) {
		return 0, nil
	}
	free, _, err := s.device.gpu.Free()
	return free, err
}

// forget ends a segment, if there is one.
func (s *stream) forget(g *segment) {
	if g != nil && g.graph != nil {
		if err := g.graph.Close(); err != nil {
			s.fail(err)
		}
	}
}

// closeGraphs ends all segments.
func (s *stream) closeGraphs() error {
	var errs []error
	for _, g := range s.segments {
		if g.graph != nil {
			errs = append(errs, g.graph.Close())
		}
	}
	if log := s.device.options.Logger; log != nil && len(s.segments) > 0 {
		log.Debug("cuda graphs", "stream", s.name, "graphs", s.replays.graphs,
			"replayed", s.replays.replayed, "refused", s.replays.refused, "bytes", s.replays.bytes)
	}
	return errors.Join(errs...)
}
