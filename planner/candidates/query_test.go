package candidates

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/lower"
	"github.com/gomem/gomem/planner/outlook"
	"github.com/gomem/gomem/planner/program"
)

// ranked is the search for a target of which is known what its candidates take, and what at least.
func ranked(needs, loads []lower.Need) *targetSearch {
	k := &sketches{loads: map[Candidate]lower.Need{}, needs: map[Candidate]lower.Need{}}
	j := &targetSearch{sketches: k, answers: map[asked]lower.Need{},
		outlooks: map[Candidate]outlook.Outlook{}}
	for i := range needs {
		w := Candidate{Tuning: Tuning{Prefetch: i}}
		j.ladder.last = append(j.ladder.last, w)
		k.needs[w], k.loads[w] = needs[i], loads[i]
	}
	return j
}

// inTurn is every candidate of a ladder that is tried from end to end.
func inTurn(l ladder) []Candidate { return l.last }

// plainMost is the most of the least that each target needs of a space by some candidate within
// limits, -1 if one of them has none.
func plainMost(all [][]lower.Need, of space.ID, limits lower.Need) int64 {
	most := int64(-1)
	for _, needs := range all {
		least := int64(-1)
		for _, n := range needs {
			bytes := n[of]
			n[of] = 0
			if n.Within(limits) && (least < 0 || bytes < least) {
				least = bytes
			}
		}
		if least < 0 {
			return -1
		}
		most = max(most, least)
	}
	return most
}

// TestMostIsThatOfTheNeediest: whatever candidates take, and in whatever order targets come, what
// is found is the need of the target that needs the most, by the candidate that is best for it:
// unless that is more than is of use.
func TestMostIsThatOfTheNeediest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes, limit := rapid.Int64Range(0, 9), rapid.Int64Range(5, 12)
		var all [][]lower.Need
		s := &Search{ctx: context.Background()}
		for range rapid.IntRange(1, 3).Draw(t, "targets") {
			var needs, loads []lower.Need
			for range rapid.IntRange(1, 4).Draw(t, "ways") {
				n := lower.Need{bytes.Draw(t, "device"), bytes.Draw(t, "host"),
					bytes.Draw(t, "disk")}
				load := n
				for i := range load {
					load[i] = max(0, load[i]-rapid.Int64Range(0, 2).Draw(t, "gaps"))
				}
				needs, loads = append(needs, n), append(loads, load)
			}
			all = append(all, needs)
			s.each = append(s.each, ranked(needs, loads))
		}
		q := query{of: rapid.SampledFrom([]space.ID{space.Device, space.Host}).Draw(t, "of"),
			limits: lower.Need{limit.Draw(t, "device"), limit.Draw(t, "host"),
				limit.Draw(t, "disk")},
			candidates: inTurn, most: rapid.SampledFrom([]int64{math.MaxInt64, 3, 6}).Draw(t,
				"most")}
		want := plainMost(all, q.of, q.limits)
		if want > q.most {
			want = -1
		}
		l, err := s.neediest(q)
		if err != nil {
			t.Fatal(err)
		}
		have := int64(-1)
		if l != nil {
			have = l.Bytes
		}
		if have != want {
			t.Fatalf("of %v %+v comes to %d, want %d", all, q, have, want)
		}
	})
}

// TestEnoughIsEnough: of a target whose likeliest candidate needs no more than another target does,
// no other candidate is looked at; nor is one after a candidate that needs as little.
func TestEnoughIsEnough(t *testing.T) {
	first := ranked([]lower.Need{{6}, {5}}, []lower.Need{{6}, {5}})
	second := ranked([]lower.Need{{1}, {5}}, []lower.Need{{1}, {5}})
	unseen := second.ladder.last[0]
	delete(second.sketches.needs, unseen) // to look at it fails, since there is no graph
	delete(second.sketches.loads, unseen)
	s := &Search{ctx: context.Background(), each: []*targetSearch{first, second}}
	q := query{of: space.Device, candidates: inTurn, most: math.MaxInt64}
	if l, err := s.neediest(q); err != nil || l.Bytes != 5 || l.by != first {
		t.Errorf("%+v, %v", l, err)
	}
	third := ranked([]lower.Need{{5}, {3}, {9}}, []lower.Need{{3}, {3}, {9}})
	unseen = third.ladder.last[1]
	delete(third.sketches.needs, unseen) // its load is known, and no better than the one before it
	s.each = []*targetSearch{first, third}
	if l, err := s.neediest(q); err != nil || l.Bytes != 5 || l.by != first {
		t.Errorf("%+v, %v", l, err)
	}
	s.each = []*targetSearch{first, ranked([]lower.Need{{4}, {6}}, []lower.Need{{4}, {6}})}
	if l, err := s.neediest(q); err != nil || l.Bytes != 5 {
		t.Errorf("a way that needs more than is enough is taken: %+v, %v", l, err)
	}
}

// TestAnswersAreOfTheirQuestions: what is known of a candidate's host memory, because the device's
// was asked for with much of it, is no answer with less of it, nor if the host's is asked for.
func TestAnswersAreOfTheirQuestions(t *testing.T) {
	const load, packed = 65, 128 // of two at once: the bytes after the higher one's are free
	schedule := &program.Schedule{Events: make([]program.Event, 2), Stays: []program.Stay{
		{Space: space.Host, Bytes: 64, To: 1, Over: program.NoStay},
		{Space: space.Host, Bytes: 64, Over: program.NoStay}}}
	made := &program.Program{Graph: graph.New(), Schedule: schedule}
	ask := func(j *targetSearch, of space.ID, host int64) int64 {
		w := Candidate{}
		j.sketches.drawn = &Drawn{Candidate: w, sketch: lower.Of(made)}
		limits := lower.Need{math.MaxInt64, host, math.MaxInt64}
		n, err := j.answer(context.Background(), w, query{of: of, limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		return n[space.Host]
	}
	for _, c := range []struct {
		of         space.ID
		host, want int64
	}{{space.Device, math.MaxInt64, load}, {space.Device, packed - 1, packed},
		{space.Device, load, packed}, {space.Device, load - 1, load},
		{space.Host, math.MaxInt64, packed}} {
		for _, before := range []struct {
			of   space.ID
			host int64
		}{{space.Device, math.MaxInt64}, {space.Device, load - 1}, {space.Device, packed - 1},
			{space.Host, math.MaxInt64}} {
			j := ranked(nil, nil)
			ask(j, before.of, before.host)
			if have := ask(j, c.of, c.host); have != c.want {
				t.Errorf("%+v after %+v: %d bytes of %d at once and %d packed", c, before, have,
					load, packed)
			}
		}
	}
}
