package workers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomem/gomem/distrib"
)

// LeftError is a worker that has ended before the run did.
type LeftError struct {
	Rank int    // its number in the job, which it was started with
	Why  string // in its own words; "" if it thought that it was done
	Err  error  // what its end looks like from here, if it did not say why; a *distrib.LostError
	Told bool   // another worker has noticed, and ends for it
}

// Error is one line that names the worker.
func (e *LeftError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("worker %d is gone: %v", e.Rank, e.Err)
	case e.Why == "":
		return fmt.Sprintf("worker %d has ended already", e.Rank)
	}
	return fmt.Sprintf("worker %d failed: %s", e.Rank, e.Why)
}

// Unwrap is what its end looks like from here.
func (e *LeftError) Unwrap() error { return e.Err }

// DeskOptions are how long to wait, and who hears of it.
type DeskOptions struct {
	// Stall is how long one waits before Log is told for whom; 0: 10 s. It doubles with
	// every line.
	Stall time.Duration
	// Timeout ends a wait with a *[distrib.StallError]; 0: a wait for workers that are
	// connected never ends.
	Timeout time.Duration
	Log     func(string) // nil: nobody
}

// Desk is where the workers of a job agree: a [train.Peers].
type Desk struct {
	transport distrib.Transport
	options   DeskOptions
	members   []distrib.NodeID // by rank
	rank      int
	ctx       context.Context
	fail      context.CancelCauseFunc

	mu      sync.Mutex
	change  chan struct{} // closed when something has come
	said    [][][]byte    // by rank: what has been told and not been heard
	ended   []error       // by rank: a *LeftError once it has left
	bad     *distrib.NonsenseError
	told    []int // by rank: how often
	answers []int // by rank: how often it has said that it is there
	stalest int
	others  distrib.Handler
	left    bool
}

// deskTag marks the messages of class Control that are a desk's.
const deskTag = 0x6465736b << 32

// The kinds of messages, the first byte of a head.
const (
	tell = iota
	leave
	ask        // whether one is there
	answer     // that one is
	blameGone  // leave, since another one is gone; its number follows
	blameFault // leave, since another one has said why it fails
)

// maxSays is the most bytes that a worker tells at once, and piece of a part of a body.
const maxSays, piece = 64 << 20, 1 << 18

// NewDesk takes over a transport: what is not for the desk goes to the user of
// [Desk.Transport]. members are the nodes by rank, this one among them.
func NewDesk(t distrib.Transport, members []distrib.NodeID, o DeskOptions) (*Desk, error) {
	d := &Desk{transport: t, options: o, members: members,
		rank: slices.Index(members, t.Self()), change: make(chan struct{}),
		said: make([][][]byte, len(members)), ended: make([]error, len(members)),
		told: make([]int, len(members)), answers: make([]int, len(members))}
	if d.rank < 0 {
		return nil, fmt.Errorf("node %d is none of the workers %v", t.Self(), members)
	}
	if d.options.Stall == 0 {
		d.options.Stall = 10 * time.Second
	}
	if d.options.Log == nil {
		d.options.Log = func(string) {}
	}
	d.ctx, d.fail = context.WithCancelCause(context.Background())
	return d, nil
}

// Rank is this worker's.
func (d *Desk) Rank() int { return d.rank }

// number is what a worker is called: its node's.
func (d *Desk) number(rank int) int { return int(d.members[rank]) }

// Context ends when a worker has left without being done; its cause is a *[LeftError].
func (d *Desk) Context() context.Context { return d.ctx }

// Within is a context that ends with either one, and with a *[LeftError] if it is the
// desk's. The function releases it.
func (d *Desk) Within(ctx context.Context) (context.Context, func()) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.ctx, func() { cancel(context.Cause(d.ctx)) })
	return both, func() { stop(); cancel(nil) }
}

// Tell tells all workers.
func (d *Desk) Tell(ctx context.Context, says []byte) error {
	return d.say(ctx, says, func(int) bool { return true })
}

// Give tells one worker, and all others nothing.
func (d *Desk) Give(ctx context.Context, to int, says []byte) error {
	return d.say(ctx, says, func(rank int) bool { return rank == to })
}

// say tells some workers, and the others nothing.
func (d *Desk) say(ctx context.Context, says []byte, to func(rank int) bool) error {
	if len(says) > maxSays {
		return fmt.Errorf("%d bytes to tell are more than %d", len(says), maxSays)
	}
	if err := d.failed(); err != nil {
		return err
	}
	says = bytes.Clone(says)
	heard := func(rank int) []byte {
		if to(rank) {
			return says
		}
		return nil
	}
	d.mu.Lock()
	d.said[d.rank] = append(d.said[d.rank], heard(d.rank))
	d.told[d.rank]++
	d.stalest = max(d.stalest, d.told[d.rank]-1-slices.Min(d.told))
	d.mu.Unlock()
	d.toAll([]byte{tell}, heard, nil)
	return ctx.Err()
}

// Apart is how much more often than this worker another one has told something: the one
// that has the least, and the most. With something told at each step, that is steps.
func (d *Desk) Apart() (least, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Min(d.told) - d.told[d.rank], slices.Max(d.told) - d.told[d.rank]
}

// Stalest is how much more often this worker has told something than another one had, at
// most, before it told again.
func (d *Desk) Stalest() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stalest
}

// Blame waits a moment for a worker that has left to say why, and is its error, or nil if
// all are there: what came of it may be noticed before.
func (d *Desk) Blame() error {
	select {
	case <-d.ctx.Done():
	case <-time.After(patience):
	}
	return d.failed()
}

// Nonsense is who has sent what cannot be used, also if the group ended by something else; nil:
// nobody.
func (d *Desk) Nonsense() *distrib.NonsenseError {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bad
}

// Lost waits a moment for a worker to leave, and reports whether it is gone without a word.
func (d *Desk) Lost(rank int) bool {
	limit := time.After(patience)
	for {
		d.mu.Lock()
		left, _ := errors.AsType[*LeftError](d.ended[rank])
		change := d.change
		d.mu.Unlock()
		if left != nil {
			return left.Err != nil && !left.Told
		}
		select {
		case <-change:
		case <-limit:
			return false
		}
	}
}

// failed is why a worker has left, if one failed.
func (d *Desk) failed() error { return context.Cause(d.ctx) }

// toAll sends every other worker a message of its own; done is called when each has been
// delivered.
func (d *Desk) toAll(head []byte, body func(rank int) []byte, done func(error)) {
	for rank, node := range d.members {
		if rank == d.rank {
			continue
		}
		d.transport.Send(node, &distrib.Msg{Class: distrib.Control, Tag: deskTag,
			Head: head, Body: slices.Collect(slices.Chunk(body(rank), piece)), Done: done})
	}
}

// Hear waits for what all workers have told next, by rank.
func (d *Desk) Hear(ctx context.Context) ([][]byte, error) {
	began, stall := time.Now(), d.options.Stall
	for {
		all, missing, change, err := d.ready()
		if all != nil || err != nil {
			return all, err
		}
		timer := time.NewTimer(time.Until(began.Add(stall)))
		select {
		case <-change:
		case <-d.ctx.Done(): // given up here, where nobody has left
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C:
			d.options.Log(fmt.Sprintf("waiting for worker %s since %v",
				listed(d.numbers(missing)), stall))
			stall *= 2
			if t := d.options.Timeout; t > 0 && time.Since(began) >= t {
				return nil, &distrib.StallError{Nodes: d.nodes(missing), What: "agreement"}
			}
			if t := d.options.Timeout; t > 0 {
				stall = min(stall, t)
			}
		}
		timer.Stop()
	}
}

// ready takes what all have told next, or says who is missing, and what to wait for. It looks
// at all in one moment: who tells its last and leaves may do both between two looks.
func (d *Desk) ready() (all [][]byte, missing []int, change <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for rank, q := range d.said {
		if len(q) == 0 {
			missing = append(missing, rank)
		}
	}
	if missing != nil {
		return nil, missing, d.change, d.hopeless(missing)
	}
	for rank, q := range d.said {
		all = append(all, q[0])
		d.said[rank] = q[1:]
	}
	return all, nil, nil, nil
}

// hopeless is why some who are missing will never tell anything. The desk is locked.
func (d *Desk) hopeless(missing []int) error {
	if err := d.failed(); err != nil {
		return err
	}
	for _, rank := range missing {
		if d.ended[rank] != nil {
			return d.ended[rank]
		}
	}
	return nil
}

func (d *Desk) nodes(ranks []int) (ids []distrib.NodeID) {
	for _, r := range ranks {
		ids = append(ids, d.members[r])
	}
	return ids
}

func (d *Desk) numbers(ranks []int) (out []int) {
	for _, r := range ranks {
		out = append(out, d.number(r))
	}
	return out
}

// listed is "1, 2 and 3".
func listed(numbers []int) string {
	text := fmt.Sprint(numbers[0])
	for i, r := range numbers[1:] {
		if i == len(numbers)-2 {
			text += fmt.Sprintf(" and %d", r)
			continue
		}
		text += fmt.Sprintf(", %d", r)
	}
	return text
}

// maxWhy is the most bytes of a reason that are sent, and patience how long it may take.
const (
	maxWhy   = 2 << 10
	patience = time.Second
)

// Leave tells the others that this worker has ended. Only the first call counts. It returns
// when they have been told, or have not listened for long.
func (d *Desk) Leave(why error) {
	d.mu.Lock()
	again := d.left
	d.left = true
	d.mu.Unlock()
	if again {
		return
	}
	head, text := []byte{leave}, ""
	if why != nil {
		text = why.Error()
		if left, ok := errors.AsType[*LeftError](why); ok && left.Rank != d.number(d.rank) {
			head, text = left.blame() // the one who failed first, and not who heard of it
		}
		text = text[:min(len(text), maxWhy)]
	}
	told := make(chan struct{}, len(d.members))
	d.toAll(head, func(int) []byte { return []byte(text) }, func(error) { told <- struct{}{} })
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for range len(d.members) - 1 {
		select {
		case <-told:
		case <-limit.C:
			return
		}
	}
}

// blame is how the end of a worker is told by another one that ends for it.
func (e *LeftError) blame() (head []byte, why string) {
	kind, why := byte(blameFault), e.Why
	if e.Err != nil {
		kind, why = blameGone, e.Err.Error()
	}
	return binary.LittleEndian.AppendUint32([]byte{kind}, uint32(e.Rank)), why
}

// blamed is the end of a worker in its own words: its own failure, or that of another one.
func (d *Desk) blamed(rank int, head []byte, text string) *LeftError {
	left := &LeftError{Rank: d.number(rank), Why: text}
	if len(head) > 1 {
		left.Rank, left.Told = int(binary.LittleEndian.Uint32(head[1:])), true
	}
	if head[0] == blameGone {
		left.Why, left.Err = "", errors.New(text)
	}
	return left
}

// Start begins to deliver where there is no user of [Desk.Transport], whose Serve does it
// otherwise.
func (d *Desk) Start() { d.transport.Serve(d) }

// Receive takes a message of the transport.
func (d *Desk) Receive(from distrib.NodeID, m *distrib.Msg) {
	if m.Class != distrib.Control || m.Tag != deskTag {
		d.mu.Lock()
		h := d.others
		d.mu.Unlock()
		if h != nil {
			h.Receive(from, m)
		}
		return
	}
	rank := slices.Index(d.members, from)
	if rank < 0 || !wellFormed(m.Head) {
		return
	}
	says := slices.Concat(m.Body...)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended[rank] != nil || len(says) > maxSays {
		return
	}
	switch {
	case m.Head[0] == ask:
		d.transport.Send(from, &distrib.Msg{Class: distrib.Control, Tag: deskTag,
			Head: []byte{answer}})
		return
	case m.Head[0] == answer:
		d.answers[rank]++
		return
	case m.Head[0] == tell:
		d.said[rank] = append(d.said[rank], says)
		d.told[rank]++
	case len(says) == 0 && m.Head[0] == leave:
		d.ended[rank] = &LeftError{Rank: d.number(rank)}
	default:
		d.ended[rank] = d.blamed(rank, m.Head, string(says))
		d.fail(d.ended[rank])
	}
	d.wake()
}

// wellFormed reports whether a head is one of a desk's messages.
func wellFormed(head []byte) bool {
	switch {
	case len(head) == 0 || head[0] > blameFault:
		return false
	case head[0] == blameGone || head[0] == blameFault:
		return len(head) == 5
	}
	return len(head) == 1
}

// wake lets everybody who waits look again. The desk is locked.
func (d *Desk) wake() {
	close(d.change)
	d.change = make(chan struct{})
}

// Down notes that a worker is gone.
func (d *Desk) Down(from distrib.NodeID, err error) {
	d.mu.Lock()
	if bad, ok := errors.AsType[*distrib.NonsenseError](err); ok && d.bad == nil {
		d.bad = bad
	}
	if rank := slices.Index(d.members, from); rank >= 0 && d.ended[rank] == nil {
		d.ended[rank] = &LeftError{Rank: d.number(rank), Err: err}
		d.fail(d.ended[rank])
	}
	d.wake()
	h := d.others
	d.mu.Unlock()
	if h != nil {
		h.Down(from, err)
	}
}

// Transport is the transport for all that is not the desk's, for one user.
func (d *Desk) Transport() distrib.Transport { return desked{d.transport, d} }

// desked is a transport behind a desk.
type desked struct {
	distrib.Transport
	desk *Desk
}

// Drop gives a node up.
func (t desked) Drop(node distrib.NodeID, why error) { distrib.Drop(t.Transport, node, why) }

// Serve begins to deliver, to the desk as well.
func (t desked) Serve(h distrib.Handler) {
	t.desk.mu.Lock()
	t.desk.others = h
	t.desk.mu.Unlock()
	t.desk.Start()
}
