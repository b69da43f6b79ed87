package candidates

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomem/gomem/internal/count"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
)

// Log is what became of each candidate that planning looked at, in the order in which that was
// known: what it needs, as far as that had to be worked out, and why it lost. A candidate that is
// looked at again keeps its entry, which says what became of it last. A log is for people, and
// nothing is decided by it. The zero value is empty; goroutines may share one.
type Log struct {
	mu      sync.Mutex
	entries []Entry
	places  map[Entry]int // of entries that are of one candidate, by its names alone
}

// Entry is what became of a candidate, or of all of a graph's.
type Entry struct {
	Graph     string        // how it was made of the model's: "fused", "cut to 1/4", "plain"
	Target    string        // "": all of them
	Candidate string        // as its plan's title has it; "": all of them
	Need      lower.Need    // in bytes by space; 0: not worked out
	Packed    bool          // Need is what it needs; if not, it needs at least that
	Step      time.Duration // how long a step takes, by prices; 0: not worked out
	Timed     bool          // Step is how long it takes; if not, it takes at least that
	Fate      string        // what became of it
}

// The fates that are not a shortage of memory or time.
const (
	Taken = "taken"
	fits  = "fits, another is taken"
)

// WithLog has those who plan under a context write down in a log what becomes of candidates.
func WithLog(ctx context.Context, l *Log) context.Context {
	return context.WithValue(ctx, logKey{}, scribe{log: l})
}

// LogOf is the log of a context, or a new one if it has none.
func LogOf(ctx context.Context) *Log {
	if l := scribeOf(ctx).log; l != nil {
		return l
	}
	return new(Log)
}

// OfGraph has entries be those of a graph that is made in some manner.
func OfGraph(ctx context.Context, name string) context.Context {
	s := scribeOf(ctx)
	if s.log == nil {
		return ctx
	}
	s.about.Graph = name
	return context.WithValue(ctx, logKey{}, s)
}

// Note writes down what became of all candidates of the context's graph.
func Note(ctx context.Context, format string, args ...any) {
	if s := scribeOf(ctx); s.log != nil {
		s.note(Entry{Fate: fmt.Sprintf(format, args...)})
	}
}

// Entries are a copy of the log.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// WriteTo prints an entry a line; ">=" says that a number is a bound.
//
//	candidate fused train device=1048576 host>=4096 step=81234ns taken : policy=thesis ...
func (l *Log) WriteTo(w io.Writer) (int64, error) {
	b := count.NewWriter(w)
	for _, e := range l.Entries() {
		fmt.Fprintln(b, e)
	}
	return b.Done()
}

// String is the entry in a line.
func (e Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "candidate %s", e.Graph)
	if e.Target != "" {
		fmt.Fprintf(&b, " %s", e.Target)
	}
	for id, bytes := range e.Need {
		if bytes > 0 {
			fmt.Fprintf(&b, " %s%s%d", space.ID(id), relation(e.Packed), bytes)
		}
	}
	if e.Step > 0 {
		fmt.Fprintf(&b, " step%s%dns", relation(e.Timed), e.Step.Nanoseconds())
	}
	fmt.Fprintf(&b, " %s", e.Fate)
	if e.Candidate != "" {
		fmt.Fprintf(&b, " : %s", e.Candidate)
	}
	return b.String()
}

// relation is how a number is to what it is said of.
func relation(exact bool) string {
	if exact {
		return "="
	}
	return ">="
}

// add writes an entry down in the place of the candidate's.
func (l *Log) add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := Entry{Graph: e.Graph, Target: e.Target, Candidate: e.Candidate}
	at, known := l.places[names]
	if known && e.Candidate != "" {
		l.entries[at] = e
		return
	}
	if l.places == nil {
		l.places = map[Entry]int{}
	}
	l.places[names] = len(l.entries)
	l.entries = append(l.entries, e)
}

// logKey is the key of a context's scribe.
type logKey struct{}

// scribe writes down what becomes of the candidates of a graph, or of a target. The zero value
// writes nothing.
type scribe struct {
	log   *Log
	about Entry // what all its entries say
}

// scribeOf is the scribe of a context. One that is nil is refused by who plans.
func scribeOf(ctx context.Context) scribe {
	if ctx == nil {
		return scribe{}
	}
	s, _ := ctx.Value(logKey{}).(scribe)
	return s
}

// of is the scribe of a target.
func (s scribe) of(target string) scribe {
	s.about.Target = target
	return s
}

// note completes an entry and writes it down.
func (s scribe) note(e Entry) {
	if s.log != nil {
		e.Graph, e.Target = s.about.Graph, s.about.Target
		s.log.add(e)
	}
}

// over writes down that a candidate takes too much: what it needs at least, or exactly.
func (s scribe) over(w Candidate, n lower.Need, packed bool) {
	if s.log == nil {
		return
	}
	var short []string
	for id, most := range w.options.Budgets() {
		if n[id] > most {
			short = append(short, fmt.Sprintf("%d bytes of %s", n[id]-most, space.ID(id)))
		}
	}
	s.note(Entry{Candidate: w.title(), Need: n, Packed: packed,
		Fate: "is over the budget by " + strings.Join(short, " and ")})
}

// slow writes down that a step of a candidate takes at least some time, and no less than a limit.
func (s scribe) slow(candidate string, takes, limit time.Duration) {
	if s.log != nil {
		s.note(Entry{Candidate: candidate, Step: takes, Fate: slower(limit)})
	}
}

// slower is the fate of what takes no less than a limit.
func slower(limit time.Duration) string {
	return fmt.Sprintf("is no faster than %dns", limit.Nanoseconds())
}

// drawn writes down what became of a plan that has addresses.
func (s scribe) drawn(f *Drawn, fate string) {
	if s.log != nil {
		s.note(Entry{Candidate: f.name(), Need: f.sketch.Need, Packed: true, Step: f.time,
			Timed: true, Fate: fate})
	}
}
