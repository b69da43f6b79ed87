package lda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
)

// apart has n workers do their parts, with a group of messages between them.
func apart(t *testing.T, n int, part func(g *collective.Group) error) {
	t.Helper()
	for rank, err := range collective.Together(memnet.New(n, memnet.Options{}),
		collective.Options{}, part) {
		if err != nil {
			t.Errorf("worker %d of %d: %v", rank, n, err)
		}
	}
}

// together has n workers do something, each with a model of its own.
func together(t *testing.T, n int, c *Corpus, o Options, do func(m *Model) error) {
	t.Helper()
	apart(t, n, func(g *collective.Group) error {
		m, err := New(c, o, g)
		if err == nil {
			err = do(m)
		}
		return err
	})
}

// TestWorkersDoNotMatter: several workers, whose slices go round, end with the bits of one.
func TestWorkersDoNotMatter(t *testing.T) {
	c, ctx := drawn(t, small), context.Background()
	o := Options{Topics: 30, Alpha: .1, Beta: .05, Seed: 5, Parts: 6, BlockTokens: 1500, Threads: 2}
	one := started(t, c, o)
	want := swept(t, one, 4)
	table, err := one.Table(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 4, 6} {
		all := make([][]uint16, n)
		together(t, n, c, o, func(m *Model) error {
			for range 4 {
				if err := m.Sweep(ctx); err != nil {
					return err
				}
			}
			got, err := m.LogLikelihood(ctx)
			if err == nil && got != want {
				err = fmt.Errorf("log likelihood %v, want %v", got, want)
			}
			if err != nil {
				return err
			}
			x, err := m.Table(ctx)
			if err == nil && fmt.Sprint(x.Words()) != fmt.Sprint(table.Words()) {
				err = fmt.Errorf("another table")
			}
			_, all[m.group.Rank()], _ = m.Assignments()
			return err
		})
		if !slices.Equal(slices.Concat(all...), topicsOf(one)) {
			t.Errorf("%d workers leave other topics than one", n)
		}
	}
	apart(t, 7, func(g *collective.Group) error {
		if _, err := New(c, o, g); err == nil {
			return errors.New("6 parts do for 7 workers")
		}
		return nil
	})
}

// TestSlicesTravel: while slices are visited others are on their way, so that links which take less
// than a visit cost no time; and what comes of it is the same however long they take.
func TestSlicesTravel(t *testing.T) {
	c, ctx := drawn(t, small), context.Background()
	o := Options{Topics: 20, Alpha: .1, Beta: .05, Seed: 5, Parts: 3, BlockTokens: 3000}
	want := swept(t, started(t, c, o), 3)
	for _, jitter := range []time.Duration{0, 40 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			net := memnet.Options{Latency: 8 * time.Millisecond, Jitter: jitter, Seed: 3}
			for rank, err := range collective.Together(memnet.New(3, net), collective.Options{},
				func(g *collective.Group) error {
					m, err := New(c, o, g)
					if err == nil {
						err = m.tabulate(ctx)
					}
					if err != nil {
						return err
					}
					began, steps := time.Now(), 5*perPart*o.Parts
					err = m.rotate(ctx, func(r *rotation) error {
						for range steps {
							if err := r.next(func(int, int, *slice) error {
								time.Sleep(10 * time.Millisecond)
								return nil
							}); err != nil {
								return err
							}
						}
						return nil
					})
					ideal := time.Duration(steps) * 10 * time.Millisecond
					took := time.Since(began)
					if took > ideal+20*time.Millisecond && jitter == 0 {
						return fmt.Errorf("%d steps take %v, ideal %v: %w", steps, took, ideal, err)
					}
					return err
				}) {
				if err != nil {
					t.Errorf("worker %d: %v", rank, err)
				}
			}
			for rank, err := range collective.Together(memnet.New(3, net), collective.Options{},
				func(g *collective.Group) error { return sweptTo(c, o, g, want) }) {
				if err != nil {
					t.Errorf("worker %d, %v: %v", rank, jitter, err)
				}
			}
		})
	}
}

func TestResume(t *testing.T) {
	c := drawn(t, small)
	o := Options{Topics: 12, Alpha: .1, Beta: .05, Seed: 5}
	m := started(t, c, o)
	swept(t, m, 3)
	half := slices.Clone(topicsOf(m))
	want := swept(t, m, 3)
	again, err := New(c, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Resume(3, half); err != nil {
		t.Fatal(err)
	}
	if got := swept(t, again, 3); got != want || !slices.Equal(topicsOf(m), topicsOf(again)) {
		t.Errorf("resumed: %v, at once %v", got, want)
	}
	half[7] = 12
	if again.Resume(3, half) == nil || again.Resume(3, half[1:]) == nil {
		t.Error("topics that are none are taken")
	}
}

// TestSlicesAreRead: what is cut short is refused, and nothing else happens.
func TestSlicesAreRead(t *testing.T) {
	m := started(t, drawn(t, small), Options{Topics: 12, Alpha: .1, Beta: .05})
	b := m.slices[1].append(nil)
	s, err := readSlice(b, 12)
	if err != nil || s.from != m.slices[1].from || len(s.rows) != len(m.slices[1].rows) {
		t.Fatal("what is read is another slice")
	}
	for w := range s.rows {
		was := &m.slices[1].rows[w]
		if s.rows[w].tokens != was.tokens {
			t.Fatalf("word %d has %d tokens, had %d", w, s.rows[w].tokens, was.tokens)
		}
		for k := range uint16(12) {
			if s.rows[w].find(k).count != was.find(k).count {
				t.Fatalf("word %d has other counts", w)
			}
		}
	}
	for n := range len(b) {
		if _, err := readSlice(b[:n], 12); err == nil {
			t.Fatalf("%d bytes of %d are a slice", n, len(b))
		}
	}
	if _, err := readSlice(b, 2); err == nil {
		t.Error("topics beyond the last are taken")
	}
}

// TestComplete: what is known of the topics makes the other half of documents likelier.
func TestComplete(t *testing.T) {
	c := drawn(t, small)
	held, err := Drawing{Docs: 50, Length: 60, Vocab: 400, Topics: 8, Seed: 3}.Corpus(1000)
	if err != nil {
		t.Fatal(err)
	}
	m := started(t, c, Options{Topics: 8, Alpha: .1, Beta: .05})
	perplexity := func() float64 {
		x, err := m.Table(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		share := x.Topics(held.Doc(0))
		sum := 0.0
		for _, p := range share {
			sum += p
		}
		if sum < 1-1e-12 || sum > 1+1e-12 {
			t.Errorf("topics are %v of a document", sum)
		}
		return Perplexity(x.Complete(held))
	}
	before := perplexity()
	swept(t, m, 50)
	after := perplexity()
	t.Logf("perplexity from %.1f to %.1f", before, after)
	if !(after < before/2) {
		t.Errorf("perplexity from %.1f to %.1f", before, after)
	}
	empty := Corpus{Vocab: 400}
	if err := empty.Add(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := New(&empty, Options{Topics: 8, Alpha: .1, Beta: .05}, nil); err == nil {
		t.Error("a corpus without words is taken")
	}
	if err := empty.Add([]uint32{400}); err == nil {
		t.Error("a word beyond the last is taken")
	}
}
