package distrib

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// Shard is the rows of one owner as of a clock: they hold all updates stamped less than
// it and no others. The shards of all owners at a clock are a checkpoint.
type Shard struct {
	Epoch int64
	Node  NodeID
	Clock Clock
	Rows  []SavedRows
}

// SavedRows is rows of a parameter that lie together.
type SavedRows struct {
	Param string
	Cols  int
	Row   int32
	N     int32
	Data  []float32   // N*Cols; nil if the parameter has a kind
	State [][]float32 // of each row, what its rule keeps; nil if nothing
	Kind  string      // the name of the parameter's [Kind], "" if it has none
	Cells []Update    // each row, if it has one
}

// Saved reports why a plan has no checkpoints of a clock (Config.Saves): nobody owns rows that have
// all updates of the clocks before.
func (p *Plan) Saved() error {
	if p.Topology == nil {
		return nil
	}
	if _, owned := p.Topology.Owner(Ref{N: 1}); !owned {
		return errors.New("every worker has a replica, and nobody owns rows that would be those " +
			"of one clock: want servers or sums")
	}
	return nil
}

// save keeps the rows at each clock that is to be saved and that everybody has now
// passed, by folding in what was held back clock by clock.
func (s *server) save() {
	e := s.lane.e
	if e.cfg.Saves == nil {
		return
	}
	end := s.clocks.min()
	if end == endOfTime {
		end = s.latest + 1
	}
	for k := s.saved + 1; k <= end; k++ {
		if !e.cfg.Saves(k) {
			continue
		}
		s.release(func(c Clock) bool { return c < k })
		if s.sums != nil {
			s.sums.end(k, children(s.lane, e.self))
		} else {
			s.keep(k)
		}
	}
	s.saved = max(s.saved, end)
}

// saveAt keeps the rows of a replica, once the sums of all clocks before k are in.
func (s *server) saveAt(k Clock) {
	if e := s.lane.e; e.cfg.Saves != nil && k < endOfTime && e.cfg.Saves(k) {
		s.keep(k)
	}
}

// keep copies this node's rows of the plan and saves them while the work goes on. A save
// that fails is reported and counted; the next one is tried.
func (s *server) keep(k Clock) {
	e := s.lane.e
	shard := &Shard{Epoch: e.cfg.View.Epoch, Node: e.self, Clock: k}
	for _, p := range s.lane.params {
		for _, r := range p.runs(p.whole()) {
			if r.owner == e.self {
				shard.Rows = append(shard.Rows, p.saved(r.row, r.n))
			}
		}
	}
	e.saving.Add(1)
	go func() {
		defer e.saving.Done()
		err := e.cfg.Save(shard)
		e.mu.Lock()
		defer e.mu.Unlock()
		if err != nil {
			e.audit.Unsaved++
			e.cfg.Log(fmt.Sprintf("node %d could not save its rows at clock %d: %v", e.self, k,
				err))
			return
		}
		e.audit.Saved++
	}()
}

// Restore writes the rows of shards of one clock over the values of parameters, before
// they are attached: all of them, whoever will own them. It returns the clock, which
// Config.Start must be. Every row must be there once.
func Restore(ps []*Param, shards []*Shard) (Clock, error) {
	if len(shards) == 0 {
		return 0, fmt.Errorf("distrib: no shards to restore")
	}
	have := map[string]bitset{}
	by := map[string]*Param{}
	for _, p := range ps {
		have[p.Name], by[p.Name] = newBitset(p.Rows), p
	}
	for _, s := range shards {
		if s.Clock != shards[0].Clock {
			return 0, fmt.Errorf("distrib: shards of clocks %d and %d", shards[0].Clock, s.Clock)
		}
		for _, r := range s.Rows {
			p := by[r.Param]
			if p == nil || r.N == 0 || !r.In(p) {
				return 0, fmt.Errorf("distrib: the shard of node %d has rows [%d, +%d) of %s, "+
					"which no parameter has", s.Node, r.Row, r.N, r.Param)
			}
			if got := have[r.Param].next(int(r.Row), int(r.Row+r.N)); got < int(r.Row+r.N) {
				return 0, fmt.Errorf("distrib: row %d of %s is in two shards", got, r.Param)
			}
			have[r.Param].setRange(int(r.Row), int(r.N))
			if p.Kind == nil {
				copy(p.Data[int(r.Row)*p.Cols:], r.Data)
				continue
			}
			if p.Cells == nil {
				p.Cells = make([]Update, p.Rows)
			}
			copy(p.Cells[r.Row:], r.Cells)
		}
	}
	for _, p := range ps {
		if n := have[p.Name].count(); n != p.Rows {
			return 0, fmt.Errorf("distrib: the shards have %d rows of %s, which has %d", n, p.Name,
				p.Rows)
		}
	}
	return shards[0].Clock, nil
}

// loadState gives rules back what they kept of a node's rows.
func (t *tables) loadState(shards []*Shard, self NodeID) error {
	for _, p := range t.params {
		rule, ok := p.lane.plan.Rule.(Stateful)
		if !ok {
			continue
		}
		for _, s := range shards {
			for _, r := range s.Rows {
				if r.Param != p.name {
					continue
				}
				for i, state := range r.State {
					row := r.Row + int32(i)
					if p.lane.mode != flow && p.owner[row] != self {
						continue
					}
					if err := rule.Load(p.id, row, p.cols, state); err != nil {
						return fmt.Errorf("distrib: row %d of %s: %w", row, p.name, err)
					}
				}
			}
		}
	}
	return nil
}

// Interval is how long to work between two checkpoints, by Young's formula: one takes
// save, and one of n machines fails every mtbf/n.
func Interval(save, mtbf time.Duration, n int) time.Duration {
	return time.Duration(math.Sqrt(2 * float64(save) * float64(mtbf) / float64(max(n, 1))))
}

// A shard in bytes, little endian: magic, version, epoch, node, clock, number of runs;
// for each the parameter's name, cols, row, n, the rows, and what its rule keeps of each;
// a CRC-32C of all that. Where a parameter has a kind, the version is 2: behind every name is that
// of the kind, or none, and the rows of a kind are each how it is written, see the wire format's
// kinds of bodies, its bytes, and these.
const (
	shardMagic   = 0x6d67_7368
	shardVersion = 1
	shardKinds   = 2
	mostName     = 1 << 12
)

// version is the least that has what a shard has.
func (s *Shard) version() uint64 {
	for _, r := range s.Rows {
		if r.Kind != "" {
			return shardKinds
		}
	}
	return shardVersion
}

// WriteTo writes the shard.
func (s *Shard) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	le := binary.LittleEndian
	version := s.version()
	head := []uint64{shardMagic, version, uint64(s.Epoch), uint64(s.Node), uint64(s.Clock),
		uint64(len(s.Rows))}
	for _, v := range head {
		b.Write(le.AppendUint64(nil, v))
	}
	for _, r := range s.Rows {
		writeName(&b, r.Param)
		if version == shardKinds {
			writeName(&b, r.Kind)
		}
		for _, v := range []int{r.Cols, int(r.Row), int(r.N), len(r.State)} {
			b.Write(le.AppendUint32(nil, uint32(v)))
		}
		writeFloats(&b, r.Data)
		if err := writeCells(&b, r.Cells); err != nil {
			return 0, fmt.Errorf("distrib: a shard of %s: %w", r.Param, err)
		}
		for _, state := range r.State {
			b.Write(le.AppendUint32(nil, uint32(len(state))))
			writeFloats(&b, state)
		}
	}
	b.Write(le.AppendUint32(nil, crc32.Checksum(b.Bytes(), crc32.MakeTable(crc32.Castagnoli))))
	return b.WriteTo(w)
}

func writeName(b *bytes.Buffer, name string) {
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(name))))
	b.WriteString(name)
}

func writeCells(b *bytes.Buffer, cells []Update) error {
	for _, u := range cells {
		kind, err := kindOf(u)
		if err != nil {
			return err
		}
		b.WriteByte(kind)
		b.Write(binary.LittleEndian.AppendUint32(nil, uint32(u.WireSize())))
		b.Write(u.AppendWire(nil))
	}
	return nil
}

func writeFloats(b *bytes.Buffer, x []float32) {
	var word [4]byte
	for _, v := range x {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(v))
		b.Write(word[:])
	}
}

// ReadShard reads what [Shard.WriteTo] wrote. Memory is taken only for what is there. The kinds are
// those of one's own that rows in it may have, beside [SparseRows] and [IntRows]. The error is a
// *[FrameError] if it is damaged, or has rows of another kind.
func ReadShard(r io.Reader, kinds ...Kind) (*Shard, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if len(b) < 6*8+4 || le.Uint64(b) != shardMagic || le.Uint64(b[8:])-1 >= shardKinds {
		return nil, badFrame("these bytes are no shard of a checkpoint")
	}
	body, sum := b[:len(b)-4], le.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != sum {
		return nil, badFrame("a shard of a checkpoint is damaged")
	}
	if le.Uint64(b[24:]) > math.MaxInt32 {
		return nil, badFrame("a shard of node %d", le.Uint64(b[24:]))
	}
	s := &Shard{Epoch: int64(le.Uint64(b[16:])), Node: NodeID(le.Uint64(b[24:])),
		Clock: Clock(le.Uint64(b[32:]))}
	in := reader{b: body[48:]}
	known := append([]Kind{SparseRows{}, IntRows{}}, kinds...)
	if le.Uint64(b[8:]) == shardVersion {
		known = nil
	}
	for n := le.Uint64(b[40:]); n > 0 && !in.short; n-- {
		rows, err := in.rows(known)
		if err != nil {
			return nil, err
		}
		s.Rows = append(s.Rows, rows)
	}
	if in.short || len(in.b) > 0 || s.version() != le.Uint64(b[8:]) {
		return nil, badFrame("a shard of a checkpoint has another length than it says")
	}
	return s, nil
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) floats(n uint64) []float32 {
	b := r.take(4 * n)
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}

func (r *reader) name() string {
	n := r.uint32()
	if n > mostName {
		r.short = true
		return ""
	}
	return string(r.take(uint64(n)))
}

// rows reads a run of rows, which may be of some kinds; of none if these are nil.
func (r *reader) rows(kinds []Kind) (SavedRows, error) {
	var s SavedRows
	if s.Param = r.name(); kinds != nil {
		s.Kind = r.name()
	}
	s.Cols, s.Row, s.N = int(r.uint32()), int32(r.uint32()), int32(r.uint32())
	states := r.uint32()
	if s.Row < 0 || s.N < 0 || states != 0 && int64(states) != int64(s.N) {
		r.short = true
		return s, nil
	}
	if s.Kind != "" {
		r.short = r.short || states != 0 // rules keep nothing of rows that they only add to
		return s, r.cells(&s, kinds)
	}
	// What is not there is refused before its bytes are counted, which may be more than 64
	// bits count.
	numbers := uint64(s.N) * uint64(s.Cols)
	if numbers > uint64(len(r.b)) {
		r.short = true
		return s, nil
	}
	s.Data = r.floats(numbers)
	for ; states > 0 && !r.short; states-- {
		s.State = append(s.State, r.floats(uint64(r.uint32())))
	}
	return s, nil
}

// cells reads the rows of a kind.
func (r *reader) cells(s *SavedRows, kinds []Kind) error {
	var own Kind
	for _, k := range kinds {
		if k.Name() == s.Kind {
			own = k
		}
	}
	if own == nil {
		return badFrame("rows of %s are of kind %.60q, which is not known here", s.Param, s.Kind)
	}
	for range s.N {
		kind := r.byte()
		body := r.take(uint64(r.uint32()))
		if r.short {
			return nil
		}
		u, err := decodeRow(own, kind, F32, 1, s.Cols, body)
		if err != nil {
			return err
		}
		s.Cells = append(s.Cells, u)
	}
	return nil
}

// In reports whether rows are some of a parameter's, as many as they say.
func (r *SavedRows) In(p *Param) bool { return r.fits(p.Rows, p.Cols, p.Kind) }

// fits reports whether rows are of a parameter of so many.
func (r *SavedRows) fits(rows, cols int, kind Kind) bool {
	if r.Row < 0 || r.N < 0 || int64(r.Row)+int64(r.N) > int64(rows) {
		return false
	}
	if kind == nil {
		return r.Kind == "" && r.Cols == cols && len(r.Data) == int(r.N)*cols
	}
	return r.Kind == kind.Name() && r.Cols == cols && len(r.Cells) == int(r.N)
}
