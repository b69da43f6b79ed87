package workers

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/fabric/daemon"
)

// estate is what a worker says of the last group that it was in, when the next one begins.
type estate struct {
	Epoch int64            // of its view; 0: it was in none
	Nodes []distrib.NodeID // of it, ascending
	Bytes map[int]int64    // of what it has to send again to who has the rows of a node, by node
}

// heirs is the end of a group, as those see it who go on.
type heirs struct {
	*between
	old  *part // nil of one who was not there
	says []estate
	last estate // of the newest group that any was in
}

// takeOver gives the variables the rows that replicas have of workers that are gone: all that those
// had folded in but for what the replicas lack of it, and of that what the others send again. All
// workers do it together. The rows of workers that go on are those of the state that all have.
func (b *between) takeOver(ctx context.Context, s *gomem.Session) error {
	h := &heirs{between: b, old: b.member.before}
	if err := h.meet(ctx); err != nil || h.last.Epoch == 0 {
		return err
	}
	numbers := b.part.nodes()
	for _, owner := range h.last.Nodes {
		if slices.Contains(numbers, owner) {
			continue
		}
		heir := h.heir(owner)
		if heir < 0 {
			continue // the rows are those of the state that all have
		}
		if err := h.inherit(ctx, owner, heir); err != nil {
			return err
		}
	}
	for i, v := range b.vars {
		if err := b.put(s, i, v); err != nil {
			return err
		}
	}
	b.member.before = nil
	return nil
}

// meet has all say what they have.
func (h *heirs) meet(ctx context.Context) error {
	var mine estate
	if old := h.old; old != nil {
		mine = estate{Epoch: old.view.Epoch, Nodes: old.nodes(), Bytes: map[int]int64{}}
		slices.Sort(mine.Nodes)
		for _, owner := range mine.Nodes {
			mine.Bytes[int(owner)] = int64(len(packed(old.daemon.Spares(owner))))
		}
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	told, err := h.agree(ctx, text)
	if err != nil {
		return err
	}
	h.says = make([]estate, len(told))
	for rank, b := range told {
		if err := json.Unmarshal(b, &h.says[rank]); err != nil {
			return fmt.Errorf("worker %d is another version: %w", h.part.desk.number(rank), err)
		}
		if h.says[rank].Epoch > h.last.Epoch {
			h.last = h.says[rank]
		}
	}
	return nil
}

// agree waits for what all say.
func (h *heirs) agree(ctx context.Context, says []byte) ([][]byte, error) {
	if err := h.part.desk.Tell(ctx, says); err != nil {
		return nil, err
	}
	return h.part.desk.Hear(ctx)
}

// heir is the rank of who has the rows of a node that is gone; -1: nobody.
func (h *heirs) heir(owner distrib.NodeID) int {
	count := h.member.scheme.options.Replicas
	for _, n := range daemon.Replicas(h.last.Nodes, owner, count) {
		rank := slices.Index(h.part.nodes(), n)
		if rank >= 0 && h.says[rank].Epoch == h.last.Epoch {
			return rank
		}
	}
	return -1
}

// inherit has all send the heir what it may lack, and the heir give all the rows.
func (h *heirs) inherit(ctx context.Context, owner distrib.NodeID, heir int) error {
	self, again := h.part.desk.Rank(), int64(0)
	var mine []byte
	if h.old != nil && h.old.view.Epoch == h.last.Epoch {
		mine = packed(h.old.daemon.Spares(owner))
	}
	for rank, x := range h.says {
		if x.Epoch != h.last.Epoch {
			continue
		}
		b, err := h.spread(ctx, rank, mine, x.Bytes[int(owner)])
		if err != nil {
			return err
		}
		if self == heir {
			n, err := h.adopt(owner, rank, b)
			if err != nil {
				return err
			}
			again += n
		}
	}
	var rows bytes.Buffer
	if self == heir {
		h.member.resent.Add(again)
		h.member.options.Logger.Info("takes over", "epoch", h.part.view.Epoch, "of", owner,
			"resent", again)
		x := distrib.Shard{Node: owner, Rows: h.old.engine.Kept(owner)}
		if _, err := x.WriteTo(&rows); err != nil {
			return err
		}
	}
	told, err := h.agree(ctx, binary.LittleEndian.AppendUint64(nil, uint64(rows.Len())))
	if err != nil {
		return err
	}
	if len(told[heir]) != 8 {
		return errors.New("a worker is another version")
	}
	b, err := h.spread(ctx, heir, rows.Bytes(), int64(binary.LittleEndian.Uint64(told[heir])))
	if err != nil {
		return err
	}
	return h.overlay(b)
}

// spread hands out bytes of one worker, of which all know how many there are.
func (h *heirs) spread(ctx context.Context, from int, mine []byte, n int64) ([]byte, error) {
	var all []byte
	for int64(len(all)) < n {
		at := len(all)
		var says []byte
		if h.part.desk.Rank() == from {
			says = mine[min(at, len(mine)):min(at+portion, len(mine))]
		}
		told, err := h.agree(ctx, says)
		if err != nil {
			return nil, err
		}
		if len(told[from]) == 0 || int64(at+len(told[from])) > n {
			return nil, fmt.Errorf("worker %d gives %d bytes of %d at once",
				h.part.desk.number(from), len(told[from]), n-int64(at))
		}
		all = append(all, told[from]...)
	}
	return all, nil
}

// adopt adds what a worker has sent again to the replica, but for what is in it.
func (h *heirs) adopt(owner distrib.NodeID, rank int, b []byte) (n int64, err error) {
	spares, err := unpacked(b)
	for _, s := range spares {
		is, err := h.old.daemon.Adopt(owner, distrib.NodeID(h.part.desk.number(rank)), s)
		if err != nil {
			return n, err
		}
		if is {
			n++
		}
	}
	return n, err
}

// overlay takes rows.
func (h *heirs) overlay(b []byte) error {
	x, err := distrib.ReadShard(bytes.NewReader(b))
	if err != nil {
		return err
	}
	for _, r := range x.Rows {
		i := slices.IndexFunc(h.params, func(p *distrib.Param) bool { return p.Name == r.Param })
		if i < 0 || !r.In(h.params[i]) {
			return fmt.Errorf("rows [%d, +%d) of %s are handed over, which there are not", r.Row,
				r.N, r.Param)
		}
		copy(h.params[i].Data[int(r.Row)*r.Cols:], r.Data)
	}
	return nil
}

// packed and unpacked are updates as bytes: of each the floor, and two lengths and what is so long.
func packed(all []daemon.Spare) (b []byte) {
	for _, s := range all {
		b = binary.LittleEndian.AppendUint64(b, s.Floor)
		for _, x := range [][]byte{s.Head, s.Body} {
			b = append(binary.LittleEndian.AppendUint32(b, uint32(len(x))), x...)
		}
	}
	return b
}

func unpacked(b []byte) (all []daemon.Spare, err error) {
	short := errors.New("an update that is handed over ends early")
	for len(b) > 0 {
		if len(b) < 8 {
			return all, short
		}
		s := daemon.Spare{Floor: binary.LittleEndian.Uint64(b)}
		b = b[8:]
		for _, to := range []*[]byte{&s.Head, &s.Body} {
			if len(b) < 4 || uint64(len(b)-4) < uint64(binary.LittleEndian.Uint32(b)) {
				return all, short
			}
			n := 4 + int(binary.LittleEndian.Uint32(b))
			*to, b = b[4:n], b[n:]
		}
		all = append(all, s)
	}
	return all, nil
}
