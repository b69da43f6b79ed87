package graph

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Exchange is what a node sends: every worker of a job has one of the same name, type
// and How in the same place of its step.
type Exchange struct {
	Name string // unique in a step: that of the variable that it is for
	How  How
	// Every is how many executions come to one exchange: only where the last operand of
	// the node, f32[], is a multiple of it. 0 means all.
	Every int
	// Parts is how many workers exchange: of folds that divide or join values, and of any
	// that is [Exchange.Joint]. 0 of others, which are among any number.
	Parts int
	// Root is the rank, among those who exchange, that a [Copy] is of, or a [Reduce] for.
	Root int
	// To is, of a [Permute], for every rank the one that its value goes to, or -1 for none. No
	// rank is in it twice.
	To []int
	// Rows are, of a [GatherSome] and a [ScatterSome], how many rows what is pending has, by
	// axis 0 and as many after it as make so many, and Each how many ranks have to do with each
	// of them at most: which ones operand 1 of the node says, i32[Rows Each], in which -1 is
	// none. All who exchange have the same there.
	//
	// Of a [SwapSome] operands 1 and 2 say, i32[Parts], how many rows of block i, its first by
	// axis 0, go to rank i, and how many come from there.
	Rows, Each int
	// Joint: without the other workers it has no sense. A session without a network
	// refuses it, unless Parts is 1.
	Joint bool
}

// Due reports whether execution number step, from 1, is one that exchanges.
func (x Exchange) Due(step float32) bool { return x.Every < 2 || int64(step)%int64(x.Every) == 0 }

// Alone makes of what has been sent, where data begins, what is awaited where nobody
// exchanges anything: all parts are it, and every block stays where it is.
func (x Exchange) Alone(data []byte) {
	if !x.How.Fold.joins() || x.Parts < 1 {
		return
	}
	part := len(data) / x.Parts
	for at := part; part > 0 && at < len(data); at += part {
		copy(data[at:], data[:part])
	}
}

// AloneSome is, of a [SwapSome] of a value of type t, what Alone is: those rows of each block
// stay that are to go, by operand 1. Without data it is only the error: of which rows there are
// none.
func (x Exchange) AloneSome(t Type, data []byte, counts []int32) error {
	if x.How.Fold != SwapSome {
		return nil
	}
	rows := t.Size(0) / x.Parts
	for i, n := range counts {
		if n < 0 || int(n) > rows {
			return fmt.Errorf("%d rows for rank %d: a block has %d", n, i, rows)
		}
	}
	if len(data) == 0 {
		return nil
	}
	block := len(data) / x.Parts
	for i, n := range counts {
		clear(data[i*block+int(n)*(block/rows) : (i+1)*block])
	}
	return nil
}

// Pending is the type of what the network has of a value of type t: t, but for the parts of
// a [Gather], of some rows or all, which are all along axis 0, of scalars along a new one. The
// error says why a value of type t cannot be exchanged so.
func (x Exchange) Pending(t Type) (Type, error) {
	switch f := x.How.Fold; {
	case f.joins():
		return x.join(t)
	case f.blocks() || f == Swap || f == SwapSome:
		_, err := x.divide(t)
		return t, err
	}
	return t, nil
}

// Result is the type of what is awaited of a value of type t: of a [Scatter], of some rows or
// all, one block of it along axis 0, and else what is pending.
func (x Exchange) Result(t Type) (Type, error) {
	if x.How.Fold.blocks() {
		return x.divide(t)
	}
	return x.Pending(t)
}

func (x Exchange) join(t Type) (Type, error) {
	out := Type{DType: t.DType, Shape: []Dim{{Size: x.Parts}}}
	if t.Rank() == 0 {
		return out, nil
	}
	if x.Parts < 1 || t.Size(0) > math.MaxInt/x.Parts {
		return Type{}, errors.New("the parts together are too long")
	}
	out.Shape = slices.Clone(t.Shape)
	out.Shape[0] = Dim{Size: x.Parts * t.Size(0)}
	return out, nil
}

func (x Exchange) divide(t Type) (Type, error) {
	if t.Rank() == 0 || x.Parts < 1 || t.Size(0)%x.Parts != 0 {
		return Type{}, fmt.Errorf("axis 0 of %s does not divide among %d workers", t, x.Parts)
	}
	out := Type{DType: t.DType, Shape: slices.Clone(t.Shape)}
	out.Shape[0] = Dim{Name: t.Shape[0].Name, Size: t.Size(0) / x.Parts}
	return out, nil
}

// Sender is implemented by the operation that hands its first operand to the network.
// Its result is the network's, and one node reads it: that of an [Awaiter]. Its type is
// [Exchange.Pending] of the operand's; of a [Gather] it has so many times the operand's bytes,
// of which these come first until they are exchanged.
type Sender interface{ Exchange() Exchange }

// Awaiter is implemented by the operation whose result is what the exchange has made of
// the value that its operand has sent. Its type is [Exchange.Result] of that value's: it has
// the first of the bytes that the operand has, or all of them.
type Awaiter interface{ Awaits() }

// Peer is implemented by the operation that is a whole exchange, between devices that reach each
// other's memory: the others copy its operand from where it is, and its result is what comes of
// all operands. Its type is [Exchange.Pending] of the operand's.
type Peer interface{ Peer() Exchange }

// Peers reports whether the node is an exchange between devices, and which.
func (n *Node) Peers() (Exchange, bool) {
	p, ok := n.Op.(Peer)
	if !ok {
		return Exchange{}, false
	}
	return p.Peer(), true
}

// Gives is the exchange that the node gives a value to, if it does: it sends it, or is all of the
// exchange.
func (n *Node) Gives() (Exchange, bool) {
	if x, ok := n.Sends(); ok {
		return x, true
	}
	return n.Peers()
}

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

// Exchanges reports whether the node sends, awaits or is an exchange between devices. Such a node
// is executed once, and in host memory unless it is the last.
func (n *Node) Exchanges() bool {
	_, gives := n.Gives()
	return gives || n.Awaits()
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
	case err == nil && (how.Fold > Sum || how.Along != ""):
		err = fmt.Errorf("%s is shared by %s: want one value of all, a mean or a sum", v, how)
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
		return verifyResult(n, v)
	}
	return nil
}

// verifyResult proves of an await that it takes what the exchange makes of what v has sent.
func verifyResult(n *Node, v Value) error {
	x, _ := v.Node.Sends()
	t, err := x.Result(v.Node.In[0].Type())
	if err == nil && !n.Out[0].Equal(t) {
		err = fmt.Errorf("awaits %s as %s: its %s comes back as %s", v, n.Out[0], x.How, t)
	}
	return err
}

// exchangeEdges visits edges that keep the exchanges of live nodes in order: a send
// comes after the one created before it, on every worker alike, and an await after all
// sends created before it, so that no worker waits before it has given what others wait
// for. An exchange between devices is a send that waits, too.
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
