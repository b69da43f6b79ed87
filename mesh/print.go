package mesh

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph"
)

// Type is the type of a value with the axes of the mesh behind the sizes that they divide,
// and where the value is if it is at one place: "f32[8/batch 32]", "f32[32 64] at expert:1".
func (p *Propagation) Type(v graph.Value) string {
	s, t := p.Of(v), v.Type()
	var b strings.Builder
	b.WriteString(t.DType.String() + "[")
	for k, d := range t.Shape {
		if k > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(d.Size))
		if a := s.Axis[k]; a > 0 {
			b.WriteString("/" + p.spec.Mesh.Axes[a-1])
		}
	}
	b.WriteByte(']')
	for m, c := range s.At {
		if c > 0 {
			fmt.Fprintf(&b, " at %s:%d", p.spec.Mesh.Axes[m], c-1)
		}
	}
	return b.String()
}

// Print writes how every value is divided, a line each; what was converted; and what that
// comes to.
func (r *Result) Print(w io.Writer) error {
	p := r.Propagation
	for _, n := range p.graph.Nodes() {
		for i := range n.Out {
			if !p.live[n.ID] {
				continue
			}
			if _, err := fmt.Fprintln(w, n.Value(i), p.Type(n.Value(i))); err != nil {
				return err
			}
		}
	}
	for _, c := range r.Conversions {
		wire, most := "", ""
		if c.Kind.Some() {
			most = fmt.Sprintf(", at most %d on the wire", c.Wire)
		} else if c.Wire > 0 {
			wire = fmt.Sprintf(", %d on the wire", c.Wire)
		}
		fmt.Fprintf(w, "%s %s along %s, %d bytes%s, for\n  %s%s\n", c.Kind, c.Value, c.Axis,
			c.Bytes, wire, c.For, most)
	}
	count, divided, placed := p.Count()
	fmt.Fprintf(w, "%d values: %d divided, %d at one place\n", count, divided, placed)
	fmt.Fprintf(w, "%d operations: %d divided, %d computed once\n", r.Divided+r.Whole, r.Divided,
		r.Whole)
	for _, kind := range []ConversionKind{Slice, Join, Move, Sum} {
		bytes, n := r.Copied(kind)
		if _, err := fmt.Fprintf(w, "%s: %d, %d bytes\n", kind, n, bytes); err != nil {
			return err
		}
	}
	for _, kind := range exchanged {
		if bytes, n := r.Sent(kind); n > 0 {
			most := ""
			if kind.Some() {
				most = "at most "
			}
			fmt.Fprintf(w, "%s: %d, %s%d bytes on the wire, by every process\n", kind, n, most,
				bytes)
		}
	}
	return nil
}

// Count is how many values are needed, and how many of them are divided, and at one place.
func (p *Propagation) Count() (values, divided, placed int) {
	for _, n := range p.graph.Nodes() {
		for i := range n.Out {
			if !p.live[n.ID] {
				continue
			}
			values++
			switch s := p.Of(n.Value(i)); {
			case used(s.Axis) != [maxAxes]bool{}:
				divided++
			case !s.Whole():
				placed++
			}
		}
	}
	return values, divided, placed
}
