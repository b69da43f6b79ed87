package search

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
)

// replay is how long a schedule takes by a plain look at its events, one after the other: each
// starts when its stream is idle, what it reads is written, and what it writes over has been read.
// With waits it is also not before all that was on the device and is not any more is done with, as
// if every stay took the place of all that have ended.
func replay(p *program.Program, s *program.Schedule, m machine.Model, waits bool) (total int64) {
	idle := make([]int64, len(s.Streams))
	written, read := make([]int64, len(s.Stays)), make([]int64, len(s.Stays))
	taken := map[program.StayID]bool{program.NoStay: true} // over: their bytes do not end
	for i := range s.Stays {
		taken[s.Stays[i].Over] = true
	}
	for i := range s.Events {
		e := &s.Events[i]
		engine := s.Streams[e.Stream].Engine
		start, takes := idle[e.Stream], int64(0)
		reads, writes := e.In, e.Out
		if e.Copies() {
			reads, writes = []program.StayID{e.Src}, []program.StayID{e.Dst}
			takes = int64(m.Copy(engine.Reads(), engine.Writes(), s.Stays[e.Dst].Bytes))
		} else {
			n := p.Graph.Node(e.Node)
			takes = int64(m.Time(n, engine.Reads()))
			writes = append(writes[:len(writes):len(writes)], e.In[:n.Mutates]...)
		}
		for _, id := range reads {
			start = max(start, written[id])
		}
		for _, id := range writes {
			start = max(start, read[id], written[id])
			if over := s.Stays[id].Over; over != program.NoStay {
				start = max(start, read[over], written[over])
			}
		}
		begins := false
		e.Each(func(id program.StayID) {
			y := &s.Stays[id]
			begins = begins || y.From == int32(i) && y.Space == space.Device && !y.Fixed
		})
		for id := range s.Stays {
			if y := &s.Stays[id]; waits && begins && y.Space == space.Device && y.To < int32(i) &&
				!taken[program.StayID(id)] {
				start = max(start, read[id], written[id])
			}
		}
		end := start + takes
		idle[e.Stream] = end
		for _, id := range reads {
			read[id] = max(read[id], end)
		}
		for _, id := range writes {
			written[id] = end
		}
		total = max(total, end)
	}
	return total
}

// TestTimeOfSchedules: a schedule takes no longer than is said, wherever what it has is put: and
// exactly as long where nothing has to wait for room, nor for an exchange between devices, for
// which the device is said to wait as a whole.
func TestTimeOfSchedules(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var p *program.Program
		var m machine.Model = slow()
		if rapid.Bool().Draw(r, "chain") { // where much is swapped
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "chain's"), 1))
			p, m = trainingChain(t, rng, 12), clock{0.5 + 4*rng.Float64()}
		} else {
			p = randomProgram(r, t)
		}
		pr := New(p, m)
		all := solve(r, pr, plenty, Options{Effort: 20})
		d := solve(r, pr, all.Peak()*rapid.Int64Range(20, 100).Draw(r, "percent")/100,
			Options{Effort: rapid.IntRange(1, 100).Draw(r, "effort")})
		for _, d := range []*Decision{all, d} {
			if d == nil {
				continue
			}
			checkDecision(r, p, pr, d)
			s := pr.Schedule(d)
			free, waits := replay(p, s, m, false), replay(p, s, m, true)
			if free > waits || waits > d.time {
				r.Fatalf("%d ns without waits for room, %d with all of them, and %d are said", free,
					waits, d.time)
			}
			if d == all && free < d.time && !pr.peers {
				r.Fatalf("%d ns with room for all, and %d are said", free, d.time)
			}
		}
	})
}
