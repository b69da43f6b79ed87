package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Fold is what becomes of the values that the workers of a job have for one name.
type Fold uint8

// The folds.
const (
	Mean Fold = iota // their sum divided by their number
	Sum
	Gather // all of them, one after the other by rank
)

var folds = [...]string{"mean", "sum", "gather"}

// String is the fold in a word.
func (f Fold) String() string {
	if int(f) < len(folds) {
		return folds[f]
	}
	return fmt.Sprintf("fold%d", uint8(f))
}

// How is what an exchange makes of values, and by which way. The zero How is their
// mean by the way that the network prefers.
type How struct {
	Fold Fold
	// Via is "ring", "ps" and the like, one word; "" leaves it to the network. There is one
	// way to gather, which has none.
	Via string
}

// String is "mean" or, with a way, "mean/ring".
func (h How) String() string {
	if h.Via == "" {
		return h.Fold.String()
	}
	return h.Fold.String() + "/" + h.Via
}

// ParseHow reads what String prints.
func ParseHow(text string) (How, error) {
	fold, via, way := strings.Cut(text, "/")
	i := slices.Index(folds[:], fold)
	h := How{Fold: Fold(max(i, 0)), Via: via}
	if err := h.Check(); i < 0 || way && via == "" || err != nil {
		return How{}, fmt.Errorf("%q is no way to exchange: want %s, or a way as in mean/ring",
			text, strings.Join(folds[:], ", "))
	}
	return h, nil
}

// Check reports a fold that there is none of, and a way that is not one word of
// letters, digits and hyphens.
func (h How) Check() error {
	odd := func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	switch {
	case int(h.Fold) >= len(folds):
		return fmt.Errorf("there is no fold %d", h.Fold)
	case strings.ContainsFunc(h.Via, odd):
		return fmt.Errorf("%q is no way: want one word", h.Via)
	case h.Fold == Gather && h.Via != "":
		return fmt.Errorf("%q is no way to gather: there is one, which has no name", h.Via)
	}
	return nil
}

// Exchange is what a node sends: every worker of a job has one of the same name, type
// and How in the same place of its step.
type Exchange struct {
	Name string // unique in a step: that of the variable that it is for
	How  How
	// Every is how many executions come to one exchange: only where the last operand of
	// the node, f32[], is a multiple of it. 0 means all.
	Every int
	// Parts is how many workers there are, whose values a [Gather] brings together; 0 of
	// other exchanges, which are among any number.
	Parts int
}

// Due reports whether execution number step, from 1, is one that exchanges.
func (x Exchange) Due(step float32) bool { return x.Every < 2 || int64(step)%int64(x.Every) == 0 }

// Alone makes of what has been sent, where data begins, what is awaited where nobody
// exchanges anything: all parts are it.
func (x Exchange) Alone(data []byte) {
	if x.Parts < 1 {
		return
	}
	part := len(data) / x.Parts
	for at := part; part > 0 && at < len(data); at += part {
		copy(data[at:], data[:part])
	}
}

// Sender is implemented by the operation that hands its first operand to the network.
// Its result is the network's, and one node reads it: that of an [Awaiter]. It has the type
// of that operand; of a [Gather] it has so many times its bytes, of which the operand's come
// first until they are exchanged.
type Sender interface{ Exchange() Exchange }

// Awaiter is implemented by the operation whose result is what the exchange has made of
// the value that its operand has sent.
type Awaiter interface{ Awaits() }

// Sends reports whether the node hands a value to the network, and which.
func (n *Node) Sends() (Exchange, bool) {
	s, ok := n.Op.(Sender)
	if !ok {
		return Exchange{}, false
	}
	return s.Exchange(), true
}

// Awaits reports whether the node has a value back from the network.
func (n *Node) Awaits() bool {
	_, ok := n.Op.(Awaiter)
	return ok
}

// Exchanges reports whether the node sends or awaits. Such a node is executed once and
// in host memory.
func (n *Node) Exchanges() bool {
	_, sends := n.Op.(Sender)
	return sends || n.Awaits()
}

// Share says of a variable, f32, that other workers write it too: a step awaits its fresh
// value before anything reads it, and sends it as soon as its update is done, under its own
// name. The network has its bytes from then on until the next step awaits them, which may
// be much later: so steps go on while values travel.
func (g *Graph) Share(v Value, how How) {
	err := how.Check()
	switch {
	case !v.Valid():
		return
	case v.Graph() != g || v.Node.Kind != KindVariable:
		err = fmt.Errorf("%s is shared, but is no variable of the graph", v)
	case v.Type().DType != F32:
		err = fmt.Errorf("%s is %s: want f32 to share it", v, v.Type())
	case err == nil && how.Fold == Gather:
		err = fmt.Errorf("%s is shared as parts: want one value of all, a mean or a sum", v)
	}
	if err != nil {
		g.Fail(err)
		return
	}
	v.Node.Shared, g.network = &how, true
	g.sum.Store(nil)
}

// verifyExchanges proves that what is sent is awaited once, and read by nobody else.
func (g *Graph) verifyExchanges() error {
	if !g.network {
		return nil
	}
	awaited := map[NodeID]bool{}
	for _, n := range g.nodes {
		for k, v := range n.In {
			err := verifyPending(n, k, v, awaited)
			if err != nil {
				return &Error{Node: n.Name, Op: n.OpName(), Pos: n.Pos, In: n.InTypes(), Err: err}
			}
		}
	}
	return nil
}

// verifyPending proves of operand k of a node that it is what an await reads, if it is
// in flight.
func verifyPending(n *Node, k int, v Value, awaited map[NodeID]bool) error {
	_, sent := v.Node.Sends()
	switch {
	case sent && !n.Awaits():
		return fmt.Errorf("operand %s is in flight: await it first", v)
	case !sent && n.Awaits():
		return fmt.Errorf("awaits %s, which nobody has sent", v)
	case sent && awaited[v.Node.ID]:
		return fmt.Errorf("awaits %s a second time", v)
	}
	if sent {
		awaited[v.Node.ID] = true
	}
	return nil
}

// exchangeEdges visits edges that keep the exchanges of live nodes in order: a send
// comes after the one created before it, on every worker alike, and an await after all
// sends created before it, so that no worker waits before it has given what others wait
// for.
func (g *Graph) exchangeEdges(live []bool, visit func(from, to NodeID)) {
	if !g.network {
		return
	}
	last := NodeID(-1)
	for _, n := range g.nodes {
		if !live[n.ID] || !n.Exchanges() {
			continue
		}
		if last >= 0 && (!n.Awaits() || n.In[0].Node.ID != last) {
			visit(last, n.ID)
		}
		if !n.Awaits() {
			last = n.ID
		}
	}
}
