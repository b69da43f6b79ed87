package workers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/svlog"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/train"
)

// Logging has a member keep a log of updates, from which a checkpoint of any step is made.
type Logging struct {
	Dir  string // in which each worker has a directory of its own; "": none is kept
	Keep int    // bases that are kept; 0: one
}

// logOf is the directory of a worker's log.
func logOf(dir string, rank int) string {
	return filepath.Join(dir, fmt.Sprintf("worker-%d", rank))
}

// Logged are the workers that a directory has logs of, by rank.
func Logged(dir string) (ranks []int) {
	files, _ := os.ReadDir(dir) // where there are none, there is no log
	for _, f := range files {
		digits, ok := strings.CutPrefix(f.Name(), "worker-")
		rank, err := strconv.Atoi(digits)
		if ok && err == nil && logOf("", rank) == f.Name() && svlog.Exists(logOf(dir, rank)) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Logs reports whether workers of a scheme fold each other's updates into values of their own,
// which can be logged.
func (s Scheme) Logs() bool {
	if s.Plan == nil {
		return false
	}
	switch s.Plan.Topology.(type) {
	case *distrib.RandomMulticast, *distrib.TurnMulticast, *distrib.FixedMulticast, *distrib.All,
		*distrib.Exponential, *distrib.Halton:
		return true
	}
	return false
}

// journal is a member's log: what its engine tells, and beside it the variables that are not kept
// in step. It is a [train.Journal].
type journal struct {
	*svlog.Log
	shared func(graph.Value) bool
	own    []graph.Value
}

// open opens a member's log, if it is to keep one.
func (m *Member) open() (*journal, error) {
	o := m.options.Logging
	if o.Dir == "" {
		return nil, nil
	}
	log, err := svlog.Open(logOf(o.Dir, m.Rank()), svlog.Options{Keep: o.Keep,
		Group: m.group(m.graph), Warn: m.options.Log})
	if err != nil {
		return nil, fmt.Errorf("the log of updates: %w", err)
	}
	return &journal{Log: log, shared: train.Learnt(m.graph)}, nil
}

// Begin says what the log is of.
func (j *journal) Begin(about []byte, s *gomem.Session) error {
	var names []string
	for _, v := range s.Variables() {
		if !j.shared(v) {
			j.own, names = append(j.own, v), append(names, v.Node.Name)
		}
	}
	j.Describe(about, names...)
	return nil
}

// Mark notes what the other variables are, and that a step has ended.
func (j *journal) Mark(step int, changed []byte, s *gomem.Session) error {
	for i, v := range j.own {
		x, err := s.Get(v)
		if err != nil {
			return err
		}
		j.State(i, x.Data)
	}
	j.Log.Mark(int64(step), changed)
	return nil
}

// close ends the log, which has said itself what it could not write.
func (j *journal) close() {
	if j != nil {
		_ = j.Log.Close()
	}
}

// modest is the most bytes that are written to a log at once.
const modest = 64 << 20

// group is how many bytes are written at once: no more than all variables are.
func (m *Member) group(g *graph.Graph) int64 { return min(modest, bytesOfAll(g)) }

func bytesOfAll(g *graph.Graph) (n int64) {
	for _, v := range g.Variables() {
		n += v.Out[0].Bytes()
	}
	return n
}

// logging is the most that a log holds at a time for n workers: a group and two bases, and what
// is told between two ticks, which is the variables and what the others are ahead by.
func (m *Member) logging(g *graph.Graph, n int) int64 {
	if m.options.Logging.Dir == "" {
		return 0
	}
	return m.group(g) + int64(4+(m.scheme.lag()+1)*n)*bytesOfAll(g)
}

// Restored is what a checkpoint was made of.
type Restored struct {
	train.Checkpoint
	Missing []int // workers whose logs do not have the step
}

// Restore writes to a directory the checkpoint of a step, of the logs in another one; a negative
// step is the latest.
func Restore(from string, step int, to string) (r Restored, err error) {
	logs, err := histories(from)
	if err != nil {
		return r, err
	}
	at := int64(step)
	if step < 0 {
		if at, err = latest(logs); err != nil {
			return r, err
		}
	}
	all, missing := []train.Replica(nil), []int{}
	for rank, h := range logs {
		replica, err := replica(h, rank, at)
		if _, lacks := errors.AsType[*svlog.MissingError](err); lacks && rank > 0 {
			missing = append(missing, rank)
			continue
		}
		if err != nil {
			return r, err
		}
		all = append(all, replica)
	}
	r.Checkpoint, err = train.Assemble(to, all)
	r.Missing = slices.DeleteFunc(missing, func(rank int) bool { return rank >= r.Workers })
	return r, err
}

// histories are the logs of all workers, up to the last that there is one of.
func histories(dir string) ([]*svlog.History, error) {
	ranks := Logged(dir)
	most := -1
	for _, rank := range ranks {
		most = max(most, rank)
	}
	if most < 0 {
		return nil, fmt.Errorf("%s has no log of updates: give what --svlog of a run named", dir)
	}
	all := make([]*svlog.History, most+1)
	for rank := range all {
		h, err := svlog.Read(logOf(dir, rank))
		if err != nil && (rank == 0 || !errors.Is(err, os.ErrNotExist)) {
			return nil, err
		}
		all[rank] = h
	}
	return all, nil
}

// latest is the last step that all logs have, or that the first worker's has, if that has
// removed it.
func latest(logs []*svlog.History) (int64, error) {
	first, err := logs[0].Latest()
	if err != nil {
		return 0, err
	}
	least := first
	for _, h := range logs[1:] {
		if h == nil {
			continue
		}
		at, err := h.Latest()
		if err != nil {
			return 0, err
		}
		least = min(least, at)
	}
	if !logs[0].Has(least) {
		return first, nil
	}
	return least, nil
}

// replica is what a worker had after a step. No history has nothing.
func replica(h *svlog.History, rank int, at int64) (train.Replica, error) {
	if h == nil {
		return train.Replica{}, &svlog.MissingError{At: at}
	}
	s, err := h.Restore(at, nil)
	if err != nil {
		return train.Replica{}, err
	}
	r := train.Replica{Rank: rank, About: s.Meta, Changed: s.Says, Values: map[string][]byte{}}
	for _, p := range s.Params {
		b := make([]byte, 0, 4*len(p.Data))
		for _, v := range p.Data {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		r.Values[p.Name] = b
	}
	for i, name := range s.Names {
		r.Values[name] = s.States[i]
	}
	return r, nil
}
