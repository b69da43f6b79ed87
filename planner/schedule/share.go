package schedule

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// Share adds to a schedule what becomes of the variables that workers share: one is
// awaited just before the first event that touches it, and sent, if it is written, when
// the last has touched it. Sends are in the order of the variables, after all others, so
// that their order is the same on all workers, whatever their schedules.
func Share() program.Pass {
	return program.Pass{Name: "share", Run: func(p *program.Program) error {
		p.Schedule = share(p.Graph, p.Schedule)
		return nil
	}}
}

// Gather has every await of a schedule start after all sends before it are done, for networks of
// jobs that go on without a worker that is lost in a step.
func Gather() program.Pass {
	return program.Pass{Name: "gather", Run: func(p *program.Program) error {
		p.Schedule.Gathers = true
		return nil
	}}
}

// shared is a variable that workers share.
type shared struct {
	stay        program.StayID
	first, last int32 // events that touch it
	written     bool
}

// share is a schedule with the exchanges of shared variables.
func share(g *graph.Graph, s *program.Schedule) *program.Schedule {
	list, sent := sharedOf(g, s)
	if len(list) == 0 {
		return s
	}
	before, after := make([][]program.StayID, len(s.Events)), make([][]program.StayID,
		len(s.Events))
	for _, v := range list {
		before[v.first] = append(before[v.first], v.stay)
		if v.written {
			sent = max(sent, v.last)
			after[sent] = append(after[sent], v.stay)
		}
	}
	out := *s
	out.Stays, out.Events = slices.Clone(s.Stays), nil
	send, await := streamOf(s, space.Send), streamOf(s, space.Await)
	at := make([]int32, len(s.Events))
	for i, e := range s.Events {
		add := func(stream uint8, id program.StayID, in []program.StayID) {
			out.Events = append(out.Events, program.Event{Node: s.Stays[id].Value.Node.ID,
				Part: e.Part, Stream: stream, In: in, Out: []program.StayID{id},
				Scratch: program.NoStay, Src: program.NoStay, Dst: program.NoStay})
		}
		for _, id := range before[i] {
			add(await, id, nil)
		}
		at[i] = int32(len(out.Events))
		out.Events = append(out.Events, e)
		for _, id := range after[i] {
			add(send, id, []program.StayID{id})
		}
	}
	renumber(&out, at)
	return &out
}

// sharedOf are the shared variables that a schedule touches, by creation, and its last
// send of another value, or 0.
func sharedOf(g *graph.Graph, s *program.Schedule) (list []shared, sent int32) {
	of := map[program.StayID]*shared{}
	for _, id := range s.Variables {
		if s.Stays[id].Value.Node.Shared != nil {
			of[id] = &shared{stay: id, first: -1}
		}
	}
	for i := range s.Events {
		e := &s.Events[i]
		if s.Streams[e.Stream].Engine == space.Send {
			sent = int32(i)
		}
		e.Each(func(id program.StayID) {
			v := of[id]
			if v == nil {
				return
			}
			if v.last = int32(i); v.first < 0 {
				v.first = v.last
			}
			updates := !e.Copies() && slices.Contains(e.In[:g.Node(e.Node).Mutates], id)
			v.written = v.written || e.Dst == id || updates
		})
	}
	for _, id := range s.Variables {
		if v := of[id]; v != nil && v.first >= 0 {
			list = append(list, *v)
		}
	}
	return list, sent
}

// streamOf is the stream of an engine.
func streamOf(s *program.Schedule, e space.Engine) uint8 {
	return uint8(slices.IndexFunc(s.Streams,
		func(st program.Stream) bool { return st.Engine == e }))
}

// renumber has stays last from where their events have come to be.
func renumber(s *program.Schedule, at []int32) {
	last := int32(max(0, len(s.Events)-1))
	for i := range s.Stays {
		y := &s.Stays[i]
		switch {
		case y.Fixed:
			y.From, y.To = 0, last
		case len(at) > 0 && y.Origin == program.Bound:
			y.From, y.To = 0, at[y.To]
		case len(at) > 0:
			y.From, y.To = at[y.From], at[y.To]
		}
	}
	for _, id := range s.Fetches {
		s.Stays[id].To = last
	}
}
