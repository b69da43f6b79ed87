package graph

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
)

// checkName reports a name that texts of plans and names of files could not hold.
func checkName(name string) error {
	bad := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return fmt.Errorf("the name %q is empty, or begins or ends with a space", name)
	case strings.ContainsFunc(name, bad):
		return fmt.Errorf("the name %q has characters that cannot be printed", name)
	case strings.Contains(name, " : "):
		return fmt.Errorf(`the name %q contains " : "`, name)
	}
	return nil
}

// checkLeaf reports what is wrong with a leaf's type, initial value or data.
func checkLeaf(n *Node) error {
	t := n.Out[0]
	if err := t.Check(); err != nil {
		return err
	}
	switch n.Kind {
	case KindVariable:
		return n.Init.check(t)
	case KindConstant:
		if have, want := int64(len(n.Data.Data)), t.Bytes(); have != want {
			return fmt.Errorf("%s has %d bytes, not %d", t, want, have)
		}
	}
	return nil
}

// check reports an initial value that a variable of type t cannot have.
func (init Init) check(t Type) error {
	if parts := len(init.Each); parts > 0 {
		if t.Rank() == 0 || t.Size(0)%parts != 0 {
			return fmt.Errorf("%d initial values for the parts of %s", parts, t)
		}
		for _, part := range init.Each {
			if err := part.check(t); err != nil {
				return err
			}
		}
		return nil
	}
	if init.Dist > Positive {
		return fmt.Errorf("unknown distribution %d of initial values", init.Dist)
	}
	if math.IsNaN(init.Scale) || math.IsInf(init.Scale, 0) {
		return errors.New("the scale of the initial values is not a number")
	}
	return nil
}

// stream is what selects random numbers: a seed, and a name.
type stream struct {
	seed Value
	name string
}

// Rerun lets the random operations that are made until the returned function is
// called draw the numbers of others, by having their names. It is for a second
// pass over a model that does not run in the same step, such as its evaluation.
func (g *Graph) Rerun() (leave func()) {
	outer := g.streams
	g.streams = map[stream]bool{}
	return func() { g.streams = outer }
}

// ClaimStream records that an operation draws the random numbers that seed and name
// select. A second that did would draw the same ones, in silence; so that is an
// error.
func (g *Graph) ClaimStream(seed Value, name string) {
	s := stream{seed, name}
	if g.streams[s] {
		g.Fail(fmt.Errorf("two random operations of %s are called %q and would draw the same "+
			"numbers: give every one a name of its own", seed, name))
	}
	g.streams[s] = true
}
