package executor

import (
	"context"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Exchange is a value that all workers of a job have of one name, and that each of them
// gives for what they make of it together.
type Exchange struct {
	Name string // unique in a step: that of the variable that it is for
	Type tensor.Type
	How  graph.How // among whom, too: How.Along
	// Parts is how many workers exchange, or 0 of a fold that is among any number. Of a
	// [graph.Gather], Data are so many equal parts: the first is this worker's value when it
	// is sent, and each is the one of its rank in the end. Of a [graph.Scatter] and a
	// [graph.Swap], Data are so many blocks; of a Scatter, the first is what has become of
	// them in the end, and the others do not matter.
	Parts int
	Root  int   // of a [graph.Copy] and a [graph.Reduce]: the rank among those who exchange
	To    []int // of a [graph.Permute]: for each of these ranks, the one that its value goes to
	// Rows and Each are, of a [graph.GatherSome] and a [graph.ScatterSome], which are like those
	// two, how many rows Data have, and how many ranks for each are in Ranks. These are whoever
	// sends it's again when Send has returned.
	Rows, Each int
	Ranks      []int32
	// Going and Coming are, of a [graph.SwapSome], how many rows of the block of each rank, its
	// first by axis 0, go there, and how many come from there in their place, with zeros after
	// them. They are whoever sends it's again, too.
	Going, Coming []int32
	Data          []byte // the value, and in the end what has become of it; nobody else touches it
}

// Network carries the exchanges of a job's steps. All workers send the same names, of
// the same types, in the same order, whatever their plans; of exchanges along an axis, those of
// a line along it. Every name is awaited once, in the step that sent it; a variable that
// workers share, which a step sends when it has updated it, in the next that touches it, or by
// who asks the session for it. Send and Await are called from two goroutines at the same time,
// each for one exchange after the other.
type Network interface {
	// Send takes a value, whose Data, in the machine's order of bytes, is the network's
	// until Await of its name has returned without an error. It may block while there is
	// no room for more.
	Send(ctx context.Context, x Exchange) error
	// Await returns once Data is what the exchange has made of all workers' values, the
	// same bits on each of them.
	Await(ctx context.Context, name string) error
	// Abandon gives up what has been sent and not been awaited, and returns once no Data
	// is touched any more. It is called after a step that failed, or whose context
	// ended, and when a session is closed, if there is any; while neither Send nor Await
	// is under way.
	Abandon()
}

// Place is bytes of a device's memory that other devices may copy.
type Place interface {
	// Pull copies bytes, at an offset, of a place on this or another device, to an offset of this
	// one, and returns when they are there.
	Pull(to int64, from Place, at, bytes int64) error
	// Clear makes all of it zeros.
	Clear() error
}

// Peer is implemented by networks of workers whose devices reach each other's memory.
type Peer interface {
	Network
	// Exchange is a whole exchange, which is not awaited, and has no Data: of what every worker
	// has at its from, it makes what it should at its to, by copies from device to device. It
	// returns when both are the caller's again, also after an error. All workers have it in the
	// same place among what they send.
	Exchange(ctx context.Context, x Exchange, from, to Place) error
}

// Agreer is implemented by networks whose workers can find out, before the first step, that
// they have not the same exchanges.
type Agreer interface {
	// Agree returns once it is sure that all workers have the same exchanges in the same
	// order, and of those along an axis all of a line: of every target, in the order in which
	// a step sends them, those of its Data that are not known yet. The error names the first
	// that differs, and on which worker. It is called once, before anything is sent.
	Agree(ctx context.Context, targets []Exchanges) error
}

// Exchanges are those of a target, in the order in which a step sends them. They have no
// Data.
type Exchanges struct {
	Target string
	List   []Exchange
}

// Gatherer is implemented by networks of jobs that go on without a worker that is lost in
// the middle of a step. Their plans gather: all awaits of a step come after all its sends have
// been handed over, and after Gather: it returns once all that was sent and not awaited is what
// the exchanges have made of it. So nothing is updated in a step that a network breaks,
// and whatever is updated after that needs no network any more.
type Gatherer interface {
	Network
	Gather(ctx context.Context) error
}
