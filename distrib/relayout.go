package distrib

import "bytes"

// relayout prepares every plan for the new view, and says what rows go to whom.
func (vs *views) relayout(v View, m *move, base Clock) (map[NodeID][]*parcel, error) {
	joined := func(id NodeID) bool { return !contains(m.stay, id) }
	shards := map[NodeID][]SavedRows{}
	var before []*param
	for _, p := range vs.e.params {
		q := *p
		before = append(before, &q)
	}
	vs.e.enter(v)
	for _, id := range m.stay {
		if vs.e.mail.links[id] == nil {
			vs.e.mail.links[id] = newLink() // of who leaves: its rows are still to come
		}
	}
	vs.e.mail.out.unacked, vs.e.mail.out.queued = 0, 0
	vs.e.mail.out.bound = 0
	vs.e.chooseOutbox()
	for id := range vs.e.mail.lost {
		if !v.has(id) {
			delete(vs.e.mail.lost, id)
		}
	}
	for _, l := range vs.e.lanes {
		if err := l.rebind(v, base); err != nil {
			return nil, err
		}
	}
	sponsor := m.stay[0] == vs.e.self
	for i, p := range vs.e.params {
		was := before[i]
		if p.lane.mode == served {
			vs.moveRows(was, p, shards)
			continue
		}
		for _, id := range vs.e.mail.all {
			if sponsor && id != vs.e.self && (joined(id) || m.replicas) {
				shards[id] = append(shards[id], p.saved(0, int32(p.rows)))
			}
		}
	}
	for _, l := range vs.e.lanes {
		l.begin(vs.clockMarks(m, base))
	}
	return vs.parcels(shards, base)
}

// moveRows keeps the rows that stay here, and collects those that go.
func (vs *views) moveRows(was, p *param, shards map[NodeID][]SavedRows) {
	rule, stateful := p.lane.plan.Rule.(Stateful)
	for _, r := range p.runs(p.whole()) {
		for row := r.row; row < r.row+r.n; row++ {
			if was.slot[row] < 0 {
				continue
			}
			n := int32(1)
			for row+n < r.row+r.n && was.slot[row+n] >= 0 {
				n++
			}
			rows := was.saved(row, n)
			if r.owner == vs.e.self {
				p.master.load(int(p.slot[row]), rows)
				copy(p.folded[p.slot[row]:], was.folded[was.slot[row]:was.slot[row]+n])
			} else {
				shards[r.owner] = append(shards[r.owner], rows)
				for i := row; stateful && i < row+n; i++ {
					rule.Drop(p.id, i)
				}
			}
			row += n - 1
		}
	}
}

// parcels cuts rows into messages.
func (vs *views) parcels(shards map[NodeID][]SavedRows,
	at Clock) (map[NodeID][]*parcel, error) {
	out := map[NodeID][]*parcel{}
	for id, rows := range shards {
		for _, r := range rows {
			for _, part := range r.cut(vs.e.cfg.Message) {
				s := &Shard{Epoch: vs.e.cfg.View.Epoch, Node: vs.e.self, Clock: at,
					Rows: []SavedRows{part}}
				var b bytes.Buffer
				if _, err := s.WriteTo(&b); err != nil {
					return nil, err
				}
				vs.e.audit.Moved += int64(part.N)
				out[id] = append(out[id], &parcel{head: header{kind: kindMoved, clock: at},
					body: [][]byte{b.Bytes()}})
			}
		}
	}
	return out, nil
}

// cut makes runs of at most so many bytes, but one row.
func (r SavedRows) cut(most int) []SavedRows {
	var out []SavedRows
	for i := int32(0); i < r.N; {
		n := r.fit(i, most)
		part := SavedRows{Param: r.Param, Cols: r.Cols, Row: r.Row + i, N: n, Kind: r.Kind}
		if r.Kind == "" {
			part.Data = r.Data[int(i)*r.Cols : int(i+n)*r.Cols]
		} else {
			part.Cells = r.Cells[i : i+n]
		}
		if r.State != nil {
			part.State = r.State[i : i+n]
		}
		out = append(out, part)
		i += n
	}
	return out
}

// fit is how many rows from one on are of so many bytes, one at least.
func (r SavedRows) fit(from int32, most int) int32 {
	if r.Kind == "" {
		return min(int32(max(1, most/(4*r.Cols))), r.N-from)
	}
	n := int32(0)
	for ; from+n < r.N; n++ {
		if most -= r.Cells[from+n].WireSize() + 5; most < 0 {
			break
		}
	}
	return max(n, 1)
}
