package profile

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gomem/gomem/plan"
)

// Query selects steps of a plan. The zero value selects all.
type Query struct {
	value, op string // patterns; "" is any
	part      between
	step      between
}

// between is a range of numbers with both ends, if it is given.
type between struct {
	given    bool
	from, to int
}

func (b between) has(n int) bool { return !b.given || b.from <= n && n <= b.to }

// ParseQuery reads conditions with commas between them, all of which a step must
// meet:
//
//	value=PATTERN   it is of a node, or touches a slot of a value, with such a name
//	op=PATTERN      the operation, or the reason of a copy
//	part=N, N-M     the partition
//	step=N, N-M     the number of the step; M may be left out
//
// In a pattern * stands for any characters, ? for one.
func ParseQuery(text string) (Query, error) {
	var q Query
	seen := map[string]bool{}
	for _, term := range strings.Split(text, ",") {
		key, want, ok := strings.Cut(strings.TrimSpace(term), "=")
		switch {
		case !ok || want == "":
			return Query{}, fmt.Errorf("%q: want conditions such as value=enc/*,part=3-5", text)
		case seen[key]:
			return Query{}, fmt.Errorf("%q: %s is given twice", text, key)
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
		default:
			return Query{}, fmt.Errorf("%q: want value, op, part or step, not %q", text, key)
		}
		if err != nil {
			return Query{}, fmt.Errorf("%s=%s: %w", key, want, err)
		}
	}
	return q, nil
}

// parseBetween reads N, N-M or N-.
func parseBetween(text string) (between, error) {
	first, last, ranged := strings.Cut(text, "-")
	from, err := strconv.ParseUint(first, 10, 31)
	to := from
	switch {
	case err != nil:
	case ranged && last == "":
		to = math.MaxInt32
	case ranged:
		to, err = strconv.ParseUint(last, 10, 31)
	}
	if err != nil || to < from {
		return between{}, fmt.Errorf("want a number, or a range such as 3-5")
	}
	return between{true, int(from), int(to)}, nil
}

// Selects reports whether a step of a plan meets all conditions.
func (q Query) Selects(p *plan.Plan, i int) bool {
	s := &p.Steps[i]
	return q.step.has(i) && q.part.has(s.Part) && (q.op == "" || match(q.op, s.Do.What())) &&
		(q.value == "" || q.touches(p, s))
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
// tries again behind it.
func match(pattern, text string) bool {
	i, k, star, from := 0, 0, -1, 0
	for k < len(text) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, from = i, k
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == text[k]):
			i, k = i+1, k+1
		case star >= 0:
			from++
			i, k = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
