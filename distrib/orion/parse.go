package orion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// text is a loop as files have it.
type text struct {
	Name    string      `json:"name"`
	Ordered bool        `json:"ordered"`
	Space   []string    `json:"space"`
	Arrays  []arrayText `json:"arrays"`
	Body    []string    `json:"body"`
}

type arrayText struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	Bytes *int64  `json:"bytes"`
}

// Parse reads a loop from JSON: name, ordered, space (a list of "i 100": an index and its size, the
// outermost first), arrays (name, shape, and bytes of an element, 4 if there are none), and body, a
// list of "read W[i, :]", "write A[i-1, 0]" or "buffer V[?]". A subscript is an index with a number
// added or taken off, a number, ":" for all, or "?" for what is unknown. The loop is checked.
func Parse(data []byte) (*Loop, error) {
	var t text
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("no loop: %w", err)
	}
	l := &Loop{Name: t.Name, Ordered: t.Ordered}
	for _, s := range t.Space {
		dim, err := parseDim(s)
		if err != nil {
			return nil, err
		}
		l.Space = append(l.Space, dim)
	}
	for _, a := range t.Arrays {
		l.Arrays = append(l.Arrays, Array{a.Name, a.Shape, 4})
		if a.Bytes != nil {
			l.Arrays[len(l.Arrays)-1].Bytes = *a.Bytes
		}
	}
	for _, s := range t.Body {
		ref, err := l.parseRef(s)
		if err != nil {
			return nil, fmt.Errorf("%.60q: %w", s, err)
		}
		l.Refs = append(l.Refs, ref)
	}
	return l, l.Check()
}

func parseDim(s string) (Dim, error) {
	words := strings.Fields(s)
	if len(words) == 2 {
		if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
			return Dim{words[0], n}, nil
		}
	}
	return Dim{}, fmt.Errorf("space: %.60q is no index and its size, as in i 100", s)
}

// parseRef reads what a line of the body does.
func (l *Loop) parseRef(s string) (Ref, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	var r Ref
	for r.Access = Read; r.Access.String() != word; r.Access++ {
		if r.Access == Buffer {
			return Ref{}, errors.New("want read, write or buffer, and an array, as in read W[i]")
		}
	}
	name, at, found := strings.Cut(strings.TrimSpace(rest), "[")
	at, closed := strings.CutSuffix(at, "]")
	if !found || !closed {
		return Ref{}, errors.New("want an array and subscripts in brackets, as in W[i, :]")
	}
	var err error
	if r.Array, err = l.array(strings.TrimSpace(name)); err != nil {
		return Ref{}, err
	}
	for part := range strings.SplitSeq(at, ",") {
		sub, err := l.parseSubscript(strings.ReplaceAll(part, " ", ""))
		if err != nil {
			return Ref{}, err
		}
		r.At = append(r.At, sub)
	}
	return r, nil
}

// array is the number of an array of a name.
func (l *Loop) array(name string) (int, error) {
	for i, a := range l.Arrays {
		if a.Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("the loop has no array %.40q", name)
}

func (l *Loop) parseSubscript(s string) (Subscript, error) {
	switch s {
	case ":":
		return Subscript{Form: All}, nil
	case "?":
		return Subscript{Form: Unknown}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Subscript{Form: Constant, Add: n}, nil
	}
	name, add := s, int64(0)
	if k := strings.IndexAny(s, "+-"); k > 0 {
		var err error
		if add, err = strconv.ParseInt(s[k:], 10, 64); err != nil {
			return Subscript{}, fmt.Errorf("%.40q: want an index and a number, as in i-1", s)
		}
		name = s[:k]
	}
	dim, err := l.dim(name)
	if err != nil {
		return Subscript{}, fmt.Errorf("subscript %.40q: %w, a number, : or ?", s, err)
	}
	return Subscript{Form: Index, Dim: dim, Add: add}, nil
}

// dimNames lists the loop's dimensions.
func (l *Loop) dimNames() string {
	var names []string
	for _, d := range l.Space {
		names = append(names, d.Name)
	}
	return strings.Join(names, ", ")
}

// refText is a reference as the text of a loop has it, without what it does.
func (l *Loop) refText(r Ref) string {
	var at []string
	for _, s := range r.At {
		at = append(at, l.subscriptText(s))
	}
	return fmt.Sprintf("%s[%s]", l.Arrays[r.Array].Name, strings.Join(at, ", "))
}

func (l *Loop) subscriptText(s Subscript) string {
	switch s.Form {
	case Index:
		if s.Add != 0 {
			return fmt.Sprintf("%s%+d", l.Space[s.Dim].Name, s.Add)
		}
		return l.Space[s.Dim].Name
	case Constant:
		return strconv.FormatInt(s.Add, 10)
	case All:
		return ":"
	}
	return "?"
}

// String is the loop's text, a line of the body each.
func (l *Loop) String() string {
	var b strings.Builder
	for _, d := range l.Space {
		fmt.Fprintf(&b, "for %s below %d\n", d.Name, d.Size)
	}
	for _, r := range l.Refs {
		fmt.Fprintf(&b, "  %s %s\n", r.Access, l.refText(r))
	}
	return b.String()
}

// Sum is a coordinate in the names of the loop's dimensions, such as 2*i + j; "" of what is all 0.
func (l *Loop) Sum(row []int64) string {
	var b strings.Builder
	for k, x := range row {
		sign := " + "
		switch {
		case x == 0:
			continue
		case b.Len() == 0 && x > 0:
			sign = ""
		case b.Len() == 0:
			sign = "-"
		case x < 0:
			sign = " - "
		}
		b.WriteString(sign)
		if n := max(x, -x); n != 1 {
			fmt.Fprintf(&b, "%d*", n)
		}
		b.WriteString(l.Space[k].Name)
	}
	return b.String()
}
