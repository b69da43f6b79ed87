// Command topics sets gomem's latent Dirichlet allocation beside tomotopy's and gensim's: on the
// same drawn documents, by one thread each, with the same priors and number of topics. The quality
// is the perplexity of one half of held-out documents by the other half, by the same code for all.
//
//	go run ./bench/topics -python /path/to/python
//
// With -stream, documents of so many words are drawn into a file instead, and learnt from there
// within -memory: what is planned, and what it took.
//
//	go run ./bench/topics -stream 100000000 -sweeps 2
package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/distrib/lda"
)

//go:embed peers.py
var peers string

func main() { gauge.Main("topics", run) }

// trial is the documents and what all are to learn of them.
type trial struct {
	train, held *lda.Corpus
	options     lda.Options
	dir, python string
}

// result is what one has come to.
type result struct {
	name       string
	passes     int
	busy       time.Duration // of a processor
	perplexity float64
}

func run(ctx context.Context, args []string, w io.Writer) error {
	f := flag.NewFlagSet("topics", flag.ContinueOnError)
	python := f.String("python", "python3", "a Python that has tomotopy and gensim")
	topics := f.Int("topics", 100, "that are learnt")
	docs := f.Int("docs", 3000, "documents of 100 words on average")
	sweeps := f.Int("sweeps", 60, "of gomem and tomotopy over the documents")
	passes := f.Int("passes", 10, "of gensim")
	cycles := f.Int("mh-steps", 2, "of gomem, a token and a sweep")
	parts := f.Int("parts", 1, "of gomem; one thread needs no more")
	tokens := f.Int("stream", 0, "words of documents that are drawn into a file; 0: none")
	memory := f.Int64("memory", 2<<30, "bytes, with -stream")
	threads := f.Int("threads", 1, "with -stream")
	disk := f.String("disk", "", "a directory for -stream (default the system's)")
	if err := f.Parse(args); err != nil {
		return err
	}
	o := lda.Options{Topics: *topics, Alpha: 0.1, Beta: 0.01, Seed: 1, Cycles: *cycles,
		Parts: *parts}
	if *tokens > 0 {
		o.Threads, o.Parts = *threads, max(*parts, *threads)
		return stream{*tokens, *memory, *sweeps, o, *disk}.run(ctx, w)
	}
	dir, err := os.MkdirTemp("", "topics")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := newTrial(*docs, o, dir, *python)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, load %s: %d tokens of %d words in %d documents of 50 topics, %d learnt\n\n",
		gauge.Processor(), gauge.Load(), t.train.Tokens(), t.train.Vocab, t.train.Docs(), *topics)
	fmt.Fprintln(w, "| by | passes | CPU s | M tokens a CPU second | held-out perplexity |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|")
	for _, try := range []func() (result, error){
		func() (result, error) { return t.own(ctx, *sweeps/2) },
		func() (result, error) { return t.own(ctx, *sweeps) },
		func() (result, error) { return t.peer(ctx, "tomotopy", *sweeps/2) },
		func() (result, error) { return t.peer(ctx, "tomotopy", *sweeps) },
		func() (result, error) { return t.peer(ctx, "gensim", *passes) },
	} {
		r, err := try()
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(w, "\n%s is left out: %v\n", r.name, err)
			continue
		}
		if err != nil {
			return err
		}
		tokens := float64(t.train.Tokens()) * float64(r.passes) / r.busy.Seconds() / 1e6
		fmt.Fprintf(w, "| %s | %d | %.1f | %.2f | %.1f |\n", r.name, r.passes, r.busy.Seconds(),
			tokens, r.perplexity)
	}
	return nil
}

// newTrial draws documents, and writes them where others read them.
func newTrial(docs int, o lda.Options, dir, python string) (*trial, error) {
	d := lda.Drawing{Docs: docs, Length: 100, Vocab: 5000, Topics: 50, Seed: 1}
	t := &trial{dir: dir, python: python, options: o}
	var err error
	if t.train, err = d.Corpus(0); err != nil {
		return nil, err
	}
	d.Docs = 500
	if t.held, err = d.Corpus(docs); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i := range t.train.Docs() {
		for _, word := range t.train.Doc(i) {
			fmt.Fprintf(&b, "%d ", word)
		}
		b.WriteByte('\n')
	}
	return t, os.WriteFile(t.docs(), []byte(b.String()), 0o666)
}

func (t *trial) docs() string { return filepath.Join(t.dir, "docs.txt") }

// own learns here.
func (t *trial) own(ctx context.Context, sweeps int) (result, error) {
	r := result{name: "gomem", passes: sweeps}
	m, err := lda.New(t.train, t.options, nil)
	if err != nil {
		return r, err
	}
	began := gauge.CPUTime()
	for range sweeps {
		if err := m.Sweep(ctx); err != nil {
			return r, err
		}
	}
	r.busy = gauge.CPUTime() - began
	table, err := m.Table(ctx)
	if err == nil {
		r.perplexity = lda.Perplexity(table.Complete(t.held))
	}
	return r, err
}

// weight is how many tokens stand for a topic, of which only the distribution is known.
const weight = 1 << 28

// peer has a Python library learn.
func (t *trial) peer(ctx context.Context, name string, passes int) (result, error) {
	r := result{name: name, passes: passes}
	to, o := filepath.Join(t.dir, name), t.options
	c := exec.CommandContext(ctx, t.python, "-c", peers, name, t.docs(), to, strconv.Itoa(o.Topics),
		strconv.Itoa(t.train.Vocab), strconv.Itoa(passes), fmt.Sprint(o.Alpha), fmt.Sprint(o.Beta))
	c.Env, c.Stderr = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"), os.Stderr
	said, err := c.Output()
	if err != nil {
		return r, fmt.Errorf("%s with %s, which must have it: %w", t.python, name, err)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(said)), 64)
	if err != nil {
		return r, err
	}
	r.busy = time.Duration(seconds * float64(time.Second))
	b, err := os.ReadFile(to)
	if err != nil {
		return r, err
	}
	if len(b) != 8*o.Topics*t.train.Vocab {
		return r, fmt.Errorf("%s writes %d bytes of its topics", name, len(b))
	}
	words := make([][]lda.Entry, t.train.Vocab)
	for i := range len(b) / 8 {
		p := math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		if n := uint32(math.Round(p * weight)); n > 0 {
			w := i % t.train.Vocab
			words[w] = append(words[w], lda.Entry{Topic: uint16(i / t.train.Vocab), N: n})
		}
	}
	r.perplexity = lda.Perplexity(lda.NewTable(words, o).Complete(t.held))
	return r, nil
}
