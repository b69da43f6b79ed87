package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// maxHosts bounds what a short text can expand to.
const maxHosts = 1 << 16

// Hosts expands a list of hosts as Slurm writes it: "n[01-04,7],login" is n01, n02, n03,
// n04, n7 and login. Brackets may come more than once in a name, "r[1-2]n[1-2]". Numbers
// keep their zeros. An empty or malformed list, or one of more than 65,536 hosts, is an
// error.
func Hosts(list string) ([]string, error) {
	var hosts []string
	for _, item := range splitOutside(list) {
		names, err := expand(item)
		if err != nil {
			return nil, fmt.Errorf("list of hosts %q: %w", list, err)
		}
		if hosts = append(hosts, names...); len(hosts) > maxHosts {
			return nil, fmt.Errorf("list of hosts %q: more than %d hosts", list, maxHosts)
		}
	}
	return hosts, nil
}

// splitOutside splits at the commas that are not in brackets.
func splitOutside(list string) []string {
	var items []string
	depth, start := 0, 0
	for i, c := range list {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			items = append(items, list[start:i])
			start = i + 1
		}
	}
	return append(items, list[start:])
}

// expand lists the names that one item stands for, in order.
func expand(item string) ([]string, error) {
	head, rest, ok := strings.Cut(item, "[")
	if !ok {
		if item == "" || strings.ContainsAny(item, "] \t") {
			return nil, fmt.Errorf("%q is no host", item)
		}
		return []string{item}, nil
	}
	inside, tail, ok := strings.Cut(rest, "]")
	if !ok || strings.Contains(inside, "[") {
		return nil, fmt.Errorf("%q has a bracket without its other half", item)
	}
	tails := []string{""}
	if tail != "" {
		var err error
		if tails, err = expand(tail); err != nil {
			return nil, err
		}
	}
	var names []string
	for part := range strings.SplitSeq(inside, ",") {
		numbers, err := span(part, maxHosts/len(tails))
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			for _, t := range tails {
				names = append(names, head+n+t)
			}
		}
		if len(names) > maxHosts {
			return nil, fmt.Errorf("%q is more than %d hosts", item, maxHosts)
		}
	}
	return names, nil
}

// span is the numbers of "01-04" or "7", as wide as the first is written.
func span(part string, most int) ([]string, error) {
	from, to, ok := strings.Cut(part, "-")
	if !ok {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 31)
	last, err2 := strconv.ParseUint(to, 10, 31)
	if err1 != nil || err2 != nil || last < first {
		return nil, fmt.Errorf("%q is no number and no range", part)
	}
	if last-first >= uint64(most) {
		return nil, fmt.Errorf("%q is more than %d hosts", part, most)
	}
	var numbers []string
	for n := first; n <= last; n++ {
		numbers = append(numbers, fmt.Sprintf("%0*d", len(from), n))
	}
	return numbers, nil
}
