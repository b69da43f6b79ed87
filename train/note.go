package train

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
)

// Exchanged is what workers have exchanged.
type Exchanged struct {
	Sent      int64 `json:"sent_bytes"`     // since the start
	Received  int64 `json:"received_bytes"` // likewise
	Saved     int64 `json:"saved_bytes"`    // kept by filters, or sent to nobody
	Full      int64 `json:"full"`           // how often an outbox was at its bound
	Late      int64 `json:"late"`           // updates that were discarded, since they came late
	Summed    int64 `json:"summed"`         // that were added to others' on their way
	Lacked    int64 `json:"lacked"`         // that a replica lacked of what its owner had, at most
	Resent    int64 `json:"resent"`         // sent again to who took the rows of a lost worker over
	Staleness int   `json:"staleness"`      // steps missing of another worker, the most seen
	Slowest   int   `json:"slowest"`        // steps done by the worker that has done the fewest
	Fastest   int   `json:"fastest"`        // and the most
	// Memory is what exchanging took at most of a worker's host memory, beside the plan's,
	// and Bound what it could have; 0: not known before.
	Memory int64 `json:"memory_bytes"`
	Bound  int64 `json:"memory_bound_bytes"`
}

// with is what two workers have exchanged.
func (x Exchanged) with(y Exchanged) Exchanged {
	return Exchanged{Sent: x.Sent + y.Sent, Received: x.Received + y.Received,
		Saved: x.Saved + y.Saved, Full: x.Full + y.Full, Late: x.Late + y.Late,
		Summed: x.Summed + y.Summed, Lacked: max(x.Lacked, y.Lacked), Resent: x.Resent + y.Resent,
		Staleness: max(x.Staleness, y.Staleness),
		Slowest:   min(x.Slowest, y.Slowest), Fastest: max(x.Fastest, y.Fastest),
		Memory: max(x.Memory, y.Memory), Bound: max(x.Bound, y.Bound)}
}

// note is what a worker says of a step.
type note struct {
	stop    bool      // it is to end
	changed bool      // it knows that other workers are there
	save    bool      // it is time for a checkpoint
	fault   bool      // its data have numbers that are not finite
	units   int       // of its batches
	values  []float64 // its loss, and metrics in order of their names
	Exchanged
}

// of adds to what a worker says of a step what came of it.
func (n note) of(e Event, p *Parallel) note {
	n.units, n.values = e.Units, []float64{e.Loss}
	if el := p.Elastic; el != nil {
		n.changed = el.Changed()
	}
	if p.Exchanged != nil {
		n.Exchanged = p.Exchanged()
	}
	n.Slowest += e.Step
	n.Fastest += e.Step
	for _, name := range slices.Sorted(maps.Keys(e.Metrics)) {
		n.values = append(n.values, e.Metrics[name])
	}
	return n
}

// noteWords is how many numbers there are before the values.
const noteWords = 15

// encode gives 64-bit numbers, little-endian.
func (n note) encode() []byte {
	words := []uint64{uint64(flag(n.stop) | flag(n.changed)<<1 | flag(n.fault)<<2 |
		flag(n.save)<<3),
		uint64(n.units), uint64(n.Sent), uint64(n.Received), uint64(n.Saved), uint64(n.Full),
		uint64(n.Staleness), uint64(n.Slowest), uint64(n.Fastest), uint64(n.Memory),
		uint64(n.Bound), uint64(n.Late), uint64(n.Summed), uint64(n.Lacked), uint64(n.Resent)}
	for _, x := range n.values {
		words = append(words, math.Float64bits(x))
	}
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// decode reads what all workers have said of a step, each with so many values.
func decode(says [][]byte, values int) ([]note, error) {
	var all []note
	for rank, b := range says {
		if len(b) != 8*(noteWords+values) {
			return nil, fmt.Errorf("worker %d says %d bytes of a step, %d are expected: its "+
				"program is another version", rank, len(b), 8*(noteWords+values))
		}
		words := make([]uint64, noteWords+values)
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		n := note{stop: words[0]&1 != 0, changed: words[0]&2 != 0, fault: words[0]&4 != 0,
			save:  words[0]&8 != 0,
			units: int(words[1]),
			Exchanged: Exchanged{
				Sent: int64(words[2]), Received: int64(words[3]), Saved: int64(words[4]),
				Full: int64(words[5]), Staleness: int(words[6]), Slowest: int(words[7]),
				Fastest: int(words[8]), Memory: int64(words[9]), Bound: int64(words[10]),
				Late: int64(words[11]), Summed: int64(words[12]), Lacked: int64(words[13]),
				Resent: int64(words[14])}}
		for _, w := range words[noteWords:] {
			n.values = append(n.values, math.Float64frombits(w))
		}
		all = append(all, n)
	}
	return all, nil
}

// fingerprint identifies bytes.
func fingerprint(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

// checksums are four bytes for each variable.
func checksums(s *gomem.Session, vars []graph.Value) ([]byte, error) {
	table := crc32.MakeTable(crc32.Castagnoli)
	var out []byte
	for _, v := range vars {
		sum := uint32(0)
		err := s.Read(v, func(part gomem.Tensor) error {
			sum = crc32.Update(sum, table, part.Data)
			return nil
		})
		if err != nil {
			return nil, err
		}
		out = binary.LittleEndian.AppendUint32(out, sum)
	}
	return out, nil
}

// differ is the number of the first checksum that differs, -1 if none does.
func differ(a, b []byte) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i / 4
		}
	}
	return -1
}
