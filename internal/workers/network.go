package workers

import (
	"context"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
)

// network carries the exchanges of a session's steps: a [gomem.Network].
type network struct {
	member *Member
	via    collective.Via // of exchanges that name none
}

// Send hands over an exchange.
func (n *network) Send(ctx context.Context, x gomem.Exchange) error {
	y := collective.Exchange{Name: x.Name, Type: x.Type.String(), Via: n.via, Data: x.Data}
	switch x.Type.DType {
	case graph.F32:
		y.Elem = collective.F32
	case graph.F64:
		y.Elem = collective.F64
	default:
		return fmt.Errorf("exchange %s: workers exchange f32 and f64, not %s", x.Name, x.Type)
	}
	switch x.How.Fold {
	case graph.Mean:
		y.Op = collective.Mean
	case graph.Gather:
		if err := n.place(x); err != nil {
			return err
		}
		y.Via = collective.Gathered
	}
	if x.How.Via != "" {
		var err error
		if y.Via, err = collective.ParseVia(x.How.Via); err != nil {
			return fmt.Errorf("exchange %s: %w", x.Name, err)
		}
	}
	if err := n.member.at().exchanger.Send(y); err != nil {
		return n.why(err)
	}
	return ctx.Err()
}

// place puts this worker's part of what is gathered where its rank has it.
func (n *network) place(x gomem.Exchange) error {
	workers := n.member.Size()
	if x.Parts != workers || len(x.Data)%workers != 0 {
		return fmt.Errorf("exchange %s: %d bytes are %d parts, of %d workers", x.Name, len(x.Data),
			x.Parts, workers)
	}
	part := len(x.Data) / workers
	copy(x.Data[n.member.Rank()*part:], x.Data[:part])
	return nil
}

// Await waits for what an exchange has made.
func (n *network) Await(ctx context.Context, name string) error {
	ctx, release := n.member.at().desk.Within(ctx)
	defer release()
	return n.why(n.member.at().exchanger.Await(ctx, name))
}

// why is the reason of a worker that has left, if there is one, for what came of it.
func (n *network) why(err error) error {
	if err == nil {
		return nil
	}
	if left := n.member.at().desk.Blame(); left != nil {
		return left
	}
	return asBroken(err, n.member.options.Elastic != nil)
}

// Abandon gives up what was sent and not awaited.
func (n *network) Abandon() { n.member.at().exchanger.Abandon() }

// gathering is the network of a job that goes on without a worker that is lost in a step: a
// [gomem.Gatherer].
type gathering struct{ network }

// Gather waits for what all that was sent has made.
func (n *gathering) Gather(ctx context.Context) error {
	at := n.member.at()
	ctx, release := at.desk.Within(ctx)
	defer release()
	return n.why(at.exchanger.Gather(ctx))
}
