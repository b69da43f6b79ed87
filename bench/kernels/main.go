// Command kernels measures gomem's CPU kernels beside the libraries that others
// use, and prints tables for docs/measurements/kernels.md.
//
//	go run ./bench/kernels [-table gemm|conv|vector] [-threads n] [-rounds n]
//
// Both sides of a comparison run in turn in the same run: gomem's in this
// process, a peer's in a small C program that waits on a pipe meanwhile. The
// programs are compiled when the benchmark starts, from the folder peer, by cc.
// Where the compiler or a library is missing the table says so, and what to
// install. Both sides start from the same operands, and must agree on the result
// before they are timed: on one thread by the processor's time.
// GODEBUG=cpu.avx512f=off keeps both sides from AVX-512.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// table is a group of rows that share columns.
type table struct {
	name string
	run  func(ctx context.Context, b *bench) error
}

func tables() []table {
	return []table{{"gemm", products}, {"conv", convolutions}, {"vector", vectors}}
}

// bench is what a table needs: where to write, threads, and the peers.
type bench struct {
	w       io.Writer
	tools   *toolchain
	pool    *pool.Pool
	threads int
	rounds  int
	peers   []*peer
	watch   *watch
}

type options struct {
	tables  []table
	threads []int
	rounds  int
	cc      string
}

func main() {
	gauge.Main("kernels", func(ctx context.Context, args []string, w io.Writer) error {
		o, err := parse(args)
		if err != nil {
			return err
		}
		return run(ctx, o, args, w)
	})
}

func parse(args []string) (options, error) {
	f := flag.NewFlagSet("kernels", flag.ContinueOnError)
	name := f.String("table", "", "`name` of the only table to make: "+strings.Join(names(), ", "))
	threads := f.Int("threads", 0, "`number` of threads; 0 means one, then all of GOMAXPROCS")
	rounds := f.Int("rounds", 9, "`number` of times that the sides of a comparison alternate")
	cc := f.String("cc", "cc", "C `compiler` for the peers")
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	o := options{tables: tables(), threads: []int{*threads}, rounds: *rounds, cc: *cc}
	if *name != "" {
		o.tables = slices.DeleteFunc(o.tables, func(t table) bool { return t.name != *name })
	}
	if *threads == 0 {
		o.threads = slices.Compact([]int{1, runtime.GOMAXPROCS(0)})
	}
	if len(o.tables) == 0 {
		return o, fmt.Errorf("-table %q: want one of %s", *name, strings.Join(names(), ", "))
	}
	return o, gauge.Checked(f, *threads, *rounds)
}

func names() []string {
	var all []string
	for _, t := range tables() {
		all = append(all, t.name)
	}
	return all
}

// run makes the tables. The collector stays off while a table is measured.
func run(ctx context.Context, o options, args []string, w io.Writer) (err error) {
	tools, err := newToolchain(o.cc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.close()) }()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	command := strings.TrimSpace("go run ./bench/kernels " + strings.Join(args, " "))
	fmt.Fprintf(w, "`%s`, %s %s/%s, %s, %d threads available, medians of %d rounds\n", command,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, gauge.Processor(), runtime.GOMAXPROCS(0),
		o.rounds)
	for _, t := range o.tables {
		for _, threads := range o.threads {
			b := &bench{w: w, tools: tools, threads: threads, rounds: o.rounds, watch: newWatch()}
			if err := b.run(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) run(ctx context.Context, t table) (err error) {
	b.pool = pool.New(b.threads)
	defer b.pool.Close()
	defer func() { err = errors.Join(err, b.closePeers()) }()
	plural := map[bool]string{true: "s"}[b.threads > 1]
	fmt.Fprintf(b.w, "\n## %s, %d thread%s\n\n%s", t.name, b.threads, plural, load())
	if err := t.run(ctx, b); err != nil {
		return err
	}
	fmt.Fprintf(b.w, "\n%s\n", b.watch)
	return nil
}

// start starts a peer and writes what it is.
func (b *bench) start(ctx context.Context, l origin) *peer {
	p := b.tools.start(ctx, l, b.threads)
	b.peers = append(b.peers, p)
	fmt.Fprintf(b.w, "- %s: %s\n", l.name, p.about)
	return p
}

// again starts another process of a peer, for a second question in the same row.
func (b *bench) again(ctx context.Context, l origin) *peer {
	p := b.tools.start(ctx, l, b.threads)
	b.peers = append(b.peers, p)
	return p
}

func (b *bench) closePeers() error {
	var err error
	for _, p := range b.peers {
		err = errors.Join(err, p.close())
	}
	return err
}
