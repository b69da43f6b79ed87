package graph

import "strconv"

// Names are names that are taken, each with the number that it was last given with, or 1. So a
// name that is wanted thousands of times is counted on, not anew.
type Names map[string]int

// Has reports whether a name is taken.
func (n Names) Has(name string) bool { return n[name] > 0 }

// Add takes a name, whether it is taken or not.
func (n Names) Add(name string) { n[name] = max(n[name], 1) }

// Free is a name that is not taken: the wanted one, or else that with the first number that is
// left, from 2 on.
func (n Names) Free(wanted string) string {
	name, _ := n.next(wanted)
	return name
}

// Take takes the name that is free, and returns it.
func (n Names) Take(wanted string) string {
	name, number := n.next(wanted)
	n.Add(name)
	n[wanted] = number
	return name
}

func (n Names) next(wanted string) (name string, number int) {
	if !n.Has(wanted) {
		return wanted, 1
	}
	for number = n[wanted] + 1; ; number++ {
		if name = wanted + "_" + strconv.Itoa(number); !n.Has(name) {
			return name, number
		}
	}
}
