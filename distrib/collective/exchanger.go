package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Elem is the type of an exchange's elements.
type Elem uint8

// The types.
const (
	F32 Elem = iota
	F64
	I32
	I64
	U8 // bytes of anything, which are not added up
)

var elemSizes = [...]int{F32: 4, F64: 8, I32: 4, I64: 8, U8: 1}

// Exchange is a value that every node has of one name, and that each of them gives for what
// they make of it together.
type Exchange struct {
	Name string
	Type string // "f32[512,512]", for messages; the same on all nodes
	Elem Elem
	Op   Op
	Via  Via
	Root int   // of Copied: whose value it is
	To   []int // of Permuted: see [Permute]
	Rows Rows  // of GatheredSome and ScatteredSome
	// Counts are of SwappedSome; they are the exchanger's as long as Data are.
	Counts Counts
	// Data is the exchanger's from Send until Await has returned without an error, or
	// Abandon or Close has. For Gathered it is as many equal parts as there are nodes, of
	// which this node brings the one of its rank; for Scattered as many, of which it gets
	// that one, and the others do not matter; for Swapped as many, each of which goes to its
	// rank and is replaced by what comes from there. GatheredSome and ScatteredSome are like
	// Gathered and Scattered, and Rows are the exchanger's as long as Data are.
	Data []byte
}

// label is how an exchange is called in messages.
func (x *Exchange) label() string {
	s := fmt.Sprintf("exchange %s %s %v/%v", x.Name, x.Type, x.Op, x.Via)
	if x.Via == Permuted {
		s += fmt.Sprint(" to ", x.To)
	}
	if x.Via.some() {
		s += fmt.Sprintf(" by %d of %d ranks", x.Rows.Each, len(x.Rows.Ranks))
	}
	if x.Via == SwappedSome {
		s += fmt.Sprintf(" of %d rows at most", x.Counts.Most)
	}
	return s
}

// ExchangerOptions are an [Exchanger]'s, the same on all nodes.
type ExchangerOptions struct {
	// Owners is how many nodes, the first by rank, own blocks for [Servers]; 0: all.
	Owners int
}

func (o ExchangerOptions) owners(n int) (int, error) {
	switch {
	case n < 1:
		return 0, fmt.Errorf("collective: exchanges among %d nodes", n)
	case o.Owners < 0 || o.Owners > n:
		return 0, fmt.Errorf("collective: %d owners among %d nodes", o.Owners, n)
	case o.Owners == 0:
		return n, nil
	}
	return o.Owners, nil
}

// Exchanger carries the exchanges of training steps: what is sent is exchanged in the
// background, in place. All nodes send the same exchanges in the same order, which is
// checked: the first time that a name is sent its label goes to the next rank, and every
// message has a hash of it. Send, Await and Abandon may be called from several goroutines,
// but for one name at a time.
//
// Nothing is fused by chance: what is added to what does not depend on timing.
type Exchanger struct {
	group  *Group
	order  *Group // carries notices
	owners int
	ctx    context.Context
	cancel context.CancelCauseFunc
	lanes  [lanes]*lane
	ends   sync.WaitGroup

	mu    sync.Mutex
	jobs  map[string]*job
	known map[string]int // names that were sent before: how many small ones were before each
	seq   uint64
	small int           // names of small ones
	news  queue[notice] // labels to compare with the neighbours'
	shut  bool
}

// job is an exchange under way.
type job struct {
	x      Exchange
	label  string
	check  uint64
	named  bool
	holder int // which owner has it as a whole, if it is tiny
	done   chan struct{}
	err    error
}

// NewExchanger makes an exchanger for the members of a group, which stays free for other
// use. It is a call of [Mux.Group] as far as order is concerned.
func NewExchanger(g *Group, o ExchangerOptions) (*Exchanger, error) {
	owners, err := o.owners(g.Size())
	if err != nil {
		return nil, err
	}
	e := &Exchanger{group: g, owners: owners, jobs: map[string]*job{}, known: map[string]int{},
		news: newQueue[notice]()}
	e.order, err = g.mux.group(g.members, noticeSize, notices*noticeSize)
	if err != nil {
		return nil, err
	}
	for i := range e.lanes {
		chunk, window := room(i, g.chunk, g.window)
		lg, err := g.mux.group(g.members, chunk, window)
		if err != nil {
			e.closeGroups()
			return nil, err
		}
		e.lanes[i] = &lane{lg, newQueue[*job]()}
	}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	for _, l := range e.lanes {
		e.ends.Go(func() { e.serve(l) })
	}
	if g.Size() > 1 {
		e.ends.Go(e.compare)
	}
	return e, nil
}

// groups are all that the exchanger made.
func (e *Exchanger) groups() []*Group {
	all := []*Group{e.order}
	for _, l := range e.lanes {
		if l != nil {
			all = append(all, l.group)
		}
	}
	return all
}

func (e *Exchanger) closeGroups() {
	for _, g := range e.groups() {
		g.Close()
	}
}

// Send hands over an exchange. It waits for nothing.
func (e *Exchanger) Send(x Exchange) error {
	if err := e.check(&x); err != nil {
		return fmt.Errorf("collective: exchange %q: %w", x.Name, err)
	}
	if err := context.Cause(e.ctx); err != nil {
		return &PoisonedError{err}
	}
	e.mu.Lock()
	if e.jobs[x.Name] != nil {
		e.mu.Unlock()
		return fmt.Errorf("collective: exchange %q is sent before its last one was awaited", x.Name)
	}
	place, known := e.known[x.Name]
	if !known {
		place = e.small
	}
	j := &job{x: x, label: x.label(), named: !known, holder: place % e.owners,
		done: make(chan struct{})}
	e.seq++
	j.check = hash(e.seq, j.label)
	n := notice{e.seq, j.check, j.label}
	l := laneOf(Spec{len(x.Data), x.Via}, e.group.Size(), e.owners, place)
	if l >= smallLanes && !known {
		e.small++
	}
	e.jobs[x.Name], e.known[x.Name] = j, place
	e.lanes[l].push(j)
	if j.named && e.group.Size() > 1 {
		e.news.push(n)
	}
	e.mu.Unlock()
	return nil
}

func (e *Exchanger) check(x *Exchange) error {
	if int(x.Elem) >= len(elemSizes) || int(x.Via) >= len(vias) || x.Op > Mean {
		return errors.New("no such type, way or reduction")
	}
	each := elemSizes[x.Elem]
	switch n := e.group.Size(); {
	case x.Name == "":
		return errors.New("it has no name")
	case x.Op == Mean && x.Elem >= I32 && !x.Via.moves():
		return errMean
	case x.Elem == U8 && !x.Via.moves():
		return errors.New("bytes are moved, and not added up")
	case x.Root < 0 || x.Root >= n:
		return fmt.Errorf("root %d of %d nodes", x.Root, n)
	case x.Via.divides() && len(x.Data)%(each*n) != 0:
		return fmt.Errorf("%d bytes are not equal parts of %d nodes", len(x.Data), n)
	case x.Via == Permuted:
		if err := checkPermutation(x.To, n); err != nil {
			return err
		}
	case x.Via.some():
		if err := x.Rows.check(n, len(x.Data), each); err != nil {
			return err
		}
	case x.Via == SwappedSome:
		if err := x.Counts.check(n, e.group.Rank(), len(x.Data), each); err != nil {
			return err
		}
	}
	switch x.Elem {
	case U8:
		return nil
	case F64, I64:
		_, err := viewOf[int64](x.Data)
		return err
	}
	_, err := viewOf[float32](x.Data)
	return err
}

func hash(seq uint64, label string) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, seq))
	h.Write([]byte(label))
	return h.Sum64()
}

// serve does the exchanges of a lane.
func (e *Exchanger) serve(l *lane) {
	for j, ok := l.pop(); ok; j, ok = l.pop() {
		if j.err = context.Cause(e.ctx); j.err == nil {
			j.err = e.do(l.group, j)
		}
		if j.err != nil {
			e.fail(j.err)
		}
		close(j.done)
	}
}

func (e *Exchanger) do(g *Group, j *job) error {
	switch j.x.Elem {
	case F64:
		return doOf[float64](e, g, j)
	case I32:
		return doOf[int32](e, g, j)
	case I64:
		return doOf[int64](e, g, j)
	case U8:
		return doOf[uint8](e, g, j)
	}
	return doOf[float32](e, g, j)
}

func doOf[T Number](e *Exchanger, g *Group, j *job) error {
	x, err := viewOf[T](j.x.Data)
	if err != nil {
		return err
	}
	do, op := wayOf[T](e, g, j)
	how := j.x.Op
	if j.x.Via.moves() {
		how = Sum
	}
	arg := uint64(how)
	if j.x.Via == Copied {
		arg = uint64(j.x.Root)
	}
	c := callOf(op, arg, x)
	c.label, c.named, c.check = j.label, j.named, j.check
	return run(e.ctx, g, c, how, x, do)
}

// wayOf is what an exchange does on a group, and its name in signatures.
func wayOf[T Number](e *Exchanger, g *Group, j *job) (do func(link, []T, Op) error, op uint64) {
	x := &j.x
	switch resolve(x.Via, g.Size(), e.owners) {
	case Servers:
		do = func(l link, v []T, how Op) error { return pushPullIn(l, v, e.owners, how) }
		if len(x.Data) < tiny {
			do = func(l link, v []T, how Op) error {
				return pushPullWhole(l, v, e.owners, j.holder, how)
			}
		}
		return do, pushPull
	case Gathered:
		return func(l link, v []T, _ Op) error { return gatherIn(l, v, 0) }, allGather
	case Scattered:
		return scatterIn[T], reduceScatter
	case Swapped:
		return func(l link, v []T, _ Op) error { return swapIn(l, v) }, allToAll
	case Permuted:
		return func(l link, v []T, _ Op) error { return permuteIn(l, v, x.To) }, permute
	case GatheredSome:
		do = func(l link, v []T, how Op) error { return gatherSomeIn(l, v, how, x.Rows) }
		return do, gatherSome
	case ScatteredSome:
		do = func(l link, v []T, how Op) error { return scatterSomeIn(l, v, how, x.Rows) }
		return do, scatterSome
	case SwappedSome:
		return func(l link, v []T, _ Op) error { return swapSomeIn(l, v, x.Counts) }, swapSome
	case Copied:
		fan := 1 // along a chain, from the rank before
		if len(x.Data) < Small {
			fan = 2
		}
		return func(l link, v []T, _ Op) error { return spread(l, v, x.Root, fan) }, broadcast
	}
	return allReduceIn[T], allReduce
}

// fail ends all exchanges, here and on the other nodes.
func (e *Exchanger) fail(err error) {
	e.cancel(err)
	cause := context.Cause(e.ctx)
	if cause == errClosed {
		return // in peace: the others may still be at what is done here
	}
	for _, g := range e.groups() {
		g.Abort(cause)
	}
}

// Await returns when an exchange is done, or cannot be done.
func (e *Exchanger) Await(ctx context.Context, name string) error {
	e.mu.Lock()
	j := e.jobs[name]
	e.mu.Unlock()
	if j == nil {
		return fmt.Errorf("collective: exchange %q is awaited and was not sent", name)
	}
	if err := j.wait(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	delete(e.jobs, name)
	e.mu.Unlock()
	return nil
}

// Gather returns when all exchanges that were sent and not awaited are done, or one of them
// cannot be done. They are still to be awaited.
func (e *Exchanger) Gather(ctx context.Context) error {
	e.mu.Lock()
	jobs := slices.Collect(maps.Values(e.jobs))
	e.mu.Unlock()
	slices.SortFunc(jobs, func(a, b *job) int { return strings.Compare(a.x.Name, b.x.Name) })
	for _, j := range jobs {
		if err := j.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when an exchange is done, or cannot be done.
func (j *job) wait(ctx context.Context) error {
	select {
	case <-j.done:
	case <-ctx.Done():
		return fmt.Errorf("collective: %s: %w", j.label, context.Cause(ctx))
	}
	if j.err != nil {
		return fmt.Errorf("collective: %s: %w", j.label, j.err)
	}
	return nil
}

var errAbandoned = errors.New("its step was abandoned")

// Abandon gives up what was sent and not awaited, if there is any, and returns once no Data
// is touched any more. The other nodes get an error then, and nothing can be sent any more:
// the nodes are not in step. A node that repeats a step whose exchanges it has awaited gets
// out of step, too, and nobody notices: it must not.
func (e *Exchanger) Abandon() {
	e.mu.Lock()
	var jobs []*job
	for _, j := range e.jobs {
		jobs = append(jobs, j)
	}
	e.mu.Unlock()
	if len(jobs) == 0 {
		return
	}
	e.fail(errAbandoned)
	for _, j := range jobs {
		<-j.done
	}
	e.mu.Lock()
	clear(e.jobs)
	e.mu.Unlock()
}

// Err is why the exchanger refuses work, nil if it does not.
func (e *Exchanger) Err() error { return context.Cause(e.ctx) }

// Stats are the counters of all lanes. Scratch and PeakHeld together never exceed [Bytes].
func (e *Exchanger) Stats() (sum Stats) {
	for _, g := range e.groups() {
		s := g.Stats()
		sum.Sent += s.Sent
		sum.Received += s.Received
		sum.Held += s.Held
		sum.PeakHeld += s.PeakHeld
		sum.Scratch += s.Scratch
	}
	return sum
}

// Close abandons what is under way and ends. The group stays its owner's.
func (e *Exchanger) Close() error {
	e.Abandon()
	e.mu.Lock()
	shut := e.shut
	e.shut = true
	e.mu.Unlock()
	if shut {
		return nil
	}
	e.cancel(errClosed)
	for _, l := range e.lanes {
		l.end()
	}
	e.news.end()
	e.ends.Wait()
	e.closeGroups()
	return nil
}
