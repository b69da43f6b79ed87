package profile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gomem/gomem/plan"
)

// Query selects steps of a plan. The zero value selects all.
type Query struct {
	value, op string // patterns; "" is any
	part      between[int]
	step      between[int]
	time      between[time.Duration]
}

// between is a range with both ends, if it is given.
type between[T cmp.Ordered] struct {
	given    bool
	from, to T
}

func (b between[T]) has(x T) bool { return b.meets(x, x) }

// meets reports whether the range has anything that one with both ends has.
func (b between[T]) meets(from, to T) bool { return !b.given || from <= b.to && b.from <= to }

// ParseQuery reads conditions with commas between them, all of which a step must
// meet:
//
//	value=PATTERN   it is of a node, or touches a slot of a value, with such a name
//	op=PATTERN      the operation, or the reason of a copy
//	part=N, N-M     the partition
//	step=N, N-M     the number of the step; M may be left out
//	time=N, N-M     it is done during these milliseconds of a run, or a part of them
//
// In a pattern * stands for any characters, ? for one.
func ParseQuery(text string) (Query, error) {
	var q Query
	seen := map[string]bool{}
	for _, term := range strings.Split(text, ",") {
		key, want, ok := strings.Cut(strings.TrimSpace(term), "=")
		switch {
		case !ok || want == "":
			return Query{}, fmt.Errorf("%.60q: want conditions such as value=enc/*,part=3-5", text)
		case seen[key]:
			return Query{}, fmt.Errorf("%.60q: %s is given twice", text, key)
		}
		seen[key] = true
		var err error
		switch key {
		case "value":
			q.value = want
		case "op":
			q.op = want
		case "part":
			q.part, err = parseBetween(want)
		case "step":
			q.step, err = parseBetween(want)
		case "time":
			q.time, err = parseTimes(want)
		default:
			return Query{}, fmt.Errorf("want value, op, part, step or time, not %.60q", key)
		}
		if err != nil {
			return Query{}, fmt.Errorf("%s=%.60q: %w", key, want, err)
		}
	}
	return q, nil
}

// parseBetween reads N, N-M or N- as whole numbers.
func parseBetween(text string) (between[int], error) {
	b, ok := parseRange(text, math.MaxInt32, func(s string) (int, error) {
		n, err := strconv.ParseUint(s, 10, 31)
		return int(n), err
	})
	if !ok {
		return b, errors.New("want a number, or a range such as 3-5")
	}
	return b, nil
}

// parseTimes reads the same as milliseconds, which may have a point.
func parseTimes(text string) (between[time.Duration], error) {
	b, ok := parseRange(text, math.MaxInt64, func(s string) (time.Duration, error) {
		if strings.Trim(s, "0123456789.") != "" {
			return 0, strconv.ErrSyntax
		}
		return time.ParseDuration(s + "ms")
	})
	if !ok {
		return b, errors.New("want milliseconds, or a range of them such as 1.5-3")
	}
	return b, nil
}

// parseRange reads N, N-M or N-, which goes up to the most, by what reads a number.
func parseRange[T cmp.Ordered](text string, most T, read func(string) (T, error)) (between[T],
	bool) {
	first, last, ranged := strings.Cut(text, "-")
	from, err := read(first)
	to := from
	switch {
	case err != nil:
	case ranged && last == "":
		to = most
	case ranged:
		to, err = read(last)
	}
	return between[T]{true, from, to}, err == nil && from <= to
}

// Timed reports whether steps are selected by when they are done.
func (q Query) Timed() bool { return q.time.given }

// Selects reports whether a step of a plan meets all conditions. The run, which says when
// steps are done, may be nil unless the query is [Query.Timed].
func (q Query) Selects(p *plan.Plan, run Run, i int) bool {
	s := &p.Steps[i]
	return q.step.has(i) && q.part.has(s.Part) && (q.op == "" || match(q.op, s.Do.What())) &&
		(q.value == "" || q.touches(p, s)) &&
		(!q.Timed() || q.time.meets(run[i].Start, run[i].End))
}

// touches reports whether a step is of a value, or touches it.
func (q Query) touches(p *plan.Plan, s *plan.Step) bool {
	found := match(q.value, s.Name)
	plan.Each(s.Do, func(id plan.SlotID, _ bool) {
		name := p.Slots[id].Value
		found = found || match(q.value, name) ||
			match(q.value, strings.TrimPrefix(name, "scratch of "))
	})
	return found
}

// match reports whether a pattern stands for a text. It remembers the last star and
// tries again behind it. What ? stands for may be several bytes.
func match(pattern, text string) bool {
	i, k, star, from := 0, 0, -1, 0
	after := func(at int) int {
		_, size := utf8.DecodeRuneInString(text[at:])
		return at + size
	}
	for k < len(text) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, from = i, k
			i++
		case i < len(pattern) && pattern[i] == '?':
			i, k = i+1, after(k)
		case i < len(pattern) && pattern[i] == text[k]:
			i, k = i+1, k+1
		case star >= 0:
			from = after(from)
			i, k = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
