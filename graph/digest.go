package graph

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
)

// digest is the digest of a graph's first nodes.
type digest struct {
	nodes int
	text  string
}

// Digest is "sha256:…" over all that a plan and its results depend on: of every
// node the kind, the name, the operation with its attributes, the operands, the
// types, what it writes, how it starts and what it holds. Two graphs of one
// digest compute the same; that of a graph is the same in every process. It does
// not cover model lines and phases, on which only the choice of a plan depends.
//
// The work is done once, and again only after nodes were added.
func (g *Graph) Digest() string {
	if d := g.sum.Load(); d != nil && d.nodes == len(g.nodes) {
		return d.text
	}
	w := digester{hash: sha256.New(), ops: map[Op]string{}}
	for _, n := range g.nodes {
		w.node(n)
	}
	w.flush()
	d := &digest{len(g.nodes), "sha256:" + hex.EncodeToString(w.hash.Sum(nil))}
	g.sum.Store(d)
	return d.text
}

// digester writes nodes into a hash, every part of them with its length or in a
// fixed number of bytes, so that two graphs cannot read the same.
type digester struct {
	hash hash.Hash
	buf  []byte
	ops  map[Op]string // operations seen, as text: graphs use few again and again
}

func (w *digester) node(n *Node) {
	w.buf = append(w.buf, byte(n.Kind))
	w.text(n.Name)
	w.text(w.op(n.Op))
	w.number(n.Mutates)
	w.number(len(n.In))
	for _, v := range n.In {
		w.number(int(v.Node.ID))
		w.number(v.Index)
	}
	w.number(len(n.Out))
	for _, t := range n.Out {
		w.shape(t)
	}
	if n.Kind == KindVariable {
		w.init(n.Init)
	}
	if n.Shared != nil {
		w.text("shared " + n.Shared.String())
	}
	w.number(len(n.Data.Data))
	if len(n.Data.Data) > 0 {
		w.flush()
		w.hash.Write(n.Data.Data)
	}
	if len(w.buf) > full {
		w.flush()
	}
}

// full is how many bytes are worth a call of the hash.
const full = 1 << 13

func (w *digester) flush() {
	w.hash.Write(w.buf)
	w.buf = w.buf[:0]
}

func (w *digester) number(n int) { w.buf = binary.AppendVarint(w.buf, int64(n)) }

func (w *digester) text(s string) {
	w.number(len(s))
	w.buf = append(w.buf, s...)
}

func (w *digester) shape(t Type) {
	w.buf = append(w.buf, byte(t.DType))
	w.number(len(t.Shape))
	for _, d := range t.Shape {
		w.text(d.Name)
		w.number(d.Size)
	}
}

func (w *digester) init(i Init) {
	w.buf = append(w.buf, byte(i.Dist))
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(i.Scale))
	w.number(len(i.Each))
	for _, part := range i.Each {
		w.init(part)
	}
}

// op is an operation as Go writes it: its type and every attribute.
func (w *digester) op(op Op) string {
	if op == nil {
		return ""
	}
	s, ok := w.ops[op]
	if !ok {
		s = fmt.Sprintf("%#v", op)
		w.ops[op] = s
	}
	return s
}
