package svlog

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/gomem/gomem/distrib"
)

// item is a record that is to be written. What it has of numbers is encoded then: until then
// it holds the update itself, which nobody changes.
type item struct {
	record                // without synced; with the body, or what is before the frame
	frame  *distrib.Frame // nil: there is none
	fresh  bool           // it begins a segment
}

// size is how many bytes the record will take.
func (it *item) size() int64 {
	n := it.record.size()
	if it.frame != nil {
		n += int64(distrib.FrameSize(*it.frame))
	}
	return n
}

// append appends the record.
func (it *item) append(b []byte, synced int64) ([]byte, error) {
	from := len(b)
	r := it.record
	r.synced = synced
	b = append(r.appendHead(b), it.body...)
	if it.frame != nil {
		var err error
		if b, err = distrib.AppendFrame(b, *it.frame); err != nil {
			return b[:from], err
		}
	}
	return b, seal(b, from)
}

// update is the record of an update. It keeps it: updates never change.
func update(from distrib.NodeID, at distrib.Clock, ref distrib.Ref, u distrib.Update) *item {
	return &item{record: record{kind: kindUpdate, origin: from, clock: int64(at)},
		frame: &distrib.Frame{Ref: ref, Clock: at, U: u}}
}

// piece is the most bytes of values in one record of a base, unless a row has more.
const piece = 16 << 20

// base is the records that set all rows of parameters, the first of which begins a segment.
// The values are copied.
func base(at distrib.Clock, h *head, ps []*distrib.Param, rule distrib.Rule) []*item {
	text, _ := json.Marshal(h) // strings, bytes and numbers, which there is text for
	items := []*item{{record: record{kind: kindHead, clock: int64(at), body: text}, fresh: true}}
	for i, p := range ps {
		for row := 0; row < p.Rows; {
			n := min(max(1, piece/(4*p.Cols)), p.Rows-row)
			items = append(items, rows(at, distrib.Ref{Param: distrib.ParamID(i), Row: int32(row),
				N: int32(n)}, p, rule))
			row += n
		}
	}
	return items
}

// rows is the record that sets some rows.
func rows(at distrib.Clock, r distrib.Ref, p *distrib.Param, rule distrib.Rule) *item {
	values := append(distrib.Dense(nil), p.Data[int(r.Row)*p.Cols:int(r.Row+r.N)*p.Cols]...)
	return &item{record: record{kind: kindBase, clock: int64(at), body: kept(r, p.Cols, rule)},
		frame: &distrib.Frame{Ref: r, Clock: at, U: values}}
}

// kept is what a rule keeps of rows: how many bytes, and then for each row how many numbers,
// and those.
func kept(r distrib.Ref, cols int, rule distrib.Rule) []byte {
	le := binary.LittleEndian
	b := []byte{0, 0, 0, 0}
	if s, ok := rule.(distrib.Stateful); ok {
		for row := r.Row; row < r.Row+r.N; row++ {
			state := s.Save(nil, r.Param, row, cols)
			b = le.AppendUint32(b, uint32(len(state)))
			for _, v := range state {
				b = le.AppendUint32(b, math.Float32bits(v))
			}
		}
	}
	le.PutUint32(b, uint32(len(b)-4))
	return b
}

// state is the records that set bytes beside the replica. It keeps them.
func state(i int, data []byte) []*item {
	var items []*item
	for at := 0; at == 0 || at < len(data); at += piece {
		part := data[at:min(at+piece, len(data))]
		b := make([]byte, 0, stateHead+len(part))
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
		items = append(items, &item{record: record{kind: kindState, body: append(b, part...)}})
	}
	return items
}

// stateHead is the bytes of a state's record before its own.
const stateHead = 12
