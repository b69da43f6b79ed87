package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/distrib/lda"
)

// stream is a corpus that is drawn into a file, and learnt from there within a budget of memory.
type stream struct {
	tokens  int // about so many
	budget  int64
	sweeps  int
	options lda.Options
	dir     string // "": the system's for temporary files
}

// Of what documents are drawn, and how many tokens are planned beside those that are learnt.
const (
	meanLength = 100
	vocabulary = 50_000
	planned    = 1_000_000_000
	mebi       = 1 << 20
)

// run learns, and says what it took.
func (s stream) run(ctx context.Context, w io.Writer) (err error) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(s.budget))
	c, err := lda.Shelved(s.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	d := lda.Drawing{Docs: s.tokens / meanLength, Length: meanLength, Vocab: vocabulary,
		Topics: 200, Seed: 1}
	began := time.Now()
	if err := d.Fill(c, 0); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, load %s: %d tokens of %d words in %d documents, %d topics, %d threads; "+
		"drawn into a file in %.0f s\n\n", gauge.Processor(), gauge.Load(), c.Tokens(), c.Vocab,
		c.Docs(), s.options.Topics, s.options.Threads, time.Since(began).Seconds())
	b := c.Bytes(s.options, lda.Use{})
	s.plan(w, c, b)
	if b.Total() > s.budget {
		return fmt.Errorf("%d MiB are planned, %d MiB are there", b.Total()/mebi, s.budget/mebi)
	}
	return s.learn(ctx, w, c)
}

// plan shows what this corpus takes, and one of a thousand million tokens whose words come as
// often.
func (s stream) plan(w io.Writer, c *lda.Corpus, b lda.Bytes) {
	fmt.Fprintln(w, "| tokens | where documents are | blocks | table | proposals | result | rest |"+
		" MiB in all |\n|---:|---:|---:|---:|---:|---:|---:|---:|")
	show := func(tokens int, b lda.Bytes) {
		fmt.Fprintf(w, "| %d | %d | %d | %d | %d | %d | %d | %d |\n", tokens, b.Corpora/mebi,
			b.Blocks/mebi, b.Table/mebi, b.Proposals/mebi, b.Result/mebi, b.Rest/mebi,
			b.Total()/mebi)
	}
	show(c.Tokens(), b)
	times := float64(planned) / float64(c.Tokens())
	frequencies := c.Frequencies()
	for i, n := range frequencies {
		frequencies[i] = int(float64(n) * times)
	}
	imagined := lda.Imagined(planned/meanLength, meanLength, frequencies)
	show(planned, imagined.Bytes(s.options, lda.Use{}))
}

// learn sweeps over the corpus.
func (s stream) learn(ctx context.Context, w io.Writer, c *lda.Corpus) (err error) {
	m, err := lda.New(c, s.options, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	fmt.Fprintln(w, "\n| sweep | s | CPU s | M tokens a second | a CPU second | nats a token | "+
		"peak MiB |\n|---:|---:|---:|---:|---:|---:|---:|")
	for sweep := range s.sweeps {
		began, busy := time.Now(), gauge.CPUTime()
		if err := m.Sweep(ctx); err != nil {
			return err
		}
		wall, busied := time.Since(began).Seconds(), (gauge.CPUTime() - busy).Seconds()
		likelihood, err := m.LogLikelihood(ctx)
		if err != nil {
			return err
		}
		n := float64(c.Tokens())
		fmt.Fprintf(w, "| %d | %.0f | %.0f | %.2f | %.2f | %.4f | %d |\n", sweep+1, wall, busied,
			n/wall/1e6, n/busied/1e6, -likelihood/n, gauge.Peak()/mebi)
	}
	if _, err := m.Table(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nWith the table, the peak is %d MiB of %d.\n", gauge.Peak()/mebi,
		s.budget/mebi)
	return err
}
