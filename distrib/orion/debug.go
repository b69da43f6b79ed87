package orion

import (
	"fmt"
	"slices"
	"strings"
)

// Every is, in place of a number, all of a dimension of an array.
const Every = -1

// UndeclaredError is a use of an array that a loop does not declare. Subscript is the place, from
// 0, at which the reference differs that is most like it; -1 if there is none to the array that
// does the same.
type UndeclaredError struct {
	Array     string
	Access    Access
	At        []int64
	Iteration []int64
	Subscript int
	declared  string
}

// Error names the iteration, the array and the subscript.
func (e *UndeclaredError) Error() string {
	at := make([]string, len(e.At))
	for k, x := range e.At {
		if at[k] = fmt.Sprint(x); x == Every {
			at[k] = ":"
		}
	}
	did := map[Access]string{Read: "reads", Write: "writes", Buffer: "buffers"}[e.Access]
	text := fmt.Sprintf("iteration %v %s %s[%s], which the loop does not declare", e.Iteration, did,
		e.Array, strings.Join(at, ", "))
	if e.Subscript < 0 {
		return text
	}
	return fmt.Sprintf("%s: subscript %d is %s, and declared as %s", text, e.Subscript+1,
		at[e.Subscript], e.declared)
}

// Use announces that the body reads, writes or buffers an element of an array, or [Every] one of a
// dimension. In debug mode, what is not declared ends the run after the iteration, with an
// [UndeclaredError]; else this does nothing.
func (it *Iteration) Use(access Access, array string, at ...int64) {
	if it.checked != nil && it.wrong == nil {
		it.wrong = it.checked.declares(access, array, at, it.Index)
	}
}

// declares reports what is wrong with a use.
func (l *Loop) declares(access Access, array string, at, index []int64) error {
	var nearest *UndeclaredError
	for _, r := range l.Refs {
		if r.Access != access || l.Arrays[r.Array].Name != array || len(r.At) != len(at) {
			continue
		}
		k := 0
		for k < len(at) && l.Arrays[r.Array].includes(k, r.At[k], at[k], index) {
			k++
		}
		if k == len(at) {
			return nil
		}
		if nearest == nil || k > nearest.Subscript {
			nearest = &UndeclaredError{Subscript: k, declared: l.subscriptText(r.At[k])}
		}
	}
	if nearest == nil {
		nearest = &UndeclaredError{Subscript: -1}
	}
	nearest.Array, nearest.Access = array, access
	nearest.At, nearest.Iteration = slices.Clone(at), slices.Clone(index)
	return nearest
}

// includes reports whether a subscript in dimension k of an array is a value, or may be.
func (a Array) includes(k int, s Subscript, value int64, index []int64) bool {
	if value == Every {
		return s.Form == All || s.Form == Unknown
	}
	if value < 0 || value >= a.Shape[k] {
		return false
	}
	switch s.Form {
	case Index:
		return value == index[s.Dim]+s.Add
	case Constant:
		return value == s.Add
	}
	return true
}
