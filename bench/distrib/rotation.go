package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/lda"
	"github.com/gomem/gomem/distrib/orion"
)

// rotation prints how Orion's rotation scales, beside the thesis' figures.
func rotation(t *testing.T, w io.Writer, quick bool) error {
	fmt.Fprintf(w, "Simulated: blocks wait, and links have 1 Gbit/s where nothing else is said. "+
		"A tenth of the bytes of factors goes over links of a tenth of the rate.\n\n")
	for _, print := range []func(*testing.T, io.Writer, bool) error{strongScaling, weakScaling,
		topicScaling, orderings} {
		if err := print(t, w, quick); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "Not compared: Spark and MPI (130x and 14.9x one core of the thesis' own), "+
		"figure 4.8's cache misses: blocks wait here, and touch no memory. V = K = 1 M: topics "+
		"are numbered by 16 bits here.")
	return nil
}

// strongScaling is one set of ratings by more and more workers, by parts of time for each.
func strongScaling(t *testing.T, w io.Writer, quick bool) error {
	f, counts := netflix(), []int{1, 2, 4, 8, 16, 32, 64}
	if quick {
		f, counts = movieLens10M(), counts[:2]
	}
	thesis := map[int]string{8: "6.3x, 79%", 16: "9x, 56%"}
	fmt.Fprintf(w, "%s: a rating takes %v. Times a single worker, and of ideal. The thesis' "+
		"(figure 4.6) are of cores of one machine; it has 80x by 256 cores of 16 machines, "+
		"31%%.\n\n",
		f.name, f.each)
	heading(w, "workers", "parts each", "s a pass", "MB a worker", "x one worker", "of ideal",
		"the thesis")
	for _, n := range counts {
		for _, times := range []int{1, 2, 4} {
			said := ""
			if times == 2 {
				said = thesis[n]
			}
			r, err := f.rotated(t, orion.Options{Workers: n, Times: times}, false, 2)
			if err != nil {
				return err
			}
			row(w, append([]string{fmt.Sprint(n), fmt.Sprint(times)},
				append(r.cells(f, n), said)...)...)
		}
	}
	fmt.Fprintln(w)
	return nil
}

// rotated is what a pass took.
type rotated struct{ seconds, bytes float64 }

// lighter is how many times fewer bytes are sent than are simulated, by links as much slower.
const lighter = 10

// rotated simulates passes by a schedule of Orion's.
func (f factored) rotated(t *testing.T, o orion.Options, ordered bool, passes int) (rotated,
	error) {
	f.rank, f.net.Bps = f.rank/lighter, f.net.Bps/lighter
	s, err := f.scheduled("", o, ordered)
	if err != nil {
		return rotated{}, err
	}
	seconds, bytes, err := f.passes(t, o.Workers, passes, s)
	return rotated{seconds, lighter * bytes}, err
}

// cells are a pass's seconds and bytes, and how it is beside one worker and beside ideal.
func (r rotated) cells(f factored, workers int) []string {
	speedup := f.share(1).Seconds() / r.seconds
	each := r.bytes / 1e6 / float64(workers)
	return []string{fmt.Sprintf("%.4f", r.seconds), fmt.Sprintf("%.1f", each),
		fmt.Sprintf("%.1f", speedup), fmt.Sprintf("%.0f%%", 100*speedup/float64(workers))}
}

// weakScaling has as many more ratings, users and films as workers.
func weakScaling(t *testing.T, w io.Writer, quick bool) error {
	copies := []int{1, 2, 4, 8}
	if quick {
		copies = copies[:1]
	}
	fmt.Fprintf(w, "Netflix's shape, that many times over, with 8 workers for each copy: ideal "+
		"is what one copy would take without a network. All of the films' matrix passes by each "+
		"worker, so that its bytes grow with the copies.\n\n")
	heading(w, "copies", "workers", "s a pass", "MB a worker", "of ideal", "the thesis")
	for _, n := range copies {
		f := netflix()
		f.rows, f.cols, f.ratings = f.rows*n, f.cols*n, f.ratings*n
		if quick {
			f.rank = 10
		}
		r, err := f.rotated(t, orion.Options{Workers: 8 * n}, false, 1)
		if err != nil {
			return err
		}
		c := r.cells(f, 8*n)
		row(w, fmt.Sprint(n), fmt.Sprint(8*n), c[0], c[1], c[3], "unchanged up to 16 copies")
	}
	fmt.Fprintln(w)
	return nil
}

// tokenTime is what a token takes a thread of 1000 topics, as docs/measurements/topics.md has it:
// 2.73 M tokens a second.
const tokenTime = 366 * time.Nanosecond

// topics is a corpus as a factorisation: rows are documents, and columns words, of whose counts
// bytes rotate.
func topics(docs, vocab, tokens int, bytesPerToken float64, threads int) factored {
	return factored{rows: docs, cols: vocab, ratings: tokens, even: true,
		rank: max(1, int(bytesPerToken*float64(tokens)/float64(4*vocab))),
		each: tokenTime / time.Duration(threads), net: perGbit(1)}
}

// entryBytes is how long a topic and its count are in a message, mostly: 2 and 1.
const entryBytes = 3

// tableBytes runs a sampler, and is how many bytes of the word-topic table there are for a token
// after each of the numbers of sweeps. There are a fifth as many tokens as words times topics, as
// in the thesis' corpus: 200 G, 1 M and 1 M.
func tableBytes(quick bool, sweeps ...int) ([]float64, error) {
	d := lda.Drawing{Docs: 2000, Length: 100, Vocab: 1000, Topics: 100, Seed: 1}
	if quick {
		d.Docs, d.Vocab = 20, 100
	}
	c, err := d.Corpus(0)
	if err != nil {
		return nil, err
	}
	m, err := lda.New(c, lda.Options{Topics: d.Vocab, Alpha: 0.1, Beta: 0.01, Seed: 1}, nil)
	if err != nil {
		return nil, err
	}
	var bytes []float64
	done, ctx := 0, context.Background()
	for _, n := range sweeps {
		for ; done < n; done++ {
			if err := m.Sweep(ctx); err != nil {
				return nil, err
			}
		}
		table, err := m.Table(ctx)
		if err != nil {
			return nil, err
		}
		entries := 0
		for _, word := range table.Words() {
			entries += len(word)
		}
		bytes = append(bytes, entryBytes*float64(entries)/float64(c.Tokens()))
	}
	return bytes, nil
}

// topicScaling is LightLDA's corpus, scaled, by 8 and by 24 machines.
func topicScaling(t *testing.T, w io.Writer, quick bool) error {
	vocab, tokens, sweeps := 10_000, 20_000_000, []int{0, 30}
	if quick {
		vocab, tokens, sweeps = 100, 2000, sweeps[:1]
	}
	bytes, err := tableBytes(quick, sweeps...)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "LightLDA's corpus, all a 10000th of the thesis': %d tokens, the table, the "+
		"topic summary and the latency, and so the seconds; a token takes a thread %v. Bytes of "+
		"the table for a token are those of a run of as many tokens for V times K, of V = K = "+
		"1000 and 100 true topics, after so many sweeps. *in step*: all exchange the topic "+
		"summary and a slice after each of P steps. *pipelined* is `--model lda`: two slices a "+
		"worker, of which one is on its way, and the summary comes two steps later. *uneven* "+
		"has steps that take from half to one and a half of their time. 24 machines over 8; the "+
		"thesis has 180 h / 60 h = 3.0x to the same likelihood.\n\n", tokens, tokenTime)
	heading(w, "threads a machine", "sweeps", "bytes a token", "schedule", "s a sweep, 8", "24",
		"MB a machine, 24", "of ideal, 24", "24 over 8", "the thesis")
	for _, threads := range []int{1, 4, 20} {
		for i, b := range bytes {
			f := topics(max(1, tokens/100), vocab, tokens, b, threads)
			f.net.Latency /= 10_000
			if err := f.machines(t, w, fmt.Sprint(threads), fmt.Sprint(sweeps[i]),
				fmt.Sprintf("%.2f", b)); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(w)
	return nil
}

// machines prints a line for each schedule of topics, after some cells.
func (f factored) machines(t *testing.T, w io.Writer, before ...string) error {
	by := map[string][]rotated{}
	var names []string
	for _, n := range []int{8, 24} {
		names = nil
		for _, uneven := range []float64{0, 1} {
			for _, s := range []strategy{f.inStep(n, uneven), f.pipelined(n, uneven)} {
				seconds, bytes, err := f.passes(t, n, 2, s)
				if err != nil {
					return err
				}
				by[s.name] = append(by[s.name], rotated{seconds, bytes})
				names = append(names, s.name)
			}
		}
	}
	for _, name := range names {
		few, many := by[name][0], by[name][1]
		c := many.cells(f, 24)
		row(w, append(before, name, fmt.Sprintf("%.4f", few.seconds), c[0], c[1], c[3],
			fmt.Sprintf("%.2fx", few.seconds/many.seconds), "3.0x")...)
	}
	return nil
}

// visits is how long a worker's steps of a pass take it, perPart for each worker there is: all the
// same, or by so much more or less, at most half of it.
func (f factored) visits(workers, rank, pass int, uneven float64) []time.Duration {
	rng := rand.New(rand.NewPCG(uint64(rank), uint64(pass)))
	steps := make([]time.Duration, perPart*workers)
	for i := range steps {
		each := f.share(workers).Seconds() / float64(len(steps))
		steps[i] = time.Duration(each * (1 + uneven*(rng.Float64()-0.5)) * float64(time.Second))
	}
	return steps
}

// perPart is how many slices of words package lda has for each worker.
const perPart = 2

// called is a schedule's name.
func called(name string, uneven float64) string {
	if uneven > 0 {
		return name + ", uneven"
	}
	return name
}

// inStep has all tell each other after each of as many steps as there are workers what they have
// changed in the topic summary, a byte a topic, and hand the slice on that they visited. There were
// a hundred times as many topics as there are words.
func (f factored) inStep(workers int, uneven float64) strategy {
	return strategy{called("in step", uneven), 1, func(ctx context.Context, g *collective.Group,
		passes int) error {
		n, rank := g.Size(), g.Rank()
		summary, slice := make([]byte, f.cols/100), make([]byte, 4*f.rank*f.cols/workers)
		for pass := range passes {
			visits := f.visits(n, rank, pass, uneven)
			for step := 0; step < len(visits); step += perPart {
				time.Sleep(visits[step] + visits[step+1])
				for by := 1; by < n; by++ {
					if err := swap(ctx, g, (rank+by)%n, (rank+n-by)%n, summary); err != nil {
						return err
					}
				}
				if err := swap(ctx, g, (rank+n-1)%n, (rank+1)%n, slice); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// pipelined is what package lda does: a slice that was visited goes on while the next one is
// visited, and is needed two steps later, as is what was changed of the summary in two steps.
func (f factored) pipelined(workers int, uneven float64) strategy {
	return strategy{called("pipelined", uneven), 1, func(ctx context.Context, g *collective.Group,
		passes int) error {
		for pass := range passes {
			o := &onward{ctx: ctx, g: g, pass: pass, summary: make([]byte, f.cols/100),
				slice: make([]byte, 4*f.rank*f.cols/(perPart*workers))}
			visits := f.visits(workers, g.Rank(), pass, uneven)
			for step, took := range visits {
				if err := o.hear(step); err != nil {
					return err
				}
				time.Sleep(took)
				o.say(step)
			}
			for step := range 2 * perPart {
				if err := o.hear(len(visits) + step); err != nil {
					return err
				}
			}
			o.sent.Wait()
			if o.failed != nil {
				return o.failed
			}
		}
		return nil
	}}
}

// onward is a worker's messages in a pass.
type onward struct {
	ctx            context.Context
	g              *collective.Group
	pass           int
	slice, summary []byte
	sent           sync.WaitGroup
	once           sync.Once
	failed         error
}

// tag is that of a slice, or of a summary, of a step.
func (o *onward) tag(summary, step int) uint64 {
	return uint64(1+2*o.pass+summary)<<32 | uint64(step)
}

// say sends what comes of a step.
func (o *onward) say(step int) {
	n, rank := o.g.Size(), o.g.Rank()
	o.send((rank+n-1)%n, o.tag(0, step), o.slice)
	for by := 1; by < n && step%perPart == perPart-1; by++ {
		o.send((rank+by)%n, o.tag(1, step), o.summary)
	}
}

// send sends, and does not wait.
func (o *onward) send(to int, tag uint64, b []byte) {
	o.sent.Go(func() {
		if err := o.g.Send(o.ctx, to, tag, b); err != nil {
			o.once.Do(func() { o.failed = err })
		}
	})
}

// hear waits for what a step needs, or what one behind the last would need.
func (o *onward) hear(step int) error {
	n, rank := o.g.Size(), o.g.Rank()
	if from := step - perPart; from >= 0 && from < perPart*n {
		err := o.g.Recv(o.ctx, (rank+1)%n, o.tag(0, from), make([]byte, len(o.slice)))
		if err != nil {
			return err
		}
	}
	for by := 1; by < n && step >= 2*perPart && step%perPart == 0; by++ {
		err := o.g.Recv(o.ctx, (rank+n-by)%n, o.tag(1, step-perPart-1),
			make([]byte, len(o.summary)))
		if err != nil {
			return err
		}
	}
	return nil
}

// swap sends as many bytes as it receives.
func swap(ctx context.Context, g *collective.Group, to, from int, b []byte) error {
	sent := make(chan error, 1)
	go func() { sent <- g.Send(ctx, to, 1, b) }()
	if err := g.Recv(ctx, from, 1, make([]byte, len(b))); err != nil {
		return err
	}
	return <-sent
}

// orderings prints what it costs to keep the order of the loop, as table 5.3 does.
func orderings(t *testing.T, w io.Writer, quick bool) error {
	bytes, err := tableBytes(quick, 10)
	if err != nil {
		return err
	}
	mf := netflix()
	mf.name, mf.rank, mf.each = "SGD MF, Netflix", 1000, time.Microsecond/32
	revised := mf
	revised.name, revised.rank = "SGD MF AdaRev, Netflix", 2*mf.rank // its sums of gradients, too
	revised.each *= 2
	nytimes := topics(300_000, 102_660, 99_542_125, bytes[0], 32)
	nytimes.name = "LDA, NYTimes"
	all, machines := []factored{mf, revised, nytimes}, 12
	if quick {
		all = []factored{movieLens10M()}
	}
	fmt.Fprintf(w, "%d machines of 32 threads, links of 40 Gbit/s, rank 1000 (AdaRev: twice the "+
		"work and the bytes), 1000 topics; seconds a pass in the loop's order and in any.\n\n",
		machines)
	heading(w, "data", "passes", "parts each", "in order", "in any", "factor", "the thesis")
	thesis := []string{"13.1 / 5.9 = 2.2", "43.6 / 16.7 = 2.6", "29.9 / 5.0 = 6.0"}
	for i, f := range all {
		f.net = perGbit(40)
		for _, passes := range []int{1, 4} {
			for _, times := range []int{1, 2} {
				o := orion.Options{Workers: machines, Times: times}
				ordered, err := f.rotated(t, o, true, passes)
				if err != nil {
					return err
				}
				any, err := f.rotated(t, o, false, passes)
				if err != nil {
					return err
				}
				row(w, f.name, fmt.Sprint(passes), fmt.Sprint(times),
					fmt.Sprintf("%.3f", ordered.seconds), fmt.Sprintf("%.3f", any.seconds),
					fmt.Sprintf("%.2f", ordered.seconds/any.seconds), thesis[i])
			}
		}
	}
	fmt.Fprintln(w)
	return nil
}
