package distrib

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Tiers are where nodes are in a network of switches below switches: by node, the names of the
// switches above it, the outermost first, "hall1/rack3". It is what [Trees] has costs by.
type Tiers map[NodeID]string

// What it costs to send from one node to another: Parameter Flow's three tiers (section 4.3).
const (
	costNear   = 0.1 // below one switch
	costMiddle = 0.5 // below switches that are below one
	costFar    = 1
)

// mostTiers is how long a file of tiers may be.
const mostTiers = 1 << 16

// ParseTiers reads a line for each node, or for several with numbers in a row, and what is behind
// a # says nothing:
//
//	0-3 hall1/rack1  # nodes 0, 1, 2 and 3
//	4   hall1/rack2
//
// The error names the line.
func ParseTiers(r io.Reader) (Tiers, error) {
	t := Tiers{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if err := t.add(strings.Fields(text)); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(t) == 0 {
		return nil, errors.New("no node is named")
	}
	return t, nil
}

func (t Tiers) add(words []string) error {
	if len(words) == 0 {
		return nil
	}
	if len(words) != 2 {
		return fmt.Errorf("%.60q is not a node, or a first and a last one, and the switches "+
			"above it, as in 0-3 hall1/rack1", strings.Join(words, " "))
	}
	from, to, several := strings.Cut(words[0], "-")
	if !several {
		to = from
	}
	first, err := strconv.ParseUint(from, 10, 31)
	last, err2 := strconv.ParseUint(to, 10, 31)
	if err != nil || err2 != nil || last < first || last-first >= mostTiers {
		return fmt.Errorf("%.60q is no node, nor a first and a last one", words[0])
	}
	if slices.Contains(strings.Split(words[1], "/"), "") {
		return fmt.Errorf("%.60q has a switch without a name", words[1])
	}
	for id := NodeID(first); id <= NodeID(last); id++ {
		if at, twice := t[id]; twice {
			return fmt.Errorf("node %d is below %.60s already", id, at)
		}
		t[id] = words[1]
	}
	return nil
}

// Cost of sending from one node to another; of one that is not named, what is farthest.
func (t Tiers) Cost(from, to NodeID) float64 {
	a, b := t[from], t[to]
	outerA, _, _ := strings.Cut(a, "/")
	outerB, _, _ := strings.Cut(b, "/")
	switch {
	case a == "" || b == "" || outerA != outerB:
		return costFar
	case a == b:
		return costNear
	}
	return costMiddle
}

// String is what it would be read from, a line a node.
func (t Tiers) String() string {
	var ids []NodeID
	for id := range t {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "%d %s\n", id, t[id])
	}
	return b.String()
}
