package svlog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"math"

	"github.com/gomem/gomem/distrib"
)

// magic begins every record, "gsvl" in a file.
const magic = 0x6c767367

// headSize is how many bytes of a record are before its body.
const headSize = 36

// kind is what a record says.
type kind byte

const (
	kindHead   kind = iota + 1 // what the segment is of, see head
	kindBase                   // rows are set: what the rule keeps of them, a dense frame
	kindUpdate                 // a frame is folded in
	kindRead                   // the worker takes rows: param, row, n
	kindState                  // bytes beside the replica are set: which, from where on, the bytes
	kindMark                   // clock has been reached; the body is whatever Mark was told
	kindEnd                    // the log was closed in order
	kinds
)

// record is one entry of a log, as it is read.
type record struct {
	kind   kind
	origin distrib.NodeID
	clock  int64
	synced int64 // bytes of the segment that were on the disk before it was written
	body   []byte
}

// size is how many bytes the record takes in a file.
func (r record) size() int64 { return headSize + int64(len(r.body)) }

// appendHead appends a record's head, without length and checksum, which seal fills in.
func (r record) appendHead(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, magic)
	b = append(b, byte(r.kind), 0, 0, 0)
	b = le.AppendUint32(b, uint32(r.origin))
	b = append(b, 0, 0, 0, 0)
	b = le.AppendUint64(b, uint64(r.clock))
	b = le.AppendUint64(b, uint64(r.synced))
	return append(b, 0, 0, 0, 0)
}

// errLarge is of a body whose length has no room in a head. What may be long is cut before.
var errLarge = errors.New("svlog: a record of 4 GiB or more")

// seal fills in length and checksum of the record that begins at from and ends b.
func seal(b []byte, from int) error {
	r := b[from:]
	if int64(len(r)-headSize) > math.MaxUint32 {
		return errLarge
	}
	binary.LittleEndian.PutUint32(r[12:], uint32(len(r)-headSize))
	binary.LittleEndian.PutUint32(r[32:], checksum(r[:headSize], r[headSize:]))
	return nil
}

// checksum is of a head, up to the checksum, and a body.
func checksum(head, body []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // the package's own, made once
	return crc32.Update(crc32.Checksum(head[:32], table), table, body)
}

// errBad says that there is no whole record.
var errBad = errors.New("no record")

// readRecord reads the record at an offset of a file of some size. Memory is taken only for
// what is there.
func readRecord(f io.ReaderAt, at, size int64) (record, error) {
	var head [headSize]byte
	if size-at < headSize {
		return record{}, errBad
	}
	if _, err := f.ReadAt(head[:], at); err != nil {
		return record{}, err
	}
	r, n, ok := parseHead(head[:])
	if !ok || n > size-at-headSize {
		return record{}, errBad
	}
	r.body = make([]byte, n)
	if _, err := f.ReadAt(r.body, at+headSize); err != nil {
		return record{}, err
	}
	if checksum(head[:], r.body) != binary.LittleEndian.Uint32(head[32:]) {
		return record{}, errBad
	}
	return r, nil
}

// parseHead reads a head and how long the body is that follows it.
func parseHead(h []byte) (r record, body int64, ok bool) {
	le := binary.LittleEndian
	r = record{kind: kind(h[4]), origin: distrib.NodeID(le.Uint32(h[8:])),
		clock: int64(le.Uint64(h[16:])), synced: int64(le.Uint64(h[24:]))}
	ok = le.Uint32(h) == magic && r.kind > 0 && r.kind < kinds && h[5]|h[6]|h[7] == 0
	return r, int64(le.Uint32(h[12:])), ok
}

// head is what the first record of a segment says of all that follow.
type head struct {
	Version int      `json:"version"`
	Params  []shape  `json:"params"`
	States  []string `json:"states,omitempty"`
	Meta    []byte   `json:"meta,omitempty"`
}

// shape is a parameter without its values.
type shape struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
	Cols int    `json:"cols"`
}

const version = 1

// shapes are those of a head's parameters.
func (h *head) shapes(id distrib.ParamID) (rows, cols int, ok bool) {
	if id < 0 || int(id) >= len(h.Params) {
		return 0, 0, false
	}
	return h.Params[id].Rows, h.Params[id].Cols, true
}

// parseHead reads what a segment is of.
func readHead(body []byte) (*head, error) {
	h := &head{}
	if err := json.Unmarshal(body, h); err != nil {
		return nil, errors.New("it begins with what is no description")
	}
	if h.Version != version {
		return nil, errors.New("it is of another version")
	}
	for _, p := range h.Params {
		if p.Rows <= 0 || p.Cols <= 0 || p.Rows > math.MaxInt32 || p.Cols > math.MaxInt32 {
			return nil, errors.New("it describes a parameter of no size")
		}
	}
	return h, nil
}

// appendRef appends the body of a read.
func appendRef(b []byte, r distrib.Ref) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(r.Param))
	b = le.AppendUint32(b, uint32(r.Row))
	return le.AppendUint32(b, uint32(r.N))
}

const refSize = 12

// readRef reads it back; !ok if a head's parameters have no such rows.
func (h *head) readRef(b []byte) (r distrib.Ref, ok bool) {
	if len(b) != refSize {
		return r, false
	}
	le := binary.LittleEndian
	r = distrib.Ref{Param: distrib.ParamID(le.Uint32(b)), Row: int32(le.Uint32(b[4:])),
		N: int32(le.Uint32(b[8:]))}
	return r, h.has(r)
}

// has reports whether the parameters have some rows.
func (h *head) has(r distrib.Ref) bool {
	rows, _, ok := h.shapes(r.Param)
	return ok && r.Row >= 0 && r.N > 0 && int(r.Row) <= rows && int(r.N) <= rows-int(r.Row)
}
