package svlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomem/gomem/distrib"
)

// State is what a replica was at a clock.
type State struct {
	At     int64
	Meta   []byte // as of [Log.Describe]
	Says   []byte // as of [Log.Mark]
	Params []*distrib.Param
	Names  []string // of States
	States [][]byte // what was set last; nil: nothing
}

// MissingError says that a log has not what a clock was.
type MissingError struct {
	Dir  string
	At   int64
	Have []int64 // what it has, ascending
}

// Error is one line.
func (e *MissingError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("%s has the log of no clock", e.Dir)
	}
	var runs []string
	for i := 0; i < len(e.Have); {
		from := i
		for i++; i < len(e.Have) && e.Have[i] <= e.Have[i-1]+1; i++ {
		}
		run := fmt.Sprint(e.Have[from])
		if e.Have[from] < e.Have[i-1] {
			run += fmt.Sprintf(" to %d", e.Have[i-1])
		}
		runs = append(runs, run)
	}
	return fmt.Sprintf("%s has no clock %d: it has %s", e.Dir, e.At, strings.Join(runs, ", "))
}

// History is what a directory has the log of.
type History struct {
	dir     string
	numbers []int
	marks   []place // from the newest segment to the oldest, in each the last first
	damage  error   // the newest that was found
}

// place is where a clock was reached.
type place struct {
	clock   int64
	segment int
	offset  int64
}

// Read looks through a log, which may be one that is being written. The error is the file
// system's: what is damaged is found when it is asked for.
func Read(dir string) (*History, error) {
	numbers, err := segmentsOf(dir)
	if err != nil {
		return nil, err
	}
	h := &History{dir: dir, numbers: numbers}
	for i := len(numbers) - 1; i >= 0; i-- {
		var marks []place
		err := visit(dir, numbers, i, func(at int64, r record) error {
			if r.kind == kindMark {
				marks = append(marks, place{r.clock, i, at})
			}
			return nil
		})
		if _, damaged := errors.AsType[*DamageError](err); err != nil && !damaged {
			return nil, err
		}
		if h.damage == nil {
			h.damage = err
		}
		slices.Reverse(marks)
		h.marks = append(h.marks, marks...)
	}
	return h, nil
}

// Has reports whether there is a clock that can be restored.
func (h *History) Has(at int64) bool {
	return slices.ContainsFunc(h.marks, func(p place) bool { return p.clock == at })
}

// Latest is the clock that was reached last. The error is a *[DamageError] if there may be later
// ones that are lost, or a *[MissingError] if there is none.
func (h *History) Latest() (int64, error) {
	switch {
	case h.damage != nil:
		return 0, h.damage
	case len(h.marks) == 0:
		return 0, h.missing(0)
	}
	return h.marks[0].clock, nil
}

func (h *History) missing(at int64) error {
	e := &MissingError{Dir: h.dir, At: at}
	for _, p := range h.marks {
		e.Have = append(e.Have, p.clock)
	}
	slices.Sort(e.Have)
	return e
}

// visit reads a segment.
func visit(dir string, numbers []int, i int, yield func(int64, record) error) error {
	s, closing, err := reading(dir, numbers, i)
	if err != nil {
		return err
	}
	_, err = s.each(func(at int64, r record) error {
		err := yield(at, r)
		if _, ours := err.(*replayError); ours {
			return s.damage(at, r.clock, err.Error())
		}
		return err
	})
	return errors.Join(err, closing())
}

// Restore gives what a replica was at a clock: the base of its segment, and then every update
// through the same rule in the same order, so that the bits are those that it had. The rule is a
// fresh one like the log's; nil adds. Of a clock that was reached more than once, as when a run
// has gone back, it is the last time. The error is a *[DamageError], a *[MissingError] or of the
// file system.
func (h *History) Restore(at int64, rule distrib.Rule) (*State, error) {
	i := slices.IndexFunc(h.marks, func(p place) bool { return p.clock == at })
	switch {
	case i >= 0:
		return h.replay(h.marks[i], rule)
	case h.damage != nil:
		return nil, h.damage
	}
	return nil, h.missing(at)
}

// errStop ends a replay where it is to end.
var errStop = errors.New("here")

// replay replays a segment up to a mark.
func (h *History) replay(to place, rule distrib.Rule) (*State, error) {
	p := &replay{rule: rule, state: &State{}}
	err := visit(h.dir, h.numbers, to.segment, func(at int64, r record) error {
		if err := p.take(r); err != nil {
			return err
		}
		if at == to.offset {
			return errStop
		}
		return nil
	})
	if !errors.Is(err, errStop) {
		return nil, err
	}
	return p.state, nil
}

// replay makes a replica anew.
type replay struct {
	head  *head
	rule  distrib.Rule
	live  [][]float32 // values of parameters
	state *State      // whose parameters are what was read of them
}

// replayError says that a whole record makes no sense.
type replayError struct{ what string }

// Error is one line.
func (e *replayError) Error() string { return e.what }

func senseless(format string, args ...any) error {
	return &replayError{fmt.Sprintf(format, args...)}
}

// take does what a record says.
func (p *replay) take(r record) error {
	if p.head == nil && r.kind != kindHead {
		return senseless("a segment begins without a description")
	}
	switch r.kind {
	case kindHead:
		return p.begin(r.body)
	case kindBase:
		return p.set(r.body)
	case kindUpdate:
		return p.frame(r.body, func(f distrib.Frame) error { return p.fold(r, f) })
	case kindRead:
		ref, ok := p.head.readRef(r.body)
		if !ok {
			return senseless("rows are read that there are not")
		}
		copy(p.rows(p.state.Params[ref.Param].Data, ref), p.rows(p.live[ref.Param], ref))
	case kindState:
		return p.keep(r.body)
	case kindMark:
		if !p.whole() {
			return senseless("a clock comes before all values")
		}
		p.state.At, p.state.Says = r.clock, r.body
	}
	return nil
}

func (p *replay) begin(body []byte) error {
	h, err := readHead(body)
	if err != nil {
		return senseless("%v", err)
	}
	p.head, p.state.Meta, p.state.Names = h, h.Meta, h.States
	p.state.States = make([][]byte, len(h.States))
	p.live, p.state.Params = make([][]float32, len(h.Params)), nil
	for _, s := range h.Params {
		p.state.Params = append(p.state.Params, &distrib.Param{Name: s.Name, Rows: s.Rows,
			Cols: s.Cols})
	}
	return nil
}

// rows are some of a parameter's values, nil if they have not come.
func (p *replay) rows(of []float32, r distrib.Ref) []float32 {
	cols := p.head.Params[r.Param].Cols
	if int(r.Row+r.N)*cols > len(of) {
		return nil
	}
	return of[int(r.Row)*cols : int(r.Row+r.N)*cols]
}

// whole reports whether all values have come.
func (p *replay) whole() bool {
	for i, q := range p.head.Params {
		if len(p.live[i]) < q.Rows*q.Cols {
			return false
		}
	}
	return true
}

// frame decodes the one frame that a body is.
func (p *replay) frame(body []byte, yield func(distrib.Frame) error) error {
	n := 0
	err := distrib.Decode(body, p.head.shapes, func(f distrib.Frame) error {
		if n++; n > 1 || !p.head.has(f.Ref) {
			return senseless("an update of rows that there are not, or several in one record")
		}
		return yield(f)
	})
	if bad, ok := errors.AsType[*distrib.FrameError](err); ok {
		return senseless("%v", bad)
	}
	return err
}

// fold folds an update in as it was folded in then.
func (p *replay) fold(r record, f distrib.Frame) error {
	w, cols := p.rows(p.live[f.Ref.Param], f.Ref), p.head.Params[f.Ref.Param].Cols
	if w == nil {
		return senseless("an update comes before the values that it changes")
	}
	if p.rule == nil {
		f.U.AddTo(w, cols, 1)
		return nil
	}
	p.rule.Apply(w, cols, &distrib.Entry{Ref: f.Ref, Dest: r.origin, Made: f.Clock, U: f.U})
	return nil
}

// set sets rows, and what the rule keeps of them.
func (p *replay) set(body []byte) error {
	if len(body) < 4 {
		return senseless("a base without values")
	}
	n := int64(binary.LittleEndian.Uint32(body))
	if n > int64(len(body)-4) {
		return senseless("a base that ends early")
	}
	kept := body[4 : 4+n]
	return p.frame(body[4+n:], func(f distrib.Frame) error {
		d, ok := f.U.(distrib.Dense)
		if !ok {
			return senseless("a base whose values are not all there")
		}
		q, live := p.state.Params[f.Ref.Param], &p.live[f.Ref.Param]
		if int(f.Ref.Row)*q.Cols != len(*live) {
			return senseless("a base whose rows do not follow each other")
		}
		// A description alone takes no memory: there is no more of a replica than has come.
		*live, q.Data = append(*live, d...), append(q.Data, d...)
		return p.load(f.Ref, kept)
	})
}

// load gives the rule what it kept of rows.
func (p *replay) load(r distrib.Ref, kept []byte) error {
	s, ok := p.rule.(distrib.Stateful)
	if ok == (len(kept) == 0) {
		return senseless("the log was written with another rule")
	}
	for row := r.Row; ok && row < r.Row+r.N; row++ {
		if len(kept) < 4 || uint64(binary.LittleEndian.Uint32(kept))*4 > uint64(len(kept)-4) {
			return senseless("what a rule keeps ends early")
		}
		n := 4 * int(binary.LittleEndian.Uint32(kept))
		state := make([]float32, n/4)
		for i := range state {
			state[i] = math.Float32frombits(binary.LittleEndian.Uint32(kept[4+4*i:]))
		}
		if err := s.Load(r.Param, row, p.head.Params[r.Param].Cols, state); err != nil {
			return senseless("%v", err)
		}
		kept = kept[4+n:]
	}
	return nil
}

// keep sets bytes beside the replica, a piece at a time.
func (p *replay) keep(body []byte) error {
	if len(body) < stateHead {
		return senseless("a state without a name")
	}
	i, at := binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint64(body[4:])
	if int64(i) >= int64(len(p.state.States)) {
		return senseless("there is no state %d", i)
	}
	s := p.state.States[i]
	if at > uint64(len(s)) {
		return senseless("a state begins in the middle")
	}
	p.state.States[i] = append(s[:at], body[stateHead:]...)
	return nil
}
